"""The replica list that a partition returns to when its rebalance is rolled back (KIP-236). Pure."""

from collections.abc import Collection
from dataclasses import dataclass

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
    steps.
    """
    left_in_place = Skip(Reason.LEFT_IN_PLACE, "its step was complete; deletionPolicy Revert leaves it")
    present = set(state.replicas)
    if only_in_flight and state.replicas == target:
        return left_in_place
    grows = len(origin) < len(target)
    if only_in_flight and grows and len(state.replicas) <= len(target):
        return left_in_place  # each copy that a larger replication factor asks for is a step of its own
    above = len(state.replicas) > len(origin)
    has_all = set(origin) <= present
    gone = [b for b in origin if b not in alive and (b not in present or (above and b not in state.isr))]
    away = [b for b in gone if b in restarting]
    if has_all and not gone:
        return origin
    trimmed = tuple(b for b in state.replicas if b not in drop_set(state, len(origin))) if above else state.replicas
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


def drop_set(state: PartitionState, original_count: int) -> frozenset[BrokerId]:
    """KIP-236: of the leader, then the in-sync, then the out-of-sync replicas, those beyond the original count."""
    leader = [b for b in state.replicas if b == state.leader]
    in_sync = [b for b in state.replicas if b in state.isr and b != state.leader]
    out_of_sync = [b for b in state.replicas if b not in state.isr and b != state.leader]
    return frozenset([*leader, *in_sync, *out_of_sync][original_count:])
