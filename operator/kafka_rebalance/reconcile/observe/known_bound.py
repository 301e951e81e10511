"""How much may be known of a cluster in addition to the last reading of all its topics.

The servers of an inline connection can show other topics in each reading, and let the reading of the earlier ones fail.
They can also show other partitions in each reading of some topics. Only the longest answer counts for the limit of what
the operator keeps of answers; so little more may be known.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from kafka_rebalance.errors import Transient
from kafka_rebalance.model.topology import PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason

_PARTITION = 10
"""A partition without its lists of brokers."""
_ALWAYS = 16_000
"""A thousand partitions with three replicas in sync: a new cluster may grow while the reading of some topics fails."""


class KnownBound:
    """Of one cluster. Sizes count each partition like ten replicas, and each entry of its lists of brokers."""

    def __init__(self) -> None:
        self._largest = 0
        """The size of the last reading of everything without errors, or of the largest one since then."""
        self._room_to_add = _ALWAYS
        """How much readings of some topics may still add until everything is read again."""
        self._room_to_grow = _ALWAYS
        """How much the lists of known partitions may grow once there is no room to add."""

    def kept(
        self,
        found: Mapping[TopicPartition, PartitionState],
        before: Mapping[TopicPartition, PartitionState],
        unread: Collection[str],
    ) -> dict[TopicPartition, PartitionState]:
        """The partitions of ``unread`` topics that stay known as they were, after a reading of everything.

        With them, a quarter more may be known than the largest reading had. Otherwise topics whose readings have failed
        longest are dropped: in ``before``, which this reading becomes, they are the last ones.
        """
        self._room_to_add = self._room_to_grow = _PARTITION * len(found) // 4 + _ALWAYS
        read = _size(found.values())
        if not unread:
            self._largest = read
            return {}
        self._largest = max(self._largest, read)
        room = self._largest + self._largest // 4 + _ALWAYS - read
        kept = {tp: state for tp, state in before.items() if tp.topic in unread and tp not in found}
        sizes = Counter[str]()
        for tp, state in kept.items():
            sizes[tp.topic] += _size_of(state)
        if sizes.total() <= room:
            return kept
        topics = set[str]()
        for topic, size in sizes.items():
            room -= size
            if room < 0:
                break
            topics.add(topic)
        return {tp: state for tp, state in kept.items() if tp.topic in topics}

    def is_exceeded_by(
        self, changed: Collection[PartitionState], before: Mapping[TopicPartition, PartitionState]
    ) -> bool:
        """Whether readings of some topics have added too much, so that everything has to be read again.

        ``changed``: what one more of them found that is not as in ``before``.
        """
        self._room_to_add -= _growth(changed, before)
        return self._room_to_add < 0

    def check_growth(
        self, changed: Collection[PartitionState], before: Mapping[TopicPartition, PartitionState]
    ) -> None:
        """Raises Transient("KafkaUnreachable") if known partitions have grown too much since everything was read.

        ``changed``: those that one more reading of some topics found otherwise than in ``before``, when the bound is
        already exceeded.
        """
        self._room_to_grow -= _growth(changed, before)
        if self._room_to_grow < 0:
            message = "the brokers describe topics with much longer lists of brokers than before: all are read again"
            raise Transient(Reason.KAFKA_UNREACHABLE, message)


def _growth(changed: Collection[PartitionState], before: Mapping[TopicPartition, PartitionState]) -> int:
    return _size(changed) - _size(before[state.tp] for state in changed if state.tp in before)


def _size(states: Iterable[PartitionState]) -> int:
    return sum(map(_size_of, states))


def _size_of(state: PartitionState) -> int:
    return _PARTITION + len(state.replicas) + len(state.isr) + len(state.adding) + len(state.removing)
