"""How long an engine may sleep if no event wakes it. Pure."""

from collections.abc import Collection

from kafka_rebalance.reconcile.decide.direction import at_rest, requires_decision
from kafka_rebalance.reconcile.decide.replanning import wants_plan
from kafka_rebalance.reconcile.state.rebalance import RebalanceView

BUSY_SECONDS = 0.5
SENT_SECONDS = 0.1
"""After something was sent: calls without a copy are done already, small copies soon."""
_OF_WAITED = 0.25
"""The pause, as a part of the time since the last call: what has arrived waits for at most a quarter of its time."""
RESTING_SECONDS = 3.0
"""While every open run is blocked and at rest: windows open, brokers settle."""
FOREIGN_SECONDS = 1.0
"""How often to look for reassignments of others while a resource limits them."""
UNSETTLED_SECONDS = 2.0
QUEUE_SECONDS = 2.0
IDLE_SECONDS = 30.0


def requeue_after(
    rebalances: Collection[RebalanceView],
    now: float,
    *,
    sent: bool,
    sent_at: float,
    ledger_empty: bool,
    limits_others: bool,
) -> float:
    """Seconds until the next round. ``now``: of a monotonic clock; ``sent``: this round has sent something.

    ``sent_at``: when the last call was sent. The longer ago that is, the later the next round.
    ``ledger_empty``: nothing of our throttle is left; ``limits_others``: it also limits what others reassign.
    """
    running = [r for r in rebalances if r.record.loaded_run is not None and not r.memory.blocked(now)]
    resting = [r for r in running if at_rest(r) and (r.assessment.step_block is not None or requires_decision(r))]
    if sent or len(resting) < len(running):
        waited = now - sent_at
        return min(BUSY_SECONDS, max(SENT_SECONDS - waited, SENT_SECONDS / 2, _OF_WAITED * waited))
    if running:
        return FOREIGN_SECONDS if limits_others else RESTING_SECONDS
    longest = IDLE_SECONDS if ledger_empty else UNSETTLED_SECONDS
    if limits_others:
        longest = FOREIGN_SECONDS
    waiting = [r.memory.retry_at for r in rebalances if r.memory.problem is not None]
    waiting += [now for r in rebalances if r.desired.deleted_since(r.memory.prepared)]
    waiting += [now + QUEUE_SECONDS for r in rebalances if wants_plan(r)]
    return min(longest, max(BUSY_SECONDS, min(waiting, default=float("inf")) - now))
