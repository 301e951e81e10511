"""The last call of each partition, so that the next one follows a reading that shows it.

A broker may answer with metadata from before the call. The next step would be chosen from that: a replica that was just
dropped would be copied again, without its throttle.
"""

from collections.abc import Iterable, Mapping

from kafka_rebalance.clock import Clock
from kafka_rebalance.model.topology import ClusterState, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reconcile.decide.arrival_proof import SECOND_READING_SECONDS


class LastCalls:
    """Of one cluster, for ``SECOND_READING_SECONDS``. What is read after that holds: another tool has changed it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._called: dict[TopicPartition, tuple[float, Replicas | None, PartitionState]] = {}

    def note(self, calls: Mapping[TopicPartition, Replicas | None], cluster: ClusterState) -> None:
        """These are sent now; None: a cancellation. ``cluster``: the reading before them."""
        now = self._clock.monotonic()
        self._called = {tp: row for tp, row in self._called.items() if now - row[0] < SECOND_READING_SECONDS}
        known = cluster.partitions
        self._called |= {tp: (now, call, known[tp]) for tp, call in calls.items() if tp in known}

    def forget(self, refused: Iterable[TopicPartition]) -> None:
        """Kafka has not carried these out."""
        for tp in refused:
            self._called.pop(tp, None)

    def shown(self, tp: TopicPartition, cluster: ClusterState) -> bool:
        """Whether the partition may be called, as it was last read."""
        found, state = self._called.get(tp), cluster.partitions.get(tp)
        if found is None or state is None or self._clock.monotonic() - found[0] >= SECOND_READING_SECONDS:
            return True
        _, call, before = found
        if call is None:
            return not state.in_flight and set(state.replicas).isdisjoint(set(before.adding) - set(before.removing))
        return tuple(b for b in state.replicas if b not in state.removing) == call
