"""What commands read and change of the operator's installation. Not used by the operator."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from kafka_rebalance.api.v1alpha1 import GROUP, VERSION
from kafka_rebalance.kube.api_errors import Conflict, NotFound
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.objects import Json
from kafka_rebalance.kube.rights import Right


class Installation:
    """Works in the client's own namespace. Raises what the client raises."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube

    async def served(self) -> frozenset[str]:
        """The plurals of our resources and subresources that the API server serves; empty without our CRDs."""
        try:
            answer = await self._kube.request("GET", f"/apis/{GROUP}/{VERSION}")
        except NotFound:
            return frozenset()
        return frozenset(row["name"] for row in answer["resources"])

    async def definition(self, plural: str) -> Json:
        """The stored CustomResourceDefinition. Forbidden if it may not be read."""
        return await self._kube.request(
            "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{GROUP}"
        )

    async def may(self, right: Right) -> bool:
        """Whether the user of this client has this permission. Every user may ask that."""
        resource, _, subresource = right.resource.partition("/")
        attributes = {"verb": right.verb, "group": right.group, "resource": resource}
        attributes |= {"subresource": subresource} if subresource else {}
        attributes |= {"namespace": right.namespace} if right.namespace else {}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = await self._kube.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    async def dry_run(self, plural: str, body: Mapping[str, Any]) -> None:
        """Let the API server validate a resource of ours without creating it. Refused says what is wrong."""
        path = f"/apis/{GROUP}/{VERSION}/namespaces/{quote(self._kube.namespace)}/{plural}"
        await self._kube.request("POST", f"{path}?dryRun=All&fieldValidation=Strict", body)

    async def scale(self, deployment: str, replicas: int) -> bool:
        """Set the replicas of a Deployment. False if there is none of that name."""
        return await self._scaled(deployment, {"spec": {"replicas": replicas}}) is not None

    async def replicas(self, deployment: str) -> int | None:
        """The replicas that are set of a Deployment; None if there is none of that name."""
        found = await self._scaled(deployment, {})
        return None if found is None else found["spec"].get("replicas", 0)  # the API server leaves out a zero

    async def _scaled(self, deployment: str, patch: Json) -> Json | None:
        """The scale after this patch. Also read by a patch: the uninstallation of the chart has no other right."""
        path = f"/apis/apps/v1/namespaces/{quote(self._kube.namespace)}/deployments/{quote(deployment)}/scale"
        try:
            return await self._kube.request("PATCH", path, patch, content_type="application/merge-patch+json")
        except NotFound:
            return None

    async def remove_lease(self, name: str) -> bool:
        """Delete a Lease without a holder. False if it has one, or there is no Lease."""
        found = await self._kube.get_lease(name)
        if found is None or found["spec"].get("holderIdentity"):
            return False
        path = f"/apis/coordination.k8s.io/v1/namespaces/{quote(self._kube.namespace)}/leases/{quote(name)}"
        unchanged = {"resourceVersion": found["metadata"]["resourceVersion"]}
        try:
            await self._kube.request(
                "DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": unchanged}
            )
        except (Conflict, NotFound):
            return False
        return True
