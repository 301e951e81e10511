"""The metrics of a cluster and its rebalances, at the stages of a run."""

from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.errors import Permanent
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.report.engine_samples import (
    ClusterFigures,
    RoundTotals,
    ThrottleFigures,
    cluster_samples,
    rebalance_samples,
)
from kafka_rebalance.telemetry.metric_families import CLUSTER, FAMILIES, RESOURCE

FIXED = {*CLUSTER, *RESOURCE, "version"}


def samples_of(op):
    """By family and the labels that are not of the resource or the cluster."""
    clock = op.clock
    found = [*cluster_samples(op.engine.figures)]
    found += rebalance_samples("c", op.rebalance, clock.now(), clock.monotonic(), op.engine.windows)
    return {
        (s.family, *(v for name, v in zip(FAMILIES[s.family].labels, s.labels, strict=True) if name not in FIXED)): s
        for s in found
    }


def values(op):
    return {key: sample.value for key, sample in samples_of(op).items()}


@pytest.fixture
async def copying():
    """Two partitions move; the copy to broker 3 is in flight, at 50 B/s, and the other has arrived."""
    op = OperatorInMemory(KafkaInMemory([1, 2, 3, 4], t=[[1, 2], [1, 2]]))
    op.kafka.slow = {3}
    op.assign(("t", 0, [1, 3]), ("t", 1, [1, 4]), throttle={"leaderRate": 50, "followerRate": 40})
    await op.until_true(lambda: op.kafka.flying)
    await op.round()
    await op.round()
    return op


class TestRun:
    async def test_copying(self, copying):
        """State, phases, bytes, throttle and time of the last progress."""
        found = values(copying)
        assert found["state", "Rebalancing"] == 1
        assert found["stalled",] == 0
        assert found["direction", "Forward"] == 1
        assert {key[1]: value for key, value in found.items() if key[0] == "partitions"} == {
            "Done": 1,
            "InFlight": 1,
            "Ready": 0,
            "Waiting": 0,
            "Skipped": 0,
        }
        assert (found["replica_moves",], found["replica_moves_completed",]) == (2, 1)
        assert found["copy_bytes",] == 200
        assert found["remaining_bytes",] == 200 - found["copied_bytes",]
        assert [found["throttle_bytes_per_second", side] for side in ("leader", "follower")] == [50, 40]
        assert found["throttle_ledger_entries", "rate"] > 0
        assert found["started_timestamp_seconds",] <= found["last_progress_timestamp_seconds",]
        assert ("completed_timestamp_seconds",) not in found
        assert ("step_block", "Suspended") not in found

    async def test_no_progress(self, copying):
        """The time of the last progress stays, however often it is scraped."""
        before = values(copying)["last_progress_timestamp_seconds",]
        for _ in range(5):
            await copying.round()
        assert values(copying)["last_progress_timestamp_seconds",] == before

    async def test_suspended(self, copying):
        """Why no step starts is a series of its own."""
        copying.edit(execution={"suspend": True})
        await copying.round()
        assert values(copying)["step_block", "Suspended"] == 1

    async def test_unlimited(self, copying):
        """A side without a rate has no series."""
        copying.edit(throttle={"unlimited": True})
        await copying.round()
        assert not [key for key in values(copying) if key[0] == "throttle_bytes_per_second"]

    async def test_succeeded(self, copying):
        """Only what stays true: state and end. The ledger is empty."""
        copying.kafka.arrive()
        await copying.until_closed()
        await copying.round()
        found = values(copying)
        assert {key[0] for key in found if FAMILIES[key[0]].labels[:3] == RESOURCE} == {
            "state",
            "stalled",
            "completed_timestamp_seconds",
        }
        assert found["state", "Succeeded"] == 1
        assert found["throttle_ledger_entries", "rate"] == 0

    async def test_rolling_back(self, copying):
        """After the resource was deleted."""
        copying.delete()
        await copying.round()
        assert values(copying)["direction", "Rollback"] == 1

    async def test_held_partitions(self):
        """A partition without a leader counts with its reason."""
        op = OperatorInMemory(KafkaInMemory([1, 2, 3], t=[[1, 2], [1, 2]]))
        op.kafka.slow = {3}
        op.assign(("t", 0, [1, 3]), ("t", 1, [1, 3]), execution={"parallelPartitionCount": 1})
        await op.until_true(lambda: op.kafka.flying)
        op.kafka.lead("t", 1, None)
        await op.round()
        assert values(op)["held_partitions", "Waiting", "NoLeader"] == 1

    async def test_window(self, copying):
        """When the open window closes."""
        now = copying.clock.now()
        window = {"cron": f"{now.minute} {now.hour} * * *", "duration": "1h", "timeZone": "UTC"}
        copying.edit(execution={"windows": [window]})
        assert ("window_end_timestamp_seconds",) not in values(copying)  # computed in rounds, never in a scrape
        await copying.round()
        closes = values(copying)["window_end_timestamp_seconds",]
        assert closes == (now.replace(second=0, microsecond=0) + timedelta(hours=1)).timestamp()


class TestCluster:
    def test_figures(self):
        """Of one cluster; each family with its labels."""
        rounds = RoundTotals().plus(2.0, 0.5, failed=False).plus(1.0, 0.25, failed=True)
        throttle = ThrottleFigures({"rate": 3, "list": 2, "cordon": 0}, 1, True, 4, Reason.THROTTLE_LEDGER_DAMAGED)
        found = {
            (s.family, *s.labels): s
            for s in cluster_samples(ClusterFigures("c", 6, rounds, throttle, Reason.KAFKA_UNREACHABLE, 2))
        }
        assert found["rounds_total", "c", "failed"].value == 1
        assert (found["round_duration_seconds", "c"].value, found["round_duration_seconds", "c"].count) == (3.0, 2)
        assert found["round_cpu_seconds_total", "c"].value == 0.75
        assert found["round_problem", "c", "KafkaUnreachable"].value == 1
        assert found["round_problem", "c", "ThrottleLedgerDamaged"].value == 1
        assert found["throttle_ledger_entries", "c", "list"].value == 2
        assert found["throttle_contested", "c"].value == 1

    async def test_a_failed_round(self, copying):
        """Is counted, with its reason until a round succeeds."""
        describe = copying.kafka.describe_cluster

        async def refused():
            raise Permanent("SomethingNew", "no")

        copying.kafka.describe_cluster = refused
        await copying.round()
        found = values(copying)
        assert found["rounds_total", "failed"] == 1
        assert found["round_problem", "Other"] == 1
        copying.kafka.describe_cluster = describe
        await copying.round()
        assert not [key for key in values(copying) if key[0] == "round_problem"]


class TestCardinality:
    async def test_no_series_for_each_topic_partition_or_broker(self):
        """A run of 300 partitions of 100 topics on 30 brokers has as many series as one of two partitions."""

        async def series(topics, brokers):
            lists = {f"t{n}": [[1, 2]] * 3 for n in range(topics)}
            op = OperatorInMemory(KafkaInMemory(range(1, brokers + 1), **lists))
            op.kafka.slow = set(range(3, brokers + 1))
            op.assign(*((f"t{n}", i, [1, 3 + (n + i) % (brokers - 2)]) for n in range(topics) for i in range(3)))
            await op.until_true(lambda: op.kafka.flying)
            await op.round()
            return samples_of(op).keys()

        assert await series(100, 30) == await series(1, 5)

    def test_labels_are_of_few_values(self):
        """No family has a label for a topic, a partition or a broker, or one that Prometheus sets for a target."""
        labels = {label for family in FAMILIES.values() for label in family.labels}
        assert not labels & {"topic", "partition", "broker", "plan_hash", "namespace", "name", "cluster", "job"}
