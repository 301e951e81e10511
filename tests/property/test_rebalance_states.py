"""Every status transition is in the state table, for any actions of users, other tools and the cluster."""

import asyncio
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st
from tests.examples import examples
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.state_walk import StateWalk
from tests.fakes.walked_operator import NARROWER, NOT_NOW, ONE_AT_A_TIME, SUSPENDED, SlowCluster, WalkedOperator

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.topology import TopicPartition

LOADS = {TopicPartition("t", number): PartitionLoad(100, 5000.0) for number in range(4)}


def edit(**spec):
    """A patch of the spec of ``r``."""
    return lambda operator: operator.edit(**spec)


def approve(operator):
    """Approve the current plan, if any."""
    plan = operator.status.get("plan") or {}
    operator.edit(approval={"policy": "Manual", "planHash": plan.get("hash")})


def undo(operator):
    """Undo the current run, if any."""
    if operator.status.get("plan"):
        operator.undo()


def delete(operator):
    """Only once."""
    if "deletionTimestamp" not in operator.kube.resources[REBALANCES, "kafka", "r"]["metadata"]:
        operator.delete()


def apply_other(operator):
    """Only once; it yields when it is planned."""
    if (REBALANCES, "kafka", "other") not in operator.kube.resources:
        operator.apply_other(priority=10, execution={"suspend": True})


def drift(number, to):
    """Another tool moves a partition."""

    def move(operator):
        tp = TopicPartition("t", number)
        if not operator.kafka.states[tp].in_flight:
            operator.kafka.assign("t", number, to)

    return move


def slow(*brokers):
    """From now on copies to these brokers stay in flight."""

    def change(operator):
        operator.kafka.slow = set(brokers)

    return change


HAPPENINGS = {
    "suspend": edit(execution=SUSPENDED),
    "resume": edit(execution=ONE_AT_A_TIME),
    "close the window": edit(execution={**ONE_AT_A_TIME, "windows": [NOT_NOW]}),
    "freeze": lambda operator: operator.freeze(True),
    "unfreeze": lambda operator: operator.freeze(False),
    "require approval": edit(approval={"policy": "Manual"}),
    "approve": approve,
    "require no approval": edit(approval={"policy": "Automatic", "driftBudget": 0}),
    "narrow the topics": edit(topics=NARROWER),
    "widen the topics": edit(topics={"include": ["t", "u"]}),
    "edit the topics back": edit(topics={"include": ["t"]}),
    "drain broker 2": edit(brokers={"decommission": [2]}),
    "name an unknown broker": edit(brokers={"include": [1, 2, 9]}),
    "name two brokers": edit(brokers={"include": [1, 2]}),
    "lower the throttle": edit(throttle={"leaderRate": 1000, "followerRate": 1000}),
    "raise the throttle": edit(throttle={"leaderRate": 100000, "followerRate": 100000}),
    "apply another rebalance": apply_other,
    "undo": undo,
    "delete": delete,
    "bound the rollback": edit(rollback={"maxData": 1}),
    "revert only": edit(deletionPolicy="Revert"),
    "roll back": edit(deletionPolicy="Rollback"),
    "restart the operator": lambda operator: operator.restart(),
    "move partition 0": drift(0, 3),
    "move partition 1": drift(1, 2),
    "copies arrive": lambda operator: operator.kafka.arrive(),
    "copies to 1 take time": slow(1),
    "copies to 2 and 3 take time": slow(2, 3),
}
WHEN = ("between rounds", "when a round begins", "when a round has sent a step")


@examples(0.5)
@given(
    st.booleans(),
    st.lists(
        st.tuples(st.sampled_from(sorted(HAPPENINGS)), st.sampled_from(WHEN), st.integers(1, 6)),
        min_size=10,
        max_size=25,
    ),
)
@example(True, [("suspend", WHEN[2], 3), ("undo", WHEN[0], 3), ("delete", WHEN[1], 9)])
def test_each_status_follows_the_one_before(loads_known, happenings):
    """Each event is followed by some rounds."""
    walk = StateWalk()
    with patch.object(KubeInMemory, "patch_status", walk.following(KubeInMemory.patch_status)):
        asyncio.run(live_through(loads_known, happenings))
    assert walk.refused == []


async def live_through(loads_known, happenings):
    """Run a rebalance through the events, for as long as it exists."""
    kafka = SlowCluster(u=((1,), (1,)))
    operator = WalkedOperator(kafka, LoadModel("LoadModel", None, LOADS, "c") if loads_known else None)
    operator.apply(topics={"include": ["t"]}, brokers={"include": [1, 2]}, execution=ONE_AT_A_TIME)

    def happen(what):
        if (REBALANCES, "kafka", "r") in operator.kube.resources:
            HAPPENINGS[what](operator)

    for what, when, rounds in happenings:
        if when == WHEN[0]:
            happen(what)
        elif when == WHEN[1]:
            kafka.begun = lambda what=what: happen(what)
        else:
            kafka.sent = lambda what=what: happen(what)
        for _ in range(rounds):
            await operator.round()
