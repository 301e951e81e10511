"""The permissions that an operator needs, by what it watches."""

from itertools import product
from pathlib import Path

from kafka_rebalance.kube.rights import EVERYWHERE, OWN, OWN_ALONE, REPORTS, WATCHED, Right, needed

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

    def test_reports(self):
        """Reviews belong to no namespace."""
        for namespaces in ((), ("a",)):
            more = set(needed(namespaces, "ops", reports=True)) - set(needed(namespaces, "ops"))
            assert {str(right) for right in more} == {
                "create tokenreviews.authentication.k8s.io",
                "create subjectaccessreviews.authorization.k8s.io",
            }

    def test_its_own_namespace_may_be_watched(self):
        rights = needed(("ops",), "ops")
        assert len(rights) == len(set(rights))

    def test_is_said_as_kubectl_says_it(self):
        assert str(Right("patch", GROUP, "kafkarebalances/status", "a")) == (
            "patch kafkarebalances.kafkarebalance.dev/status in namespace a"
        )
        assert str(Right("get", "", "secrets", None)) == "get secrets"


class TestDocumented:
    def test_each_verb_has_its_reason(self):
        """The table in docs/security.md has all rights and no others, each in its place."""
        page = Path(__file__).parents[3] / "docs" / "security.md"
        lines = (line.strip("| ").split(" | ") for line in page.read_text(encoding="utf-8").splitlines())
        places = {
            "watched namespaces": WATCHED,
            "cluster, if all namespaces are watched": EVERYWHERE,
            "cluster, if reports are served": REPORTS,
            "own namespace": OWN,
            "own namespace, if single namespaces are watched": OWN_ALONE,
        }
        rows = [line for line in lines if line[0] in places]
        documented = [
            (where, resource.strip("`"), verb.strip("`"))
            for where, resources, verbs, _ in rows
            for resource, verb in product(resources.split(", "), verbs.split(", "))
        ]
        granted = {
            (where, resource, verb)
            for where, rules in places.items()
            for rule in rules
            for resource, verb in product(rule.resources, rule.verbs)
        }
        assert len(documented) == len(set(documented))
        assert set(documented) == granted
