"""When a reassignment in flight may be cancelled with a null target (KIP-236). Pure.

A null takes the new replicas away at once, also those in sync, and Kafka does not look at min.insync.replicas then.
"""

from collections.abc import Collection, Iterable

from kafka_rebalance.execution.steps import Wait
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reasons import Reason


def why_not_cancel(kept: Iterable[BrokerId], isr: Collection[BrokerId], min_insync: int | None) -> Wait | None:
    """Why no null may be sent now; None: it may. ``kept``: the replicas that it leaves, ``min_insync`` None: unknown.

    After the cancellation, at least min.insync.replicas of ``kept`` must be in sync. If fewer replicas are in sync now,
    all of these must be kept.
    """
    before = list(kept)
    left = [b for b in before if b in isr]
    if not left:
        # KIP-236: a null would drop the only live copy; KRaft refuses it too.
        return Wait(Reason.CANCEL_IMPOSSIBLE, f"none of the original replicas {before} is in sync")
    if min_insync is None:
        return Wait(Reason.METADATA_MISSING, "no broker reported min.insync.replicas; retrying")
    if len(left) < min(min_insync, len(isr)):
        message = f"without the new copy only {left} would be in sync, and min.insync.replicas is {min_insync}"
        return Wait(Reason.CANCEL_BELOW_MIN_INSYNC_REPLICAS, message)
    return None
