"""A report of a small plan, for the tests of its pages and charts."""

from datetime import UTC, datetime, timedelta

from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.load_outcome import LoadOutcome, OutsideBroker, OutsideReason, ResourceBalance
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run_record import RunRecord, StepRecord
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.report.plan_contents import broker_rows, copy_flows, partition_rows_of, plan_facts_of
from kafka_rebalance.report.report_contents import BatchCopy, Conditioned, Course, Report

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BROKERS = tuple(Broker(BrokerId(n), rack) for n, rack in ((1, "a"), (2, "b"), (3, "a"), (4, "b")))


def planned(topic, number, current, target, size=1 << 20):
    return PlannedPartition(TopicPartition(topic, number), replicas_of(*current), replicas_of(*target), size_bytes=size)


PLAN = Plan(
    (
        planned("orders", 0, [1, 2], [3, 2]),
        planned("orders", 1, [2, 1], [2, 3], 5 << 20),
        planned("<b>&topic", 0, [1, 2], [2, 1]),
    ),
    Certificate(2, optimal=True),
)
KIB = 1 << 10
LOAD = LoadOutcome(
    (
        ResourceBalance(LoadResource.DISK, 10, 120.0, 104.0, 1, 0, (5, 5), (6, 4), (5, 5)),
        ResourceBalance(
            LoadResource.BYTES_IN, 10, 180.4, 140.0, 1, 1, (50 * KIB,) * 2, (90 * KIB, 10 * KIB), (70 * KIB, 30 * KIB)
        ),
    ),
    6 << 20,
    5 << 20,
    replicas_of(1, 3),
    (OutsideBroker(BrokerId(1), LoadResource.BYTES_IN, 70 * KIB, 55 * KIB, OutsideReason.PARTITION_TOO_LARGE),),
)
LISTS = {TopicPartition("still", 0): replicas_of(1, 4)}
SIZES = {TopicPartition("still", 0): 3 << 20}
ROWS = broker_rows(PLAN, BROKERS, LISTS, SIZES, frozenset({BrokerId(1), BrokerId(2), BrokerId(3)}))


def record(steps=3):
    begin = NOW - timedelta(minutes=10)
    return RunRecord(
        "c", "kafka", "r", "run", PLAN.hash, "Succeeded", True, begin, NOW, 600.0, 1, 100, 20, False,
        tuple(
            StepRecord(
                TopicPartition("orders", n), begin + timedelta(seconds=60 * n), begin + timedelta(seconds=60 * n + 90),
                6 << 20, BrokerId(1), replicas_of(3), 50 << 20, (50 if n else 20) << 20, False, 1, 1,
            )
            for n in range(steps)
        ),
    )  # fmt: skip


def course(**more):
    return Course(
        phases={"completed": 1, "in flight": 1, "waiting": 1, "skipped": 0},
        bytes_moved=1 << 20,
        bytes_total=6 << 20,
        batch=[BatchCopy(TopicPartition("orders", 1), replicas_of(3), NOW, 4 << 20)],
        in_flight=1,
        conditions=[Conditioned("Ready", "False", "Rebalancing", "waits for <orders-1>", NOW)],
        skipped=[("orders-7", "NoLeader")],
        **more,
    )


def report(**more):
    return Report(
        **{
            "title": "KafkaRebalance kafka/r",
            "state": "Rebalancing",
            "made_at": NOW,
            "facts": plan_facts_of(PLAN),
            "brokers": ROWS,
            "whole_cluster": True,
            "flows": copy_flows(PLAN.partitions),
            "partitions": partition_rows_of(PLAN, {TopicPartition("orders", 0): 0}),
            "reasons": ["the broker ends with fewer replicas than it has"],
            "why": ["3 partitions are placed."],
            "risks": ["2 replicas share a rack."],
            **more,
        }
    )
