"""The permissions that an operator needs, by what it watches."""

from kafka_rebalance.kube.rights import Right, needed

GROUP = "kafkarebalance.dev"


class TestNeeded:
    def test_all_namespaces(self):
        """Cluster-wide for resources, in one namespace for records."""
        rights = needed((), "ops")
        assert Right("patch", GROUP, "kafkarebalances", None) in rights
        assert Right("watch", "apiextensions.k8s.io", "customresourcedefinitions", None) in rights
        assert Right("get", "", "namespaces", None) in rights
        assert {right.resource for right in rights if right.namespace} == {"configmaps", "leases"}

    def test_single_namespaces(self):
        """Only in these and in the operator's own."""
        rights = needed(("a", "b"), "ops")
        assert {right.namespace for right in rights} == {"a", "b", "ops"}
        assert Right("get", "", "namespaces", "a") in rights
        assert not [right for right in rights if right.resource == "customresourcedefinitions"]
        assert Right("create", "", "events", "ops") in rights

    def test_its_own_namespace_may_be_watched(self):
        rights = needed(("ops",), "ops")
        assert len(rights) == len(set(rights))

    def test_is_said_as_kubectl_says_it(self):
        assert str(Right("patch", GROUP, "kafkarebalances/status", "a")) == (
            "patch kafkarebalances.kafkarebalance.dev/status in namespace a"
        )
        assert str(Right("get", "", "secrets", None)) == "get secrets"
