"""A rebalance may wait for good for a topic that may not be read, or for a rate, and so may those queued behind it."""

from types import SimpleNamespace

import pytest
from tests.simulation.conditions import ready
from tests.simulation.fault_scenario import FaultScenario

from kafka_rebalance.api.v1alpha1 import REBALANCES

FORBIDDEN = ("Stalled", "nothing has advanced for more than 15m: TopicForbidden (2, e.g. t0-1)")


def behind(name):
    """The state of a rebalance that is queued behind another one."""
    return "Queued", f"waits for a/{name}, which moves some of the same partitions; place 1"


def waiting(states, denied=("t0",)):
    """The names of those that wait for good. ``states``: by name, the topics selected, and reason and message."""
    bodies = {
        (REBALANCES, "a", name): {
            "spec": {"topics": {"include": topics}},
            "status": {"conditions": [{"type": "Ready", "reason": reason, "message": message}]},
        }
        for name, (topics, (reason, message)) in states.items()
    }
    scenario = object.__new__(FaultScenario)
    kafka = SimpleNamespace(denied_for_good=set(denied), hidden=set())
    scenario.world = SimpleNamespace(kafka=kafka, kube=SimpleNamespace(resources=bodies))
    return {key[2] for key, body in bodies.items() if scenario.waits_for_good(body, ready(body))}


def test_through_others_in_the_queue():
    """The last one does not select the topic; the one before it does (seed 314)."""
    states = {"r1": (["t.*"], FORBIDDEN), "r2": (["t.*"], behind("r1")), "r3": (["t1", "t2"], behind("r2"))}
    assert waiting(states) == {"r1", "r2", "r3"}


@pytest.mark.parametrize("first", [("Rebalancing", "1 of 2"), ("Succeeded", "2 of 2"), behind("r2"), behind("gone")])
def test_nothing_holds_up_the_first_of_the_queue(first):
    """It has to end, and those behind it too, although they select the topic."""
    assert waiting({"r1": (["t.*"], first), "r2": (["t.*"], behind("r1"))}) == set()


def test_behind_a_rebalance_whose_copies_a_rate_of_others_refuses():
    """It keeps its place, so that its turn does not depend on how long others leave their rate (seed 500453)."""
    first = ("ReplicationThrottleLower", "broker 3 already has a replication throttle of 3145728 B/s")
    states = {"r1": (["t.*"], first), "r2": (["t.*"], behind("r1")), "r3": (["t.*"], behind("r2"))}
    assert waiting(states, denied=()) == {"r1", "r2", "r3"}


@pytest.mark.parametrize(("topics", "held_up"), [("t.*", {"prod", "r1"}), ("t1", set())])
def test_an_owner_for_whose_cluster_a_run_is_open(topics, held_up):
    """The run is held up for good, so the cluster gets no other owner (seed 1440)."""
    owner = ("ClusterIdCollision", "it is not known where it leads. Runs are elsewhere, and runs are open (a/r1, a/r9)")
    assert waiting({"r1": ([topics], FORBIDDEN), "prod": (["u"], owner)}) == held_up


def test_every_topic_may_be_read():
    assert waiting({"r1": (["t.*"], FORBIDDEN), "r2": (["t.*"], behind("r1"))}, denied=()) == set()
