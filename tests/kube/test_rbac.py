"""The shipped roles grant nothing beyond what the operator needs; `test_rights_in_use.py` finds out what that is."""

import json
from collections.abc import AsyncIterator

import pytest
from e2e.bench.kube import KubeCluster
from tests.kube.namespaces import Namespace

from kafka_rebalance.kube.api_errors import Forbidden
from kafka_rebalance.kube.client import KubeClient

pytestmark = pytest.mark.apiserver

OPERATOR = "system:serviceaccount:kafka-rebalance:kafka-rebalance-operator"


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


class TestNothingBeyond:
    """Permissions that the code does not need are not granted."""

    @pytest.mark.parametrize(
        ("verb", "what"),
        [
            ("create", "kafkarebalances.kafkarebalance.dev"),
            ("delete", "kafkareassignmentthrottles.kafkarebalance.dev"),
            ("delete", "kafkaconnections.kafkarebalance.dev"),
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
