"""The planner against an independent judge on random small clusters."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.property.planning_judge import check, result
from tests.property.planning_optima import optimum

from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest, plan

DEPARTED = (97, 98, 99)


@st.composite
def requests(draw: st.DrawFn, most_partitions: int = 9, most_brokers: int = 7) -> PlanRequest:
    """Mixed RF, uneven racks, brokers without a rack, departing and dead brokers, gaps, missing leaders."""
    ids = draw(st.lists(st.integers(0, 12), min_size=1, max_size=most_brokers, unique=True))
    racks = st.sampled_from([None, *(f"r{i}" for i in range(draw(st.integers(1, 4))))])
    rack = racks if draw(st.booleans()) else racks.filter(lambda r: r is not None)
    brokers = tuple(Broker(BrokerId(i), draw(rack)) for i in ids)
    targets = draw(st.lists(st.sampled_from(ids), min_size=1, unique=True))
    holders = draw(st.sampled_from([ids, [*ids, *DEPARTED]]))
    partitions = []
    for number in range(draw(st.integers(0, most_partitions))):
        rf = draw(st.integers(1, min(len(targets), len(holders), 4)))
        replicas = draw(st.lists(st.sampled_from(holders), min_size=rf, max_size=rf, unique=True))
        tp = TopicPartition(draw(st.sampled_from("ab")), number * 2)
        has_leader = draw(st.integers(0, 9)) > 0
        partitions.append(PartitionInput(tp, replicas_of(*replicas), size_bytes=number, has_leader=has_leader))
    goals = Goals(draw(st.sampled_from(RackAwareness)))
    return PlanRequest(brokers, tuple(partitions), frozenset(BrokerId(i) for i in targets), goals)


class TestAgainstTheOracle:
    @given(requests())
    def test_every_level_is_the_exact_optimum(self, request_: PlanRequest) -> None:
        """No plan has fewer violations, then more even counts, fewer moves or bytes, more even leaders and pairs."""
        made = plan(request_)
        assert made.certificate.optimal
        assert check(request_, made) == optimum(request_, fewest_bytes=True)


class TestInvariants:
    @given(requests(most_partitions=30, most_brokers=9), st.booleans(), st.booleans())
    def test_hard_rules_hold_whatever_the_goals(self, request_: PlanRequest, leaders: bool, order: bool) -> None:
        """RF kept, brokers distinct and eligible, and the plan's figures match a recount."""
        goals = replace(request_.goals, leaders=leaders, follower_order=order)
        asked = replace(request_, goals=goals)
        made = plan(asked)
        check(asked, made)
        if not leaders:
            moved = [p for p in made.partitions if p.leader_moves]
            assert all(p.current[0] not in p.target for p in moved)

    @given(requests(most_partitions=20), st.randoms(use_true_random=False))
    def test_the_order_of_listing_does_not_matter(self, request_: PlanRequest, random: st.DataObject) -> None:
        """The same cluster listed in another order gives the same hash."""
        brokers, partitions = list(request_.brokers), list(request_.partitions)
        random.shuffle(brokers)
        random.shuffle(partitions)
        shuffled = replace(request_, brokers=tuple(brokers), partitions=tuple(partitions))
        assert plan(shuffled).hash == plan(request_).hash

    @given(requests(most_partitions=20))
    def test_a_plan_of_the_planned_state_is_empty(self, request_: PlanRequest) -> None:
        """Planning again after the plan was carried out changes nothing."""
        after = result(request_, plan(request_))
        again = tuple(replace(p, replicas=after.get(p.tp, p.replicas)) for p in request_.partitions)
        assert plan(replace(request_, partitions=again)).partitions == ()
