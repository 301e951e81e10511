"""The shipped roles: exactly the permissions that the operator needs."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from e2e.bench.kube import KubeCluster
from tests.kube.namespaces import Namespace

from kafka_rebalance.api.resource_status import KafkaRebalanceStatus
from kafka_rebalance.api.v1alpha1 import FINALIZER, REASSIGNMENT_THROTTLES, REBALANCES, parse_rebalance, parse_throttle
from kafka_rebalance.kube.api_errors import Forbidden
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.store import LedgerStore, OriginStore, PlanStore, RunStore
from kafka_rebalance.model.plan import Certificate, Plan
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import TopicPartition, replicas_of
from kafka_rebalance.reconcile.act.resources import Resources

pytestmark = pytest.mark.apiserver

OPERATOR = "system:serviceaccount:kafka-rebalance:kafka-rebalance-operator"
NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
async def operator(cluster: KubeCluster) -> AsyncIterator[KubeClient]:
    """With a token of the service account in the manifests."""
    kubeconfig = cluster.service_account_kubeconfig("kafka-rebalance", "kafka-rebalance-operator")
    connected = KubeClient.connect("kafka-rebalance", kubeconfig=str(kubeconfig))
    yield connected
    await connected.close()


def allowed(namespace: Namespace, verb: str, what: str) -> bool:
    """Whether the operator's account may do this in the user's namespace."""
    resource, _, group = what.partition(".")
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": OPERATOR,
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": {
                "namespace": namespace.name, "verb": verb, "resource": resource, "group": group,
            },
        },
    }  # fmt: skip
    answer: bool = json.loads(namespace.kubectl("create", "-f", "-", "-o", "json", stdin=json.dumps(review)))["status"][
        "allowed"
    ]
    return answer


class TestEnough:
    """Every call that the operator makes is allowed."""

    async def test_resources(self, namespace: Namespace, operator: KubeClient) -> None:
        namespace.apply("KafkaRebalance", {})
        namespace.kubectl("create", "secret", "generic", "user", "--from-literal=username=u")
        assert await operator.list_resources(REBALANCES)
        about = parse_rebalance(namespace.get(REBALANCES)).metadata
        held = await operator.patch_finalizers(REBALANCES, namespace.name, "a", [FINALIZER], about.resource_version)
        assert held is not None
        assert await operator.patch_status(REBALANCES, namespace.name, "a", KafkaRebalanceStatus().as_patch())
        await operator.create_event("KafkaRebalance", about, "Planned", "planned")
        assert await operator.read_secret(namespace.name, "user") == {"username": b"u"}
        fresh = parse_rebalance(await operator.get(REBALANCES, namespace.name, "a") or {}).metadata
        await operator.patch_finalizers(REBALANCES, namespace.name, "a", [], fresh.resource_version)

    async def test_throttles(self, namespace: Namespace, operator: KubeClient) -> None:
        """A deletion waits for the operator, which may write the status and remove the finalizer."""
        namespace.apply("KafkaReassignmentThrottle", {"leaderRate": "1Mi"})
        about = parse_throttle(await operator.get(REASSIGNMENT_THROTTLES, namespace.name, "a") or {}).metadata
        resources = Resources(operator, lambda: NOW)
        held = parse_throttle(await resources.add_throttle_finalizer(about) or {})
        assert held.metadata.held
        namespace.kubectl("delete", REASSIGNMENT_THROTTLES, "a", "--wait=false")
        assert await resources.report_throttle(held, "c", held)
        assert not await resources.namespace_or_crd_terminating(REASSIGNMENT_THROTTLES, namespace.name)
        going = parse_throttle(namespace.get(REASSIGNMENT_THROTTLES)).metadata
        assert going.deleting
        await resources.remove_throttle_finalizer(going, wholly=True)
        assert not await resources.exists(namespace.name, "a", about.uid, REASSIGNMENT_THROTTLES)
        said = namespace.kubectl("get", "events", "-o", "jsonpath={.items[*].reason}")
        assert sorted(said.split()) == ["NothingToThrottle", "Restored"]

    async def test_records(self, operator: KubeClient) -> None:
        plans, origins, runs, ledgers = (
            PlanStore(operator),
            OriginStore(operator),
            RunStore(operator),
            LedgerStore(operator),
        )
        for _ in range(2):
            await plans.save("rbac", "h", "c", Plan((), Certificate(0, optimal=True)), NOW)
            await origins.append("rbac", "r", [Origin(TopicPartition("t", 0), "id", replicas_of(1))])
            await runs.save(Run("rbac", "n", "a", "c", "r", "h", "p", NOW))
            await ledgers.save("rbac", {})
        assert await runs.list_all()
        await plans.clean()
        await plans.delete("rbac")
        await origins.delete("rbac")
        await runs.delete("rbac")
        await ledgers.delete("rbac")


class TestNothingBeyond:
    """Permissions that the code does not need are not granted."""

    @pytest.mark.parametrize(
        ("verb", "what"),
        [
            ("create", "kafkarebalances.kafkarebalance.dev"),
            ("delete", "kafkarebalances.kafkarebalance.dev"),
            ("update", "kafkarebalances.kafkarebalance.dev"),
            ("list", "secrets"),
            ("list", "configmaps"),
            ("create", "configmaps"),
            ("get", "pods"),
            ("get", "events"),
            ("list", "namespaces"),
            ("watch", "namespaces"),
            ("delete", "namespaces"),
            ("patch", "customresourcedefinitions.apiextensions.k8s.io"),
            ("create", "clusterrolebindings.rbac.authorization.k8s.io"),
        ],
    )
    def test_not_in_a_users_namespace(self, namespace: Namespace, verb: str, what: str) -> None:
        assert not allowed(namespace, verb, what)

    def test_the_question_is_understood(self, namespace: Namespace) -> None:
        """Otherwise every answer would be no, and the tests above would prove nothing."""
        assert allowed(namespace, "patch", "kafkarebalances.kafkarebalance.dev")

    async def test_refusals_are_recognised(self, namespace: Namespace, operator: KubeClient) -> None:
        elsewhere = KubeClient(operator._api.configuration, namespace.name)
        with pytest.raises(Forbidden, match="cannot list resource"):
            await elsewhere.list_config_maps({})
        await elsewhere.close()
