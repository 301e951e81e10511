"""The tables of a running rebalance in docs/cli.md are the output of the program.

The outputs of commands that need no server are compared in `tests/unit/cli/test_main_docs.py`.
"""

import re
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest
from tests.docs.pages import ROOT
from tests.unit.cli.commands.resource_runs import body, program, world

from kafka_rebalance.api.conditions import ConditionType, ReadySummary, set_condition, summarise
from kafka_rebalance.api.resource_status import (
    BatchRow,
    ByteProgress,
    Display,
    KafkaRebalanceStatus,
    PartitionProgress,
    PlanStatus,
    ProgressStatus,
    ReplicaProgress,
    StepProgress,
    ThrottleStatus,
)
from kafka_rebalance.api.spec_warnings import low_rate
from kafka_rebalance.api.throttle_resource import KafkaReassignmentThrottleStatus, ThrottledBroker
from kafka_rebalance.cli.commands import status_command

TEXT = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
KIB, RATE = 1024, 64 * 1024
BATCH = (
    ("orders", 8, (3, 1, 2), (4, 3, 1, 2), (4, 5, 3), 994 * KIB),
    ("orders", 10, (2, 3, 1), (4, 2, 3, 1), (4, 2, 3), 994 * KIB),
    ("orders", 11, (3, 1, 2), (3, 1, 2, 4), (3, 2, 4), 1946 * KIB),
    ("payments", 1, (2, 3, 1), (4, 2, 3, 1), (4, 3, 2), 1946 * KIB),
)


def resource():
    """A rebalance of 13 partitions after 17 seconds."""
    begun = NOW - timedelta(seconds=17)
    conditions = summarise(
        (), ReadySummary.IN_PROGRESS, "Rebalancing", "moving replicas in small steps", generation=1, now=begun
    )
    for kind, status, reason, message in (
        (ConditionType.PLANNED, True, "Planned", "13 partitions, 14 replica moves"),
        (ConditionType.REBALANCING, True, "Rebalancing", "moving replicas in small steps"),
        (ConditionType.THROTTLE_APPLIED, True, "Applied", "64.0 KiB/s from spec.throttle"),
        (ConditionType.SUCCEEDED, False, "Rebalancing", "moving replicas in small steps"),
        (ConditionType.SPEC_WARNING, True, "VeryLowRate", f"spec.throttle.leaderRate: {low_rate(RATE)}"),
    ):
        conditions = set_condition(conditions, kind, status, reason, message, generation=1, now=begun)
    rows = tuple(
        BatchRow(topic=topic, partition=n, current=at, step=step, target=to, adding=(4,), bytes_remaining=left)
        for topic, n, at, step, to, left in BATCH
    )
    status = KafkaRebalanceStatus(
        observed_generation=1,
        conditions=conditions,
        plan=PlanStatus(
            hash="sha256:8e4f443686e66a986d79b32a9f2dadec9bd303ca66f7b3c8b137a536ffdac448",
            partitions=13,
            replica_moves=14,
            lower_bound=14,
            optimal=True,
            leader_moves=6,
            data_to_move=27341 * KIB,
        ),
        progress=ProgressStatus(
            percent=7,
            partitions=PartitionProgress(total=13, completed=0, in_flight=4, waiting=9),
            replica_moves=ReplicaProgress(total=14, completed=0),
            steps=StepProgress(completed=0, in_flight=4),
            bytes=ByteProgress(total=27341 * KIB, moved=1946 * KIB),
            rate=167 * KIB,
        ),
        throttle=ThrottleStatus(leader_rate=RATE, follower_rate=RATE, source="spec.throttle", brokers=5),
        current_batch=rows,
        current_batch_size=4,
        display=Display(progress="7%", eta="2m33s"),
    )
    return body(reported=status.as_patch()["status"], name="add-brokers", namespace="default")


def sample(command):
    """What the page shows below a command."""
    found = re.search(rf"^\$ kafka-rebalance {re.escape(command)}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None, command
    return [line.rstrip() for line in found[1].rstrip("\n").splitlines()]


@pytest.fixture
def at_noon():
    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return NOW

    with patch.object(status_command, "datetime", Clock):
        yield


def test_status(at_noon):
    done = program(world(resource()), "status", "add-brokers", "-n", "default")
    assert [line.rstrip() for line in done.out.splitlines()] == sample("status add-brokers")


def test_top():
    """The brokers' rates are those of the KafkaReassignmentThrottle."""
    brokers = (
        ThrottledBroker(id=1, leader_bytes_per_second=85094, follower_bytes_per_second=0),
        ThrottledBroker(id=4, leader_bytes_per_second=0, follower_bytes_per_second=167 * KIB),
    )
    reported = KafkaReassignmentThrottleStatus(brokers=brokers).as_patch()["status"]
    limits = body({"leaderRate": RATE}, reported, kind="KafkaReassignmentThrottle", name="limits")
    done = program(world(resource(), limits), "top", "-A", "--once")
    assert [line.rstrip() for line in done.out.splitlines()] == sample("top -A --once")


def test_approve_shows_the_plan():
    """Its first two lines are those of the status, with less space."""
    plan = sample("approve add-brokers")[:2]
    assert [" ".join(line.split()) for line in plan] == [
        " ".join(line.split()) for line in sample("status add-brokers")[3:5]
    ]
