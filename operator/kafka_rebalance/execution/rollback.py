"""The replica list that a partition returns to when its rebalance is rolled back (KIP-236). Pure."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from kafka_rebalance.execution.steps import Wait
from kafka_rebalance.model.topology import BrokerId, PartitionState, Replicas
from kafka_rebalance.reasons import Reason


@dataclass(frozen=True, slots=True)
class Skip:
    """The partition stays as it is; ``reason`` is CamelCase."""

    reason: str
    message: str


def rollback_target(
    origin: Replicas,
    target: Replicas,
    state: PartitionState,
    alive: Collection[BrokerId],
    *,
    restarting: Collection[BrokerId] = (),
    only_in_flight: bool = False,
) -> Replicas | Skip | Wait:
    """The list to restore for a partition that is not being reassigned.

    A null restores the replicas, not their order, so the same replicas in another order return to the original order.
    An original broker that is not alive is never added back; if it is only ``restarting``, we wait for it. A partition
    left above its replication factor then drops KIP-236's drop set, also if the dead original is still a replica out
    of sync, because Kafka drops no other one beside it. ``only_in_flight`` (deletionPolicy Revert) keeps completed
    steps: of a larger replication factor, it drops only the replicas beyond that.
    """
    left_in_place = Skip(Reason.LEFT_IN_PLACE, "its step was complete; deletionPolicy Revert leaves it")
    present = set(state.replicas)
    if only_in_flight and state.replicas == target:
        return left_in_place
    grows = len(origin) < len(target)
    if only_in_flight and grows:
        # Each copy that a larger replication factor asks for is a step of its own.
        above_target = len(state.replicas) > len(target)
        return without_surplus(state, len(target), alive).replicas if above_target else left_in_place
    above = len(state.replicas) > len(origin)
    has_all = set(origin) <= present
    gone = [b for b in origin if b not in alive and (b not in present or (above and b not in state.isr))]
    away = [b for b in gone if b in restarting]
    if has_all and not gone:
        return origin
    trimmed = without_surplus(state, len(origin), alive).replicas
    if only_in_flight and not (has_all and away):
        return trimmed if above else left_in_place
    if not gone:
        return origin
    if away:
        return Wait(Reason.ORIGINAL_BROKER_AWAY, f"original broker {away[0]} is not live; it may be restarting")
    if above:
        return trimmed
    names = ", ".join(str(b) for b in gone)
    return Skip(Reason.ORIGINAL_BROKER_GONE, f"original broker {names} is not registered or is fenced")


def drop_set(
    state: PartitionState, original_count: int, alive: Collection[BrokerId] | None = None
) -> frozenset[BrokerId]:
    """KIP-236: of the leader, then the in-sync, then the out-of-sync replicas, those beyond the original count.

    Of those out of sync, the ones that are not ``alive`` come last, because Kafka drops no replica while one of them
    stays. None: all brokers are alive.
    """
    lost = [] if alive is None else [b for b in state.replicas if b not in alive and b not in state.isr]
    ordered = sorted(state.replicas, key=lambda b: (b != state.leader, b not in state.isr, b in lost))
    return frozenset(ordered[original_count:])


def without_surplus(state: PartitionState, count: int, alive: Collection[BrokerId]) -> PartitionState:
    """The partition without the drop set beyond this ``count`` of replicas."""
    dropped = drop_set(state, count, alive)
    if not dropped:
        return state
    kept = tuple(b for b in state.replicas if b not in dropped)
    return replace(state, replicas=kept, isr=state.isr.intersection(kept))
