"""The rights in the chart without a cluster: the same as in `deploy/rbac.yaml` and `check-install`."""

import pytest
import yaml
from tests.chart.rendering import (
    CASES,
    NAME,
    ROOT,
    of_kind,
    rendered,
)
from tests.chart.rule_triples import of_rules, triples

from kafka_rebalance.kube.lease import LEASE_NAME
from kafka_rebalance.kube.rights import EVERYWHERE, OWN, OWN_ALONE, REPORTS, WATCHED


class TestRights:
    """The chart, `deploy/rbac.yaml` and `check-install` have the same rules, verb by verb."""

    def test_deploy(self) -> None:
        text = (ROOT / "deploy" / "rbac.yaml").read_text(encoding="utf-8")
        manifests = list(yaml.safe_load_all(text))
        assert triples(of_kind(manifests, "ClusterRole")["rules"]) == of_rules(*WATCHED, *EVERYWHERE)
        assert triples(of_kind(manifests, "Role")["rules"]) == of_rules(*OWN)

    def test_all_namespaces(self) -> None:
        manifests = rendered()
        assert triples(of_kind(manifests, "ClusterRole", NAME)["rules"]) == of_rules(*WATCHED, *EVERYWHERE)
        assert triples(of_kind(manifests, "Role", "-records")["rules"]) == of_rules(*OWN)

    def test_single_namespaces(self) -> None:
        manifests = rendered("namespaced")
        roles = {
            m["metadata"]["namespace"]: m for m in manifests if m["kind"] == "Role" and m["metadata"]["name"] == NAME
        }
        assert {place: triples(role["rules"]) for place, role in roles.items()} == {
            "kafka": of_rules(*WATCHED),
            "payments": of_rules(*WATCHED),
        }
        assert triples(of_kind(manifests, "Role", "-records")["rules"]) == of_rules(*OWN, *OWN_ALONE)
        assert not [m for m in manifests if m["kind"].startswith("Cluster")]

    def test_reports(self) -> None:
        """The additional rights are reviews only, in a cluster-wide role, even if single namespaces are watched."""
        assert not [m for m in rendered() if m["metadata"]["name"].endswith("-reports")]
        for case in ("default", "namespaced"):
            manifests = rendered(case, "--set", "report.enabled=true")
            assert triples(of_kind(manifests, "ClusterRole", "-reports")["rules"]) == of_rules(*REPORTS)

    @pytest.mark.parametrize("case", [case for case in CASES if case != "bare"])
    def test_every_role_is_bound_to_the_operator_alone(self, case: str) -> None:
        manifests = [m for m in rendered(case) if not m["metadata"]["name"].endswith("-spark")]
        account = of_kind(manifests, "ServiceAccount")["metadata"]
        subject = {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
        bindings = [m for m in manifests if m["kind"].endswith("RoleBinding")]
        bound = {(m["roleRef"]["kind"], m["roleRef"]["name"], m["metadata"].get("namespace")) for m in bindings}
        roles = {
            (m["kind"], m["metadata"]["name"], m["metadata"].get("namespace"))
            for m in manifests
            if m["kind"].endswith("Role") and m["metadata"]["labels"]["app.kubernetes.io/component"] != "access"
        }
        assert bound == roles
        assert all(m["subjects"] == [subject] for m in bindings)

    def test_what_the_hooks_add_goes_with_them(self) -> None:
        """The hooks' roles are restricted by resource name, and deleted after the hook."""
        manifests = rendered()
        stop = of_kind(manifests, "Role", "-uninstall")
        named = [(rule["resources"], rule["verbs"], rule["resourceNames"]) for rule in stop["rules"]]
        assert named == [(["deployments/scale"], ["patch"], [NAME]), (["leases"], ["delete"], [LEASE_NAME])]
        assert triples(of_kind(manifests, "Role", "-test")["rules"]) == {
            ("kafkarebalance.dev", "kafkarebalances", "create")
        }
        hooks = [m for m in manifests if "helm.sh/hook" in m["metadata"].get("annotations", {})]
        assert sorted(m["kind"] for m in hooks) == ["Job", "Pod", "Role", "Role", "RoleBinding", "RoleBinding"]
        for hook in hooks:
            policy = hook["metadata"]["annotations"]["helm.sh/hook-delete-policy"]
            assert policy == "before-hook-creation,hook-succeeded"

    def test_people(self) -> None:
        """view may read; edit may write, but no KafkaConnections; only the operator may write the status.

        The creator of a KafkaConnection decides who may use a Kafka cluster. Nothing is added by default.
        """
        assert not [m for m in rendered() if m["metadata"]["name"].endswith(("-view", "-edit"))]
        manifests = rendered("production")
        view, edit = (triples(of_kind(manifests, "ClusterRole", suffix)["rules"]) for suffix in ("-view", "-edit"))
        written = ("kafkarebalances", "kafkareassignmentthrottles")
        group = "kafkarebalance.dev"
        plurals = ("kafkaconnections", *written)
        read = {(group, plural, verb) for plural in plurals for verb in ("get", "list", "watch")}
        assert view == read | {(group, f"{plural}/status", "get") for plural in plurals}
        verbs = ("create", "update", "patch", "delete", "deletecollection")
        assert edit == {(group, plural, verb) for plural in written for verb in verbs}

    def test_approvers(self) -> None:
        """Off by default; in single namespaces, the policy says nothing about the others."""
        kinds = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
        assert not [m for m in rendered() if m["kind"] in kinds]
        policy, binding = (of_kind(rendered("production"), kind) for kind in kinds)
        assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
        assert policy["spec"]["failurePolicy"] == "Fail"
        some = of_kind(rendered("namespaced", "--set", "approval.groups={a}"), kinds[1])
        (rule,) = some["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert rule["values"] == ["kafka", "payments"]
