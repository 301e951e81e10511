"""Every row of the state table is covered by an operator whose API server and brokers are dictionaries."""

import asyncio
import json
from dataclasses import replace
from itertools import pairwise

import pytest
from tests.arch.state_transitions import members_of, transition_between, transitions
from tests.fakes.walked_operator import (
    NARROWER,
    NOT_NOW,
    SUSPENDED,
    TWO_BROKERS,
    SlowCluster,
    WalkedOperator,
    applied,
    flying,
    succeeded,
)
from tests.unit.reconcile.state_walks import declares
from tests.unit.reconcile.undo_walks import UNDO_WALKS

from kafka_rebalance.api.rebalance_states import STATES, StateGroup
from kafka_rebalance.api.v1alpha1 import COMPLETED_ANNOTATION, REBALANCES, parse_spec, planning_hash
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.reasons import Reason

WALKS = {**UNDO_WALKS}
KAFKA = {"bootstrapServers": "kafka:9092"}
walk = declares(WALKS)


@walk("Planning", "AwaitingApproval", "Rebalancing", "Succeeded", "Planning", "AwaitingApproval", "NothingToDo")
async def approval():
    """A plan is approved; a later plan has nothing to move and needs no approval."""
    operator = applied(SlowCluster(slow=False), approval={"policy": "Manual"})
    await operator.until("AwaitingApproval")
    operator.edit(approval={"policy": "Manual", "planHash": operator.status["plan"]["hash"]})
    await operator.until("Succeeded")
    operator.edit(topics=NARROWER)
    await operator.until("NothingToDo")


@walk("Planning", "AwaitingApproval", "Succeeded")
async def others_carry_it_out():
    """Nothing is left to approve."""
    operator = WalkedOperator(SlowCluster())
    operator.assign(("t", 0, [2]), approval={"policy": "Manual"})
    await operator.until("AwaitingApproval")
    operator.kafka.assign("t", 0, 2)
    await operator.until("Succeeded")


@walk("Planning", "Rebalancing", "NothingToDo")
async def balanced():
    """No partition has to change."""
    await applied(SlowCluster(rows=((1,), (2,)))).until("NothingToDo")


@walk("Succeeded", "Planning", "Rebalancing", "Succeeded")
async def restored():
    """It has ended before it was restored without its records; after an edit it is carried out."""
    operator = WalkedOperator(SlowCluster(slow=False))
    body = {"metadata": {"name": "r", "namespace": "kafka", "uid": "u-1"}, "spec": {"kafka": KAFKA}}
    key = {"name": "kafka/r", "clusterId": "c", "planningHash": planning_hash(parse_spec(body["spec"]))}
    end = {"planHash": "sha256:1", "outcome": "Succeeded", "completedAt": "2026-01-01T12:00:00Z"}
    body["metadata"]["annotations"] = {COMPLETED_ANNOTATION: json.dumps(key | end)}
    operator.see(operator.kube.create(REBALANCES, body))
    await operator.until("Succeeded")
    operator.edit(**TWO_BROKERS)
    await operator.until("Planning")
    await operator.until("Succeeded")


@walk("Queued", "Planning", "Rebalancing", "NothingToDo")
async def a_queue():
    """Another rebalance already holds the partitions."""
    operator = WalkedOperator(SlowCluster())
    operator.apply_other()
    await operator.until_true(lambda: bool(operator.kafka.flying))
    operator.apply(topics={"include": ["t"]}, **TWO_BROKERS)
    await operator.until("Queued")
    operator.kafka.arrive()
    await operator.until("NothingToDo")


@walk("Planning", "Rebalancing", "Succeeded")
async def edited_while_planned():
    """The plan that is being made is given up."""
    operator = applied(SlowCluster(slow=False))
    await operator.until("Planning")
    operator.edit(topics=NARROWER)
    await operator.until("Succeeded")


@walk("Planning", "RollingBack")
async def deleted_in_the_round_that_began_the_run():
    """A step was sent, but no status shows it yet."""
    operator = applied()
    operator.kafka.sent = operator.delete
    await operator.until_gone()


@walk("Planning", "Rebalancing", "Succeeded", "Planning", "Succeeded", "Planning", "Rebalancing", "NothingToDo")
async def edited_back():
    """Before the new plan is ready: the spec is that of the succeeded run again."""
    operator = await succeeded()
    go, read = asyncio.Event(), operator.kube.read_config_map

    async def slow_read(namespace, name):
        await go.wait()
        return await read(namespace, name)

    operator.kube.read_config_map = slow_read
    operator.write(*(("t", number, held) for number, held in enumerate(operator.kafka.lists("t"))))
    lists = {"strategy": "Assignment", "assignment": {"configMapRef": {"name": "lists", "key": "k"}}}
    operator.edit(**lists)
    await operator.engine.tick()
    operator.edit(strategy="MinimalMovement", assignment=None)
    await operator.engine.tick()
    operator.edit(**lists)
    await operator.engine.tick()
    go.set()
    await operator.until("NothingToDo")


@walk("Planning", "Rebalancing", "ThrottleTooLow", "Rebalancing", "Succeeded")
async def a_throttle_that_is_raised():
    """A throttle below the produce rate can never finish."""
    loads = {TopicPartition("t", n): PartitionLoad(100, 5000.0) for n in range(4)}
    operator = await flying()
    operator.model = LoadModel("LoadModel", None, loads, "c")
    operator.restart()
    operator.edit(throttle={"leaderRate": 1000, "followerRate": 1000})
    await operator.until("ThrottleTooLow")
    operator.edit(throttle={"leaderRate": 10000, "followerRate": 10000})
    await operator.until("Rebalancing")
    operator.kafka.arrive()
    await operator.until("Succeeded")


@walk("Planning", "Rebalancing", "Suspended", "Superseded", "Suspended", "RollingBack")
async def suspended():
    """An edit and a deletion still take effect."""
    operator = await flying()
    operator.edit(execution=SUSPENDED)
    await operator.until("Suspended")
    operator.edit(topics=NARROWER)
    await operator.until("Superseded")
    await operator.until("Suspended")
    operator.delete()
    await operator.until_gone()


@walk("Planning", "Rebalancing", "Superseded", "AwaitingApproval")
async def superseded_under_approval():
    """A new plan requires a new approval."""
    operator = await flying()
    operator.edit(topics=NARROWER, approval={"policy": "Manual"})
    await operator.until("AwaitingApproval")


@walk("Planning", "Rebalancing", "Drifted", "Superseded", "Reverting")
async def drifted():
    """Others have moved more than the drift budget, and the spec is edited before the new plan is ready."""
    operator = await flying(approval={"driftBudget": 0})
    for tp in [tp for tp, state in operator.kafka.states.items() if not state.in_flight]:
        operator.kafka.assign("t", tp.partition, 3)
    await operator.until("Drifted")
    operator.edit(topics=NARROWER)
    await operator.until("Superseded")
    operator.edit(deletionPolicy="Revert")
    operator.delete()
    await operator.until_gone()


@walk("Planning", "Drifted", "Rebalancing", "Succeeded")
async def drifted_while_planned():
    """Others changed the partitions before the plan was ready."""
    operator = applied(SlowCluster(slow=False), approval={"driftBudget": 0})
    await operator.until("Planning")
    for number in range(4):
        operator.kafka.assign("t", number, 3)
    await operator.until("Succeeded")


@walk("Planning", "Rebalancing", "Succeeded", "Undoing", "Undone", "Queued")
async def edited_while_another_moves():
    """The new plan waits for the other rebalance."""
    operator = await succeeded(SlowCluster(slow=False, u=((1,), (1,))))
    operator.undo()
    await operator.until("Undoing")
    operator.kafka.arrive()
    await operator.until("Undone")
    operator.kafka.slow = {2}
    operator.apply_other(topics={"include": ["u"]})
    await operator.until_true(lambda: bool(operator.kafka.flying))
    operator.edit(topics={"include": ["t", "u"]})
    await operator.until("Queued")


@walk("Planning", "Rebalancing", "RollingBack", "RollbackTooLarge", "Reverting")
async def a_rollback_too_large():
    """The limit may be set during the rollback, and the policy changed after that."""
    operator = await flying(SlowCluster(rows=((1,),) * 6))
    operator.kafka.arrive()
    operator.kafka.slow = {1, 2}
    await operator.until_true(lambda: [2] in operator.kafka.lists("t") and bool(operator.kafka.flying))
    operator.delete()
    await operator.until("RollingBack")
    operator.edit(rollback={"maxData": 1})
    await operator.until("RollbackTooLarge")
    operator.edit(deletionPolicy="Revert")
    await operator.until_gone()


@walk("Planning", "Rebalancing", "RollingBack", "TakenOver")
async def a_successor():
    """A new resource moves the same partitions: the rollback waits for its plan."""
    operator = await flying()
    operator.delete()
    operator.apply_other()
    await operator.until_gone()


@walk("Planning", "Rebalancing", "Yielding", "Queued", "Rebalancing", "Succeeded")
async def priority():
    """The other rebalance goes first as soon as this one has nothing in flight."""
    operator = await flying()
    operator.apply_other(priority=10, execution={"suspend": True})
    await operator.until("Yielding")
    operator.kafka.arrive()
    await operator.until("Queued")
    await operator.until("Succeeded")


@walk(
    *("Planning", "Frozen", "Suspended", "AwaitingApproval", "OutsideWindow", "ClusterUnhealthy", "Rebalancing"),
    *("ClusterUnhealthy", "OutsideWindow", "AwaitingApproval", "Suspended", "Frozen"),
)
async def reasons_to_hold_back():
    """The first reason that applies is shown, so any of them may follow any other."""
    operator = WalkedOperator(SlowCluster(u=((1, 2),)))
    theirs = TopicPartition("u", 0)
    healthy = operator.kafka.states[theirs]
    unhealthy = replace(healthy, isr=frozenset({1}))
    operator.kafka.states[theirs] = unhealthy
    operator.freeze(True)
    held = {"approval": {"policy": "Manual"}, "execution": {"suspend": True, "windows": [NOT_NOW]}}
    operator.apply(topics={"include": ["t"]}, **TWO_BROKERS, **held)
    await operator.until("Frozen")
    operator.freeze(False)
    await operator.until("Suspended")
    operator.edit(execution={"windows": [NOT_NOW]})
    await operator.until("AwaitingApproval")
    operator.edit(approval={"policy": "Automatic"})
    await operator.until("OutsideWindow")
    operator.edit(execution={})
    await operator.until("ClusterUnhealthy")
    operator.kafka.states[theirs] = healthy
    await operator.until("Rebalancing")
    operator.kafka.states[theirs] = unhealthy
    await operator.until("ClusterUnhealthy")
    operator.edit(execution={"windows": [NOT_NOW]})
    await operator.until("OutsideWindow")
    operator.edit(approval={"policy": "Manual"})
    await operator.until("AwaitingApproval")
    operator.edit(execution={"suspend": True})
    await operator.until("Suspended")
    operator.freeze(True)
    await operator.until("Frozen")


@pytest.mark.parametrize("name", WALKS)
async def test_walk(name, state_walk):
    """The statuses show the declared states and no others in between."""
    states, walked = WALKS[name]
    await walked()
    assert state_walk.path(("kafka", "r")) == states


def test_every_transition_is_walked():
    """A transition that no walk covers is not in the table. A step that two rows allow covers neither."""
    declared = {step for states, _ in WALKS.values() for step in pairwise([None, *states])}
    walked = {rows[0] for step in declared if len(rows := transition_between(*step)) == 1}
    assert [f"{before or '[*]'} -> {after}" for before, after in transitions() if (before, after) not in walked] == []


def test_every_state_is_walked():
    """For a group's row one of its states is enough; here every state must be shown somewhere."""
    assert set(STATES) == {state for states, _ in WALKS.values() for state in states}


def test_what_holds_back_an_undo():
    """Exactly these waiting states."""
    found = set()
    for states, _ in WALKS.values():
        if Reason.UNDOING in states and Reason.SUPERSEDED not in states:
            found |= {*states[states.index(Reason.UNDOING) :]} & {*members_of(StateGroup.WAITING)}
    assert found == set(members_of(StateGroup.HELD_BACK))
