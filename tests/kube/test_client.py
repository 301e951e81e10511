"""The client on a real API server: status, finalizers, Secrets, Events and errors."""

import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from e2e.bench.kube import KubeCluster
from kubernetes import client as kubernetes_client
from tests.kube.namespaces import Namespace

from kafka_rebalance.api.conditions import ConditionType, ReadySummary, set_condition, summarise
from kafka_rebalance.api.resource_status import (
    MAX_PLAN_BROKERS,
    BatchRow,
    BrokerPlanRow,
    ByteProgress,
    Display,
    KafkaRebalanceStatus,
    LoadStatus,
    LogDirMoveProgress,
    OutsideRow,
    PartitionProgress,
    PlanStatus,
    ProgressStatus,
    ReplicaProgress,
    ResourceLoadRow,
    SkippedRow,
    SpreadStatus,
    StepProgress,
    ThrottleStatus,
)
from kafka_rebalance.api.v1alpha1 import FINALIZER, REASSIGNMENT_THROTTLES, REBALANCES, parse_rebalance, parse_throttle
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.kube.api_errors import Conflict
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.report.throttle_report import (
    BrokerThrottleRow,
    SideRow,
    ThrottleView,
    build_throttle_status,
)

pytestmark = pytest.mark.apiserver

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def full_status(generation: int) -> KafkaRebalanceStatus:
    """A status with every field set, at its maximum size."""
    conditions = summarise((), ReadySummary.IN_PROGRESS, Reason.REBALANCING, "on", generation=generation, now=NOW)
    for kind in ConditionType:
        if kind not in {condition.type for condition in conditions}:
            conditions = set_condition(conditions, kind, None, Reason.PENDING, "", generation=generation, now=NOW)
    row = BatchRow(
        topic="t" * 249,
        partition=1,
        current=(1, 2, 3),
        step=(4, 1, 2, 3),
        target=(4, 5, 6),
        adding=(4,),
        removing=(3,),
        since=NOW,
        bytes_remaining=2**45,
    )
    gets = {"replicas_in": 9, "replicas_out": 8, "leaders_in": 3, "leaders_out": 2}
    gets |= {"bytes_in": 2**45, "bytes_out": 2**44}
    return KafkaRebalanceStatus(
        observed_generation=generation,
        cluster_id="MkU3OEVBNTcwNTJENDM2Qg",
        conditions=conditions,
        plan=PlanStatus(
            hash="sha256:" + "0" * 64,
            ref="plan-0",
            partitions=3,
            replica_moves=4,
            lower_bound=4,
            optimal=True,
            before=SpreadStatus(fewest=1, most=9),
            after=SpreadStatus(fewest=2, most=5),
            budget_reached=True,
            per_broker=tuple(BrokerPlanRow(broker=broker, **gets) for broker in range(MAX_PLAN_BROKERS)),
            per_broker_count=900,
            reason="GainTooSmall",
            leader_moves=1,
            data_to_move=2**50,
            log_dir_moves=5,
            data_between_log_dirs=2**44,
            data_source="LogDirs",
            eta="1h2m-1h30m",
            eta_source="History",
            load=LoadStatus(
                resources=(
                    ResourceLoadRow(
                        resource="Disk",
                        peak_before=250,
                        peak_after=110,
                        peak_measured=112,
                        outside_before=3,
                        outside_after=1,
                    ),
                ),
                data_lower_bound=2**40,
                gap="1.13",
                outside=(OutsideRow(broker=7, resource="Disk", use=2**41, allowed=2**40, reason="PartitionTooLarge"),),
            ),
        ),
        progress=ProgressStatus(
            percent=37,
            partitions=PartitionProgress(total=3, completed=1, in_flight=1, waiting=1, skipped=0),
            replica_moves=ReplicaProgress(total=4, completed=1),
            log_dir_moves=LogDirMoveProgress(total=5, completed=2, in_flight=1),
            steps=StepProgress(completed=5, in_flight=1),
            bytes=ByteProgress(total=2**50, moved=2**40),
            rate=52428800,
            estimated_completion="2026-01-01T13:00:00Z",
            started_at=NOW,
            above_replication_factor=1,
        ),
        current_batch=(row,) * 20,
        current_batch_size=100,
        throttle=ThrottleStatus(
            leader_rate=1, follower_rate=2, log_dir_rate=3, source="spec.throttle", bound_by="other", brokers=6
        ),
        skipped=(SkippedRow(topic="lost", partition=0, reason="NoLeader"),) * 50,
        skipped_count=77,
        completed_at=NOW,
        display=Display(progress="37%", moved="1.2/3.4 GiB", eta="12m30s", throttle="50 MiB/s"),
    )


class TestStatus:
    """The API server stores every field of the models; a patch replaces the whole status."""

    async def test_nothing_is_pruned(self, namespace: Namespace, client: KubeClient) -> None:
        namespace.apply("KafkaRebalance", {})
        status = full_status(1)
        assert await client.patch_status(REBALANCES, namespace.name, "a", status.as_patch())
        found = await client.get(REBALANCES, namespace.name, "a")
        assert found is not None
        assert found["status"] == status.as_patch()["status"]
        assert parse_rebalance(found).status == status

    async def test_nothing_of_a_throttle_is_pruned(self, namespace: Namespace, client: KubeClient) -> None:
        """Unknown fields are not stored: a row without a side has none."""
        namespace.apply("KafkaReassignmentThrottle", {})
        side = SideRow(50 * 2**20, "KafkaRebalance a/b", 2**20)
        view = ThrottleView(
            (BrokerThrottleRow(BrokerId(1), side, side), BrokerThrottleRow(BrokerId(2), side)), replicas=3, foreign=2
        )
        mine = parse_throttle(await client.get(REASSIGNMENT_THROTTLES, namespace.name, "a") or {})
        status = build_throttle_status(mine, mine, view, cluster_id="c", now=NOW)
        assert await client.patch_status(REASSIGNMENT_THROTTLES, namespace.name, "a", status.as_patch())
        found = await client.get(REASSIGNMENT_THROTTLES, namespace.name, "a")
        assert found is not None
        assert parse_throttle(found).status == status
        first, second = found["status"]["brokers"]
        assert [first] == status.as_patch()["status"]["brokers"][:1]
        assert sorted(second) == sorted(["id", *(key for key in first if key.startswith("leader"))])

    async def test_columns_of_a_throttle(self, namespace: Namespace, client: KubeClient) -> None:
        """The columns of `kubectl get krt`."""
        namespace.apply("KafkaReassignmentThrottle", {"leaderRate": "50Mi"})
        mine = parse_throttle(await client.get(REASSIGNMENT_THROTTLES, namespace.name, "a") or {})
        view = ThrottleView((BrokerThrottleRow(BrokerId(1), SideRow(2**20, "x")),), replicas=1, foreign=1)
        status = build_throttle_status(mine, mine, view, cluster_id="c", now=NOW)
        await client.patch_status(REASSIGNMENT_THROTTLES, namespace.name, "a", status.as_patch())
        head, row = namespace.kubectl("get", "krt").splitlines()
        assert head.split() == ["NAME", "STATE", "LEADER", "FOLLOWER", "BROKERS", "FOREIGN", "AGE"]
        assert row.split()[:7] == ["a", "Applied", "1.0", "MiB/s", "-", "1", "1"]

    async def test_what_is_gone_is_removed(self, namespace: Namespace, client: KubeClient) -> None:
        namespace.apply("KafkaRebalance", {})
        await client.patch_status(REBALANCES, namespace.name, "a", full_status(1).as_patch())
        small = KafkaRebalanceStatus(observed_generation=2)
        await client.patch_status(REBALANCES, namespace.name, "a", small.as_patch())
        found = await client.get(REBALANCES, namespace.name, "a")
        assert found is not None
        assert parse_rebalance(found).status == small
        assert "plan" not in found["status"]

    async def test_of_another_version(self, namespace: Namespace, client: KubeClient) -> None:
        """Refused by the resource version; a uid in the patch is ignored, so it protects no resource of that name."""
        namespace.apply("KafkaRebalance", {})
        first = namespace.get(REBALANCES)["metadata"]
        seen = {"metadata": {"resourceVersion": first["resourceVersion"]}}
        assert await client.patch_status(REBALANCES, namespace.name, "a", {**full_status(1).as_patch(), **seen})
        with pytest.raises(Conflict):
            await client.patch_status(REBALANCES, namespace.name, "a", {**full_status(2).as_patch(), **seen})
        assert namespace.get(REBALANCES)["status"]["observedGeneration"] == 1
        another = {"metadata": {"uid": "6e0d3c46-5a25-4c09-9f2a-000000000000"}}
        assert await client.patch_status(REBALANCES, namespace.name, "a", {**full_status(3).as_patch(), **another})
        assert namespace.get(REBALANCES)["status"]["observedGeneration"] == 3

    async def test_of_a_resource_that_is_gone(self, namespace: Namespace, client: KubeClient) -> None:
        assert not await client.patch_status(REBALANCES, namespace.name, "a", full_status(1).as_patch())
        assert await client.get(REBALANCES, namespace.name, "a") is None

    async def test_columns(self, namespace: Namespace, client: KubeClient) -> None:
        namespace.apply("KafkaRebalance", {})
        await client.patch_status(REBALANCES, namespace.name, "a", full_status(1).as_patch())
        head, row = namespace.kubectl("get", "krb").splitlines()
        assert head.split() == ["NAME", "STATE", "PROGRESS", "MOVED", "ETA", "THROTTLE", "AGE"]
        assert row.split()[:-1] == ["a", "Rebalancing", "37%", "1.2/3.4", "GiB", "12m30s", "50", "MiB/s"]

    async def test_list(self, namespace: Namespace, client: KubeClient) -> None:
        namespace.apply("KafkaRebalance", {}, name="a")
        namespace.apply("KafkaRebalance", {}, name="b")
        here = await client.list_resources(REBALANCES, namespace.name)
        everywhere = await client.list_resources(REBALANCES)
        assert [found["metadata"]["name"] for found in here] == ["a", "b"]
        assert {found["metadata"]["uid"] for found in here} <= {found["metadata"]["uid"] for found in everywhere}


class TestFinalizers:
    """The list is replaced only if the resource is unchanged; foreign entries are kept."""

    async def test_conflict(self, namespace: Namespace, client: KubeClient) -> None:
        namespace.apply("KafkaRebalance", {})
        stale = parse_rebalance(namespace.get(REBALANCES)).metadata
        namespace.kubectl("label", "krb", "a", "touched=yes")
        with pytest.raises(Conflict):
            await client.patch_finalizers(REBALANCES, namespace.name, "a", [FINALIZER], stale.resource_version)

    async def test_held_and_let_go(self, namespace: Namespace, client: KubeClient) -> None:
        namespace.apply("KafkaRebalance", {})
        foreign = "example.org/other"
        fresh = parse_rebalance(namespace.get(REBALANCES)).metadata
        held = await client.patch_finalizers(
            REBALANCES, namespace.name, "a", [foreign, FINALIZER], fresh.resource_version
        )
        assert held is not None
        namespace.kubectl("delete", "krb", "a", "--wait=false")
        deleting = parse_rebalance(namespace.get(REBALANCES)).metadata
        assert deleting.deleting
        assert deleting.finalizers == (foreign, FINALIZER)
        left = [name for name in deleting.finalizers if name != FINALIZER]
        after = await client.patch_finalizers(REBALANCES, namespace.name, "a", left, deleting.resource_version)
        assert after is not None
        version = after["metadata"]["resourceVersion"]
        await client.patch_finalizers(REBALANCES, namespace.name, "a", [], version)
        assert await client.get(REBALANCES, namespace.name, "a") is None
        assert await client.patch_finalizers(REBALANCES, namespace.name, "a", [], version) is None


class TestSecrets:
    """Values are decoded; a missing Secret is named."""

    async def test_read(self, namespace: Namespace, client: KubeClient) -> None:
        namespace.kubectl(
            "create", "secret", "generic", "user", "--from-literal=username=u", "--from-literal=password=p"
        )
        found = await client.read_secret(namespace.name, "user")
        assert found.data == {"username": b"u", "password": b"p"}
        assert found.uid == namespace.kubectl("get", "secret", "user", "-o", "jsonpath={.metadata.uid}")

    async def test_missing(self, namespace: Namespace, client: KubeClient) -> None:
        with pytest.raises(Refused, match=f"Secret {namespace.name}/user does not exist") as refused:
            await client.read_secret(namespace.name, "user")
        assert refused.value.reason == "SecretNotFound"


class TestEvents:
    """`kubectl describe` shows an Event; if the namespace is being deleted, it is in the operator's namespace."""

    async def test_beside_the_resource(self, namespace: Namespace, client: KubeClient) -> None:
        namespace.apply("KafkaRebalance", {})
        about = parse_rebalance(namespace.get(REBALANCES)).metadata
        await client.create_event("KafkaRebalance", about, "Stalled", "x" * 2000, warning=True)
        described = namespace.kubectl("describe", "krb", "a")
        assert "Warning" in described
        assert "Stalled" in described

    async def test_while_the_namespace_is_deleted(self, namespace: Namespace, cluster: KubeCluster) -> None:
        namespace.apply("KafkaRebalance", {})
        operators = f"{namespace.name}-op"
        cluster.kubectl("create", "namespace", operators)
        client = KubeClient.connect(operators, kubeconfig=str(cluster.admin_kubeconfig))
        raw = namespace.get(REBALANCES)
        about = parse_rebalance(raw).metadata
        await client.patch_finalizers(REBALANCES, namespace.name, "a", [FINALIZER], about.resource_version)
        cluster.kubectl("delete", "namespace", namespace.name, "--wait=false")
        await client.create_event("KafkaRebalance", about, "RolledBackPartially", "t-0 was left at 1,2")
        events = cluster.kubectl("-n", operators, "get", "events", "-o", "jsonpath={.items[*].message}")
        assert events == f"{namespace.name}/a (its namespace is being deleted): t-0 was left at 1,2"
        await client.patch_finalizers(
            REBALANCES, namespace.name, "a", [], namespace.get(REBALANCES)["metadata"]["resourceVersion"]
        )
        cluster.kubectl("delete", "namespace", operators, "--wait=false")
        await client.close()


class TestUnreachable:
    """A missing answer is Transient, for any cause; no exception of the client library escapes."""

    @pytest.fixture
    async def nobody(self) -> AsyncIterator[KubeClient]:
        with socket.socket() as reserved:  # bound, not listening: connections are refused
            reserved.bind(("127.0.0.1", 0))
            configuration = kubernetes_client.Configuration(host=f"http://127.0.0.1:{reserved.getsockname()[1]}")
            connected = KubeClient(configuration, "kafka-rebalance")
            yield connected
            await connected.close()

    async def test_nobody_listens(self, nobody: KubeClient) -> None:
        with pytest.raises(Transient) as failed:
            await nobody.get(REBALANCES, "x", "y")
        assert failed.value.reason == "ApiServerUnreachable"
