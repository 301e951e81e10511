"""Asks the API server whose bearer token a request has, and whether that user may read a KafkaRebalance.

Like other servers that delegate to the API server: a TokenReview, then a SubjectAccessReview. No message contains the
token.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from kafka_rebalance.api.v1alpha1 import GROUP, REBALANCES, VERSION
from kafka_rebalance.kube.objects import Json

_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Requests(Protocol):
    """The part of `KubeClient` that is used here."""

    async def request(self, method: str, path: str, body: Any = None) -> Json:
        """Any request."""


@dataclass(frozen=True, slots=True)
class ReviewedUser:
    """A user as the API server returned it. The second review sends these attributes unchanged."""

    attributes: Json


class AccessReviews:
    """``audience``: the tokens must be issued for it; None: for the API server. Passes on the errors of the client."""

    def __init__(self, kube: Requests, audience: str | None = None) -> None:
        self._kube = kube
        self._audience = audience

    async def user_of(self, token: str) -> ReviewedUser | None:
        """None: the token is unknown, has expired or is for another audience."""
        spec: Json = {"token": token}
        if self._audience is not None:
            spec["audiences"] = [self._audience]
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        status = (await self._kube.request("POST", _TOKEN_REVIEWS, review)).get("status") or {}
        if not status.get("authenticated"):
            return None
        # An authenticator that knows no audiences leaves the field empty: the token is then for the API server.
        if self._audience is not None and self._audience not in (status.get("audiences") or ()):
            return None
        return ReviewedUser(status.get("user") or {})

    async def may_get(self, user: ReviewedUser, namespace: str, name: str) -> bool:
        """Whether the user may ``get`` this KafkaRebalance, whether it exists or not."""
        found = user.attributes
        attributes = {
            "verb": "get",
            "group": GROUP,
            "version": VERSION,
            "resource": REBALANCES,
            "namespace": namespace,
            "name": name,
        }
        spec = {
            "resourceAttributes": attributes,
            "user": found.get("username", ""),
            "uid": found.get("uid", ""),
            "groups": found.get("groups") or [],
            "extra": found.get("extra") or {},
        }
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        status = (await self._kube.request("POST", _ACCESS_REVIEWS, review)).get("status") or {}
        return bool(status.get("allowed"))
