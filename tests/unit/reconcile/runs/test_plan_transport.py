"""The request to a planner process, and its answer."""

from dataclasses import replace
from io import BytesIO

import pytest

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.goals import LoadGoal, LoadResource
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition, SkippedPartition
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning.problem.request import Goals, PartitionInput, PlanRequest
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.runs import plan_transport
from kafka_rebalance.reconcile.runs.plan_transport import read_answer, read_request, write_answer, write_request


def tp(number):
    return TopicPartition("t", number)


REQUEST = PlanRequest(
    brokers=tuple(Broker(BrokerId(number), "a") for number in range(1, 5)),
    partitions=(
        PartitionInput(tp(0), replicas_of(1, 2), "id", 5, pinned=True, replica_bytes=(5, 6), loads=(1.5,), written=2.5),
        *(PartitionInput(tp(number), replicas_of(1, 2), "id", has_leader=False) for number in range(1, 6)),
    ),
    targets=frozenset({BrokerId(3)}),
    goals=Goals(load=(LoadGoal(LoadResource.DISK),)),
    assignment={tp(0): replicas_of(3, 4)},
)
PLAN = Plan(
    partitions=(
        PlannedPartition(tp(0), replicas_of(1, 2), replicas_of(3, 4), "id", 5),
        PlannedPartition(tp(1), replicas_of(1, 2), replicas_of(1, 2), "id", 0, elects=True),
        PlannedPartition(TopicPartition("other", 0), replicas_of(2), replicas_of(3)),
    ),
    certificate=Certificate(2, optimal=True),
    skipped=(SkippedPartition(tp(2), Reason.NO_LEADER),),
)


_ASKED = PlannedPartition(tp(0), replicas_of(1, 2), replicas_of(3, 4), "id", 5)
DIFFERING = replace(
    PLAN,
    partitions=(
        replace(_ASKED, current=replicas_of(2, 1)),
        replace(_ASKED, topic_id="other"),
        replace(_ASKED, size_bytes=6),
        replace(_ASKED, elects=True),
    ),
)
"""No partition is as it was asked about."""


@pytest.fixture(params=[1, 2, 1000])
def pieces(request, monkeypatch):
    monkeypatch.setattr(plan_transport, "_PIECE", request.param)


@pytest.mark.usefixtures("pieces")
class TestTransport:
    def test_the_request_arrives(self):
        """Every field, in however many pieces."""
        assert read_request(BytesIO(write_request(REQUEST))) == REQUEST

    @pytest.mark.parametrize("made", [PLAN, replace(PLAN, partitions=()), DIFFERING])
    def test_the_plan_comes_back(self, made):
        """With the partitions that were asked about, and others."""
        assert read_answer(write_answer(made, REQUEST), REQUEST) == made

    def test_what_it_shares_with_the_request_is_not_kept_twice(self):
        """Names and lists of 200,000 partitions take 40 MB."""
        first = read_answer(write_answer(PLAN, REQUEST), REQUEST).partitions[0]
        assert (first.tp is REQUEST.partitions[0].tp, first.current is REQUEST.partitions[0].replicas) == (True, True)


def test_what_was_refused():
    """With its reason and its message."""
    refused = read_answer(write_answer(Refused(Reason.UNKNOWN_BROKER, "broker 9"), REQUEST), REQUEST)
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.message) == (Reason.UNKNOWN_BROKER, "broker 9")
