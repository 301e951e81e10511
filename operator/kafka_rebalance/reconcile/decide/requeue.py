"""How long an engine may sleep: until there may be something to do without anybody waking it. Pure."""

from __future__ import annotations

from collections.abc import Collection

from kafka_rebalance.reconcile.state.rebalance_state import RebalanceState

BUSY_SECONDS = 0.5
SENT_SECONDS = 0.1
"""After a round that sent something: what needs no copy is done already, and small copies soon are."""
RESTING_SECONDS = 3.0
"""While all that is open is held back and at rest: windows open, brokers settle."""
FOREIGN_SECONDS = 1.0
"""How often to look for reassignments of others while a resource limits them."""
UNSETTLED_SECONDS = 2.0
QUEUE_SECONDS = 2.0
IDLE_SECONDS = 30.0


def pause_after(
    works: Collection[RebalanceState], now: float, *, sent: bool, settled: bool, limits_others: bool
) -> float:
    """Seconds until the next round. ``now``: of a monotonic clock; ``sent``: this round has sent something.

    ``settled``: nothing of our throttle is left; ``limits_others``: it holds for what others reassign, too.
    """
    running = [work for work in works if work.open is not None and not work.blocked(now)]
    resting = {work.uid for work in running if work.at_rest and (work.hold is not None or work.waits_for_a_word)}
    if sent or len(resting) < len(running):
        return SENT_SECONDS if sent else BUSY_SECONDS
    if running:
        return FOREIGN_SECONDS if limits_others else RESTING_SECONDS
    longest = IDLE_SECONDS if settled else UNSETTLED_SECONDS
    if limits_others:
        longest = FOREIGN_SECONDS
    waiting = [w.retry_at for w in works if w.problem is not None]
    waiting += [now + QUEUE_SECONDS for w in works if w.wants_plan]
    return min(longest, max(BUSY_SECONDS, min(waiting, default=float("inf")) - now))
