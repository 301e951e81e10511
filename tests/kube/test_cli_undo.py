"""kafka-rebalance undo on a real API server: the annotation is added to existing ones."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.kube.namespaces import Namespace

from kafka_rebalance.api.conditions import ReadySummary, summarise
from kafka_rebalance.api.resource_status import KafkaRebalanceStatus, PlanStatus
from kafka_rebalance.api.v1alpha1 import REBALANCES, UNDO_ANNOTATION, parse_rebalance, planning_hash
from kafka_rebalance.cli.options.resource_lookup import stores
from kafka_rebalance.errors import Refused
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin, Run, RunOutcome
from kafka_rebalance.model.topology import TopicPartition, replicas_of
from kafka_rebalance.reasons import Reason

pytestmark = pytest.mark.apiserver

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
MOVED = PlannedPartition(TopicPartition("t", 0), replicas_of(1, 2), replicas_of(3, 2))
PLAN = Plan((MOVED,), Certificate(1, optimal=True))


async def succeed(client: KubeClient, namespace: Namespace) -> None:
    """The state that the operator leaves: its records, and a Succeeded status."""
    rebalance = parse_rebalance(namespace.get(REBALANCES))
    uid, hashed = rebalance.metadata.uid, planning_hash(rebalance.spec)
    records = stores(client)
    await records.plans.save(uid, PLAN.hash, "c", PLAN, NOW)
    await records.origins.append(uid, "run-1", [Origin(p.tp, "", p.current) for p in PLAN.partitions])
    ended = (NOW, NOW, RunOutcome.SUCCEEDED)
    await records.runs.save(Run(uid, namespace.name, "a", "c", "run-1", hashed, PLAN.hash, *ended, started_at=NOW))
    status = KafkaRebalanceStatus(
        observed_generation=1,
        conditions=summarise((), ReadySummary.DONE, Reason.SUCCEEDED, "done", generation=1, now=NOW),
        plan=PlanStatus(
            hash=PLAN.hash, partitions=1, replica_moves=1, lower_bound=1, optimal=True, leader_moves=1, data_to_move=0
        ),
    )
    await client.patch_status(REBALANCES, namespace.name, "a", status.as_patch())


def command(namespace: Namespace, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).with_name("kafka-rebalance"))
    where = ("-n", namespace.name, "--operator-namespace", namespace.name)
    env = {**os.environ, "KUBECONFIG": str(namespace.cluster.admin_kubeconfig)}
    return subprocess.run(
        [program, "undo", "a", *where, *arguments], capture_output=True, text=True, env=env, check=False
    )


class TestUndo:
    """The whole program, on a real API server."""

    async def test_prints_then_asks_then_refuses(self, client: KubeClient, namespace: Namespace) -> None:
        """Printing changes nothing; the annotation is merged: existing ones and the generation do not change."""
        namespace.apply("KafkaRebalance", {})
        namespace.kubectl("annotate", f"{REBALANCES}.kafkarebalance.dev", "a", "example.com/owner=me")
        await succeed(client, namespace)

        before = namespace.get(REBALANCES)["metadata"]
        printed = command(namespace, "--print")
        assert printed.returncode == 0, printed.stderr
        (row,) = json.loads(printed.stdout)["partitions"]
        assert row == {"topic": "t", "partition": 0, "replicas": [1, 2], "original_replicas": [3, 2]}
        assert namespace.get(REBALANCES)["metadata"]["resourceVersion"] == before["resourceVersion"]

        done = command(namespace, "--yes")
        assert done.returncode == 0, done.stderr
        after = namespace.get(REBALANCES)["metadata"]
        assert after["annotations"] == before["annotations"] | {UNDO_ANNOTATION: PLAN.hash}
        assert after["generation"] == before["generation"]

        assert command(namespace, "--yes").returncode == 3


class TestAnnotate:
    async def test_removes_and_says_what_is_gone(self, client: KubeClient, namespace: Namespace) -> None:
        namespace.apply("KafkaRebalance", {})
        uid = namespace.get(REBALANCES)["metadata"]["uid"]
        assert await client.annotate(REBALANCES, namespace.name, "a", uid, {UNDO_ANNOTATION: "sha256:1"})
        assert namespace.get(REBALANCES)["metadata"]["annotations"][UNDO_ANNOTATION] == "sha256:1"
        assert await client.annotate(REBALANCES, namespace.name, "a", uid, {UNDO_ANNOTATION: None})
        assert UNDO_ANNOTATION not in namespace.get(REBALANCES)["metadata"]["annotations"]
        assert not await client.annotate(REBALANCES, namespace.name, "missing", uid, {UNDO_ANNOTATION: "sha256:1"})

    async def test_another_of_that_name(self, client: KubeClient, namespace: Namespace) -> None:
        """The resource was deleted and created again. It counts as gone, and the new one is not changed."""
        namespace.apply("KafkaRebalance", {})
        uid = namespace.get(REBALANCES)["metadata"]["uid"]
        namespace.kubectl("delete", f"{REBALANCES}.kafkarebalance.dev", "a")
        namespace.apply("KafkaRebalance", {})
        assert not await client.annotate(REBALANCES, namespace.name, "a", uid, {UNDO_ANNOTATION: "sha256:1"})
        assert UNDO_ANNOTATION not in namespace.get(REBALANCES)["metadata"]["annotations"]

    async def test_what_is_invalid(self, client: KubeClient, namespace: Namespace) -> None:
        """It is the right resource, so it does not count as gone."""
        namespace.apply("KafkaRebalance", {})
        uid = namespace.get(REBALANCES)["metadata"]["uid"]
        with pytest.raises(Refused, match="annotations"):
            await client.annotate(REBALANCES, namespace.name, "a", uid, {"no name": "x"})
