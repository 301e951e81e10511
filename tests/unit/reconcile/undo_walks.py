"""Walks through the states of an undo."""

from tests.fakes.walked_operator import (
    NARROWER,
    NOT_NOW,
    ONE_AT_A_TIME,
    SUSPENDED,
    succeeded,
    succeeded_before,
    undoing,
)
from tests.unit.reconcile.state_walks import declares

BEFORE = ("Planning", "Rebalancing", "Succeeded", "Planning", "Rebalancing", "NothingToDo")
"""As ``succeeded_before`` leaves it."""

UNDO_WALKS = {}
walk = declares(UNDO_WALKS)


@walk("Planning", "Rebalancing", "Succeeded", "Undoing", "Superseded", "Undoing", "Undone")
async def an_undo():
    """Superseded, then edited back."""
    operator = await undoing()
    operator.edit(topics=NARROWER)
    await operator.until("Superseded")
    operator.edit(topics={"include": ["t"]})
    await operator.until("Undoing")
    operator.kafka.arrive()
    await operator.until("Undone")


@walk("Planning", "Rebalancing", "Succeeded", "Undoing", "RollingBack")
async def an_undo_that_is_deleted():
    """It continues in the same direction to its end."""
    operator = await undoing()
    operator.delete()
    operator.kafka.arrive()
    await operator.until_gone()


@walk("Planning", "Rebalancing", "Succeeded", "Undoing", "RolledBackPartially")
async def an_undo_that_others_prevent():
    """Partitions that others have moved since are left alone."""
    operator = await undoing()
    for tp in [tp for tp, state in operator.kafka.states.items() if not state.in_flight]:
        operator.kafka.assign("t", tp.partition, 3)
    operator.kafka.arrive()
    await operator.until("RolledBackPartially")


@walk("Planning", "Rebalancing", "Succeeded", "Suspended", "Undoing", "Suspended", "Undone")
async def an_undo_that_is_suspended():
    """The last copies in flight complete."""
    operator = await succeeded()
    operator.edit(execution=SUSPENDED)
    operator.undo()
    await operator.until("Suspended")
    operator.edit(execution={"suspend": False})
    await operator.until("Undoing")
    await operator.until_true(lambda: len(operator.kafka.flying) == 2)
    operator.edit(execution={"suspend": True})
    await operator.until("Suspended")
    operator.kafka.arrive()
    await operator.until("Undone")


@walk("Planning", "Rebalancing", "Succeeded", "Suspended", "RolledBackPartially")
async def an_undo_that_is_suspended_and_prevented():
    """Nothing is left to start."""
    operator = await succeeded()
    operator.edit(execution=SUSPENDED)
    operator.undo()
    await operator.until("Suspended")
    for number in range(4):
        operator.kafka.assign("t", number, 3)
    await operator.until("RolledBackPartially")


@walk(
    *("Planning", "Rebalancing", "Succeeded", "Undoing", "Frozen", "Undoing", "OutsideWindow", "Undoing"),
    *("Yielding", "Queued", "Undoing", "Undone"),
)
async def an_undo_that_is_held_back():
    """By everything that blocks a rebalance, except the approval and the health of foreign partitions."""
    operator = await undoing()
    operator.freeze(True)
    await operator.until("Frozen")
    operator.freeze(False)
    await operator.until("Undoing")
    operator.edit(execution={**ONE_AT_A_TIME, "windows": [NOT_NOW]}, approval={"policy": "Manual"})
    await operator.until("OutsideWindow")
    operator.edit(execution=ONE_AT_A_TIME)
    await operator.until("Undoing")
    operator.apply_other(priority=10, execution={"suspend": True})
    await operator.until("Yielding")
    operator.kafka.arrive()
    await operator.until("Undone")


@walk("Planning", "Rebalancing", "Succeeded", "RollingBack")
async def deleted_in_the_round_that_began_the_undo():
    """The run was reopened, but no status shows it yet."""
    operator = await succeeded()
    operator.undo()
    operator.kafka.begun = operator.delete
    await operator.until_gone()


@walk("Planning", "Rebalancing", "Succeeded", "Superseded", "Rebalancing", "Succeeded")
async def edited_in_the_round_that_began_the_undo():
    """The edit takes effect at once."""
    operator = await succeeded()
    operator.undo()
    operator.kafka.begun = lambda: operator.edit(topics=NARROWER)
    await operator.until("Superseded")
    await operator.until("Succeeded")


@walk(*BEFORE, "Undoing", "Undone")
async def an_undo_of_the_run_before():
    """The last run has sent nothing."""
    operator = await succeeded_before()
    operator.undo()
    await operator.until("Undoing")
    operator.kafka.arrive()
    await operator.until("Undone")


@walk(*BEFORE, "Suspended", "Undoing", "Undone")
async def a_suspended_undo_of_the_run_before():
    """The same, held back in its first round."""
    operator = await succeeded_before()
    operator.edit(execution=SUSPENDED)
    operator.undo()
    await operator.until("Suspended")
    operator.edit(execution={"suspend": False})
    await operator.until("Undoing")
    operator.kafka.arrive()
    await operator.until("Undone")


@walk(*BEFORE, "RollingBack")
async def deleted_in_the_round_that_began_the_undo_of_the_run_before():
    """The run before was reopened, but no status shows it yet."""
    operator = await succeeded_before()
    operator.undo()
    operator.kafka.begun = operator.delete
    await operator.until_gone()


@walk(*BEFORE, "Superseded", "Rebalancing", "Succeeded")
async def edited_in_the_round_that_began_the_undo_of_the_run_before():
    """The edit takes effect at once."""
    operator = await succeeded_before()
    operator.undo()
    operator.kafka.begun = lambda: operator.edit(topics={"include": ["t"]})
    await operator.until("Superseded")
    await operator.until("Succeeded")
