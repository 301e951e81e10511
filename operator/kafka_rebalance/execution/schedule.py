"""What may be sent now, out of what is ready: the one place where every cap is enforced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kafka_rebalance.execution.decide import Kind, Verdict
from kafka_rebalance.execution.steps import Alter, Elect
from kafka_rebalance.model.topology import Replicas, TopicPartition


@dataclass(frozen=True, slots=True)
class Limits:
    """KIP-435's R, P and L and the cluster-wide ceiling on copies, as they are now (patched in flight)."""

    parallel_replicas: int
    parallel_partitions: int
    parallel_leader_movements: int
    max_concurrent_replicas: int


@dataclass(frozen=True, slots=True)
class Orders:
    """What to send. ``cancels`` may always be sent; ``alters`` only after their throttle entries are in place."""

    cancels: tuple[TopicPartition, ...] = ()
    alters: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    elections: tuple[TopicPartition, ...] = ()


def choose(
    verdicts: Mapping[TopicPartition, Verdict],
    sizes: Mapping[TopicPartition, int],
    limits: Limits,
    adding_now: Mapping[TopicPartition, int],
) -> Orders:
    """What may be sent under the limits, the one place where they are enforced.

    Cancels are never held back. ``adding_now``: copies in flight by partition. KIP-435: at most L leader movements,
    then others, never above P; a partition held by L may still be passed by others. Partitions already begun go
    first, internal topics last and their leaders one at a time, then the largest, so that the longest copy does not
    start last.
    """
    cancels = tuple(sorted(tp for tp, v in verdicts.items() if v.cancel))
    flying = {tp: v for tp, v in verdicts.items() if v.kind is Kind.IN_FLIGHT}
    partitions_left = limits.parallel_partitions - len(flying) - len(cancels)
    leaders_left = limits.parallel_leader_movements - sum(v.leader_movement for v in flying.values())
    internal_left = 1 - sum(v.leader_movement for tp, v in flying.items() if tp.internal)
    copies_left = limits.max_concurrent_replicas - sum(adding_now.values())
    alters: dict[TopicPartition, Replicas] = {}
    elections: list[TopicPartition] = []
    for tp in _in_order(verdicts, sizes):
        if partitions_left <= 0:
            break
        verdict = verdicts[tp]
        copies = len(verdict.call.until_in_sync) if isinstance(verdict.call, Alter) else 0
        # A step of more copies than the ceiling passes alone, or it would never come.
        if copies > copies_left and copies_left < limits.max_concurrent_replicas:
            continue
        if verdict.leader_movement and (leaders_left <= 0 or (tp.internal and internal_left <= 0)):
            continue
        if isinstance(verdict.call, Elect):
            elections.append(tp)
        elif verdict.call is not None:
            alters[tp] = verdict.call.replicas
        partitions_left -= 1
        copies_left -= copies
        leaders_left -= verdict.leader_movement
        internal_left -= verdict.leader_movement and tp.internal
    return Orders(cancels, alters, tuple(elections))


def _in_order(
    verdicts: Mapping[TopicPartition, Verdict], sizes: Mapping[TopicPartition, int]
) -> Iterable[TopicPartition]:
    ready = [tp for tp, v in verdicts.items() if v.kind is Kind.READY and v.call is not None]
    return sorted(ready, key=lambda tp: (not verdicts[tp].started, tp.internal, -sizes.get(tp, 0), tp))
