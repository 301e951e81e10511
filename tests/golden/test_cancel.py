"""KIP-236's cancel: the calls for each golden case, until nothing is left to send."""

import json
from pathlib import Path

import pytest

from kafka_rebalance.execution.limits import Ceilings, Limits
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation, judge
from kafka_rebalance.execution.rollback import Skip, drop_set, rollback_target
from kafka_rebalance.execution.schedule import RebalanceShare, schedule
from kafka_rebalance.execution.steps import Elect
from kafka_rebalance.model.topology import Broker, ClusterState, PartitionState, TopicPartition, replicas_of

CASES = {case["name"]: case for case in json.loads((Path(__file__).parent / "cancel.json").read_text())}
TP = TopicPartition("t", 0)
BROKERS = {b: Broker(b) for b in range(1, 7)}
LIMITS = Limits(1, 10, 10, 100)


def at_rest(*ids, leader=None):
    replicas = replicas_of(*ids)
    return PartitionState(TP, "", replicas, frozenset(replicas), leader or replicas[0])


def in_flight(original, wanted):
    """The metadata of ``original`` in flight to ``wanted``: the new list, then the removing replicas."""
    adding = tuple(b for b in wanted if b not in original)
    removing = tuple(b for b in original if b not in wanted)
    return PartitionState(
        TP, "", replicas_of(*wanted, *removing), frozenset(original), original[0], replicas_of(*adding), removing
    )


def move(origin, target):
    return PartitionMove(TP, "", replicas_of(*origin), replicas_of(*origin), replicas_of(*target))


def carried_out(move, direction, state, *, after_null=None):
    """All calls until the partition is done, and its final state; brokers behave as recorded."""
    calls = []
    for _ in range(10):
        seen = Observation(ClusterState("c", BROKERS, {TP: state}), {TP.topic: 1})
        status = judge(move, seen, direction, parallel_replicas=1)
        orders = schedule([RebalanceShare({TP: status}, {}, LIMITS)], seen.cluster, Ceilings())[0]
        if orders.cancels:
            calls.append("null")
            state = after_null
        elif TP in orders.alters:
            row = {"alter": list(orders.alters[TP])}
            if status.call.until_in_sync:
                row["until"] = f"{list(status.call.until_in_sync)} in the ISR"
            calls.append(row)
            leader = state.leader if state.leader in orders.alters[TP] else None
            state = at_rest(*orders.alters[TP], leader=leader)
        elif orders.elections:
            assert isinstance(status.call, Elect)
            calls.append({"elect": status.call.leader})
            state = at_rest(*state.replicas, leader=status.call.leader)
        else:
            assert status.phase is MovePhase.DONE
            return calls, state
    raise AssertionError(f"still going after {calls}")


class TestGoldenCancel:
    def test_order_after_null(self):
        """A null restores the set but not the order, so the origin's order is sent and its leader elected."""
        case = CASES["order_after_null"]
        start = in_flight(case["original"], case["inFlight"])
        assert start.leader == case["leaderBefore"]
        # The recorded order makes broker 2 the preferred leader: automatic leader rebalancing has elected it meanwhile.
        left = at_rest(*case["brokerLeaves"])
        calls, end = carried_out(move(case["original"], case["inFlight"]), Direction.ROLLBACK, start, after_null=left)
        assert calls == case["calls"]
        assert (list(end.replicas), end.leader) == (case["original"], case["leaderBefore"])

    def test_superset_null(self):
        """If the target is a superset that ends with the original order, null restores it: nothing else is sent."""
        case = CASES["superset_null"]
        start = in_flight(case["original"], case["inFlight"])
        calls, end = carried_out(
            move(case["original"], case["inFlight"]),
            Direction.ROLLBACK,
            start,
            after_null=at_rest(*case["brokerLeaves"]),
        )
        assert calls == case["calls"]
        assert list(end.replicas) == case["original"]

    def test_never_redirect(self):
        """A partition in flight never gets a new target, not even its original list: null first."""
        case = CASES["never_redirect"]
        start = in_flight(case["original"], case["inFlight"])
        left = at_rest(2, 3, 1, leader=1)
        calls, end = carried_out(move(case["wanted"], case["inFlight"]), Direction.ROLLBACK, start, after_null=left)
        assert calls == case["calls"]
        assert list(end.replicas) == case["wanted"]

    def test_new_target_in_flight(self):
        """KIP-236's duplicates: the superseded move is cancelled, then the new one starts from the current state."""
        case = CASES["new_target_in_flight"]
        start = in_flight(case["original"], case["inFlight"])
        superseded = move(case["original"], case["inFlight"])
        left = at_rest(*case["original"])
        calls, state = carried_out(superseded, Direction.REVERT, start, after_null=left)
        more, end = carried_out(move(case["original"], case["wanted"]), Direction.FORWARD, state)
        assert calls + more == case["calls"]
        assert list(end.replicas) == case["wanted"]

    def test_drop_set(self):
        """Preference to stay: the leader, in-sync replicas, others; those beyond the original count are dropped."""
        case = CASES["drop_set"]
        assigned = replicas_of(*case["assigned"])
        state = PartitionState(TP, "", assigned, frozenset(case["isr"]), case["leader"])
        assert sorted(drop_set(state, len(case["original"]))) == case["drop"]

    def test_dead_original(self):
        """An unregistered or fenced original broker is never added again."""
        case = CASES["dead_original"]
        alive = set(BROKERS) - set(case["dead"])
        origin, present = replicas_of(*case["original"]), replicas_of(*case["current"])
        found = rollback_target(origin, present, at_rest(*case["current"]), alive)
        assert isinstance(found, Skip)
        assert f"skipped: {found.reason}" == case["result"]

    @pytest.mark.parametrize("name", sorted(CASES))
    def test_every_case_has_a_test(self, name):
        """Each case in the file needs a test with its name."""
        assert hasattr(self, f"test_{name}")
