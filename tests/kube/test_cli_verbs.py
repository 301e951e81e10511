"""The commands that change a resource, on a real API server: its merge patches, conflicts and preconditions."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
import yaml
from e2e.bench.kube import KubectlError
from e2e.bench.waiting import wait_until
from tests.chart.rendering import rendered
from tests.fakes.whole_program import Done, run_program
from tests.kube.namespaces import Namespace, body

from kafka_rebalance.api.conditions import ReadySummary, summarise
from kafka_rebalance.api.resource_status import KafkaRebalanceStatus, PlanStatus
from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.errors import Refused
from kafka_rebalance.kube.api_errors import Conflict
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.spec_changes import change
from kafka_rebalance.reasons import Reason

pytestmark = pytest.mark.apiserver

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
HASH = f"sha256:{'a' * 64}"
MANUAL = {"approval": {"policy": "Manual"}}


async def command(namespace: Namespace, *arguments: str) -> Done:
    """Run the program in a thread, which a new process would take a second for."""
    return await asyncio.to_thread(run_program, *arguments, "-n", namespace.name)


@pytest.fixture(autouse=True)
def kubeconfig(namespace: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(namespace.cluster.admin_kubeconfig))


def spec(namespace: Namespace, plural: str = REBALANCES, name: str = "a") -> dict:
    return namespace.get(plural, name)["spec"]


async def plan(client: KubeClient, namespace: Namespace) -> None:
    """The status that the operator writes when a plan waits for approval."""
    conditions = summarise((), ReadySummary.IN_PROGRESS, Reason.AWAITING_APPROVAL, "waits", generation=1, now=NOW)
    figures = {"partitions": 1, "replica_moves": 1, "lower_bound": 1, "optimal": True, "leader_moves": 1}
    made = PlanStatus(hash=HASH, data_to_move=0, **figures)
    status = KafkaRebalanceStatus(observed_generation=1, conditions=conditions, plan=made, completed_at=NOW)
    await client.patch_status(REBALANCES, namespace.name, "a", status.as_patch())


async def test_the_commands(client: KubeClient, namespace: Namespace) -> None:
    """Each changes its field only; a second time it changes nothing."""
    namespace.apply("KafkaRebalance", MANUAL)
    namespace.apply("KafkaReassignmentThrottle", {"leaderRate": "50Mi"}, "limits")
    await plan(client, namespace)
    assert namespace.get(REBALANCES)["status"]["completedAt"] == "2026-01-01T12:00:00Z"
    before = spec(namespace)

    done = await command(namespace, "approve", "a", "--yes")
    assert done.code == 0, done.err
    assert spec(namespace)["approval"] == before["approval"] | {"planHash": HASH}

    for arguments, field, value in (
        (("suspend", "a"), "execution", before["execution"] | {"suspend": True}),
        (("resume", "a"), "execution", before["execution"] | {"suspend": False}),
        (("throttle", "a", "--rate", "5Mi"), "throttle", {"leaderRate": "5Mi", "followerRate": "5Mi"}),
        (("throttle", "a", "--unlimited"), "throttle", {"unlimited": True}),
        (("throttle", "a", "--leader-rate", "1Mi"), "throttle", {"leaderRate": "1Mi"}),
        (("throttle", "a", "--log-dir-rate", "2Mi"), "throttle", {"leaderRate": "1Mi", "logDirRate": "2Mi"}),
    ):
        done = await command(namespace, *arguments)
        assert done.code == 0, done.err
        assert spec(namespace)[field] == value
    done = await command(namespace, "freeze")
    assert done.code == 0, done.err
    assert spec(namespace, REASSIGNMENT_THROTTLES, "limits")["freeze"] is True
    version = namespace.get(REASSIGNMENT_THROTTLES, "limits")["metadata"]["resourceVersion"]
    assert "already frozen" in (await command(namespace, "freeze", "limits")).out
    assert namespace.get(REASSIGNMENT_THROTTLES, "limits")["metadata"]["resourceVersion"] == version

    listed = await command(namespace, "list", "-o", "json")
    assert [row["metadata"]["name"] for row in json.loads(listed.out)["items"]] == ["a"]
    assert set(namespace.kubectl("get", "kafka-rebalance", "-o", "name").split()) == {
        "kafkareassignmentthrottle.kafkarebalance.dev/limits",
        "kafkarebalance.kafkarebalance.dev/a",
    }
    assert "APPROVAL" in namespace.kubectl("get", "krb", "-o", "wide")

    done = await command(namespace, "cancel", "a", "--policy", "Abandon", "--yes")
    assert done.code == 0, done.err
    assert (await command(namespace, "list", "-o", "name")).out == ""


async def test_a_change_in_between_is_seen(client: KubeClient, namespace: Namespace) -> None:
    """By the resource version of the patch; an unknown field is refused; another uid, or version, is not deleted."""
    namespace.apply("KafkaRebalance", {})
    looked_at = []

    def decide(found: dict) -> dict:
        looked_at.append(found["spec"]["priority"])
        if len(looked_at) == 1:
            namespace.kubectl("patch", "krb", "a", "--type=merge", "-p", '{"spec": {"priority": 7}}')
        return {"spec": {"execution": {"suspend": True}}}

    assert await change(client, REBALANCES, namespace.name, "a", decide) is not None
    assert looked_at == [0, 7]
    assert (spec(namespace)["priority"], spec(namespace)["execution"]["suspend"]) == (7, True)

    with pytest.raises(Refused, match="unknown field"):
        await change(client, REBALANCES, namespace.name, "a", lambda _: {"spec": {"suspended": True}})
    with pytest.raises(Conflict):
        await client.delete_resource(REBALANCES, namespace.name, "a", "another-uid")
    assert not await client.delete_resource(REBALANCES, namespace.name, "gone", "another-uid")

    seen = namespace.get(REBALANCES)["metadata"]
    namespace.kubectl("patch", "krb", "a", "--type=merge", "-p", '{"spec": {"priority": 8}}')
    with pytest.raises(Conflict):
        await client.delete_resource(REBALANCES, namespace.name, "a", seen["uid"], seen["resourceVersion"])
    version = namespace.get(REBALANCES)["metadata"]["resourceVersion"]
    assert await client.delete_resource(REBALANCES, namespace.name, "a", seen["uid"], version)


def test_only_approvers_approve(namespace: Namespace) -> None:
    """The chart's policy, restricted to this namespace; the user may otherwise write everything."""
    values = f"approval.groups={{kafka-approvers}},watchNamespaces={{{namespace.name}}}"
    policies = [m for m in rendered("default", "--set", values) if m["kind"].startswith("ValidatingAdmission")]
    cluster = namespace.cluster
    cluster.apply(yaml.safe_dump_all(policies))
    user = ("--as=somebody", "--as-group=system:masters")
    approver = ("--as=anybody", "--as-group=system:masters", "--as-group=kafka-approvers")
    try:
        _wait_until_enforced(namespace, user)
        manual = json.dumps(body("KafkaRebalance", "a", MANUAL))
        namespace.kubectl("create", "-f", "-", *user, stdin=manual)
        namespace.kubectl("patch", "krb", "a", "--type=merge", "-p", '{"spec": {"priority": 7}}', *user)
        for approval in ({"planHash": HASH}, {"policy": "Automatic"}, None):
            patch = json.dumps({"spec": {"approval": approval}})
            with pytest.raises(KubectlError, match=r"only approvers may change spec\.approval"):
                namespace.kubectl("patch", "krb", "a", "--type=merge", "-p", patch, *user)
        patch = json.dumps({"spec": {"approval": {"planHash": HASH}}})
        namespace.kubectl("patch", "krb", "a", "--type=merge", "-p", patch, *approver)
        assert spec(namespace)["approval"]["planHash"] == HASH
        approved = json.dumps(body("KafkaRebalance", "b", {"approval": {"policy": "Manual", "planHash": HASH}}))
        with pytest.raises(KubectlError, match="only approvers may create a KafkaRebalance"):
            namespace.kubectl("create", "-f", "-", *user, stdin=approved)
    finally:
        cluster.kubectl("delete", "-f", "-", stdin=yaml.safe_dump_all(policies))


def _wait_until_enforced(namespace: Namespace, user: tuple[str, ...]) -> None:
    """The API server compiles the policy some time after it was created."""
    automatic = json.dumps(body("KafkaRebalance", "x", {}))

    def refused() -> bool:
        try:
            namespace.kubectl("create", "--dry-run=server", "-f", "-", *user, stdin=automatic)
        except KubectlError as error:
            return "only approvers may create a KafkaRebalance" in str(error)
        return False

    wait_until("the policy is enforced", refused)
