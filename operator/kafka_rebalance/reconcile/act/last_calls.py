"""The last call of each partition, so that the next one follows a reading that shows it.

A broker may answer with metadata from before the call. The next step would be chosen from that: a replica that was just
dropped would be copied again, without its throttle.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile

from kafka_rebalance.clock import Clock
from kafka_rebalance.model.topology import ClusterState, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reconcile.decide.arrival_proof import HUNG_SECONDS

BELIEVED_SECONDS = 10.0
"""For how long readings must contradict a call before they are believed: another tool has changed the partition.

A resumed broker updates its metadata within two seconds (recorded). Readings of several brokers that hang one after the
other need longer, and so does a busy machine. Waiting costs little, because other tools seldom contradict a call.
"""


@dataclass(slots=True)
class _LastCall:
    """``contradicted``: when the first and the last reading since then did not show the call; None: none so far."""

    sent_at: float
    call: Replicas | None
    before: PartitionState
    contradicted: tuple[float, float] | None = None


class LastCalls:
    """The calls of one cluster, each for ``HUNG_SECONDS``: until then, a broker that hangs has been replaced."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._called: dict[TopicPartition, _LastCall] = {}
        """In the order in which they were sent, so that a round looks only at those whose time is over."""
        self.doubted: set[TopicPartition] = set()
        """The partitions that wait, as of the last question about each: no reading shows their last call."""

    def note(self, calls: Mapping[TopicPartition, Replicas | None], cluster: ClusterState) -> None:
        """These are sent now; None: a cancellation. ``cluster``: the reading before them."""
        now, known = self._clock.monotonic(), cluster.partitions
        for tp in [tp for tp, _ in takewhile(lambda row: now - row[1].sent_at >= HUNG_SECONDS, self._called.items())]:
            del self._called[tp]
            self.doubted.discard(tp)
        for tp, call in calls.items():
            if tp in known:
                self._called.pop(tp, None)  # the latest call stands last
                self._called[tp] = _LastCall(now, call, known[tp])

    def forget(self, refused: Iterable[TopicPartition]) -> None:
        """Kafka has not carried these out."""
        for tp in refused:
            self._called.pop(tp, None)
            self.doubted.discard(tp)

    def shown(self, tp: TopicPartition, cluster: ClusterState) -> bool:
        """Whether the partition may be called, as it was last read: the reading shows the last call, or is believed.

        Call it once for each reading from which a call of the partition was chosen. If the readings between two of
        these were not asked about for ``BELIEVED_SECONDS``, the first one no longer counts.
        """
        may_be_called = self._is_believed(tp, cluster)
        (self.doubted.discard if may_be_called else self.doubted.add)(tp)
        return may_be_called

    def _is_believed(self, tp: TopicPartition, cluster: ClusterState) -> bool:
        last, state = self._called.get(tp), cluster.partitions.get(tp)
        now = self._clock.monotonic()
        if last is None or state is None or now - last.sent_at >= HUNG_SECONDS:
            return True
        if _shows(state, last):
            last.contradicted = None
            return True
        first, latest = last.contradicted or (now, now)
        if now - latest > BELIEVED_SECONDS:
            first = now
        last.contradicted = (first, now)
        return now - first >= BELIEVED_SECONDS


def _shows(state: PartitionState, last: _LastCall) -> bool:
    if last.call is None:
        copied = set(last.before.adding) - set(last.before.removing)
        return not state.in_flight and copied.isdisjoint(state.replicas)
    return tuple(b for b in state.replicas if b not in state.removing) == last.call
