"""The values of an explanation: reasons, and accounts of brokers, topics and partitions.

Counts are over the planned partitions. A copy *leaves* a broker that no longer holds the partition, and *arrives* at
one that did not hold it. ``explanation`` computes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition


class Why(StrEnum):
    """Why a copy leaves a broker; the first that applies."""

    GONE = "Gone"  # the broker does not exist
    NOT_TARGET = "NotTarget"  # the broker is not a target
    ASSIGNED = "Assigned"  # the assignment was given, or made from scratch
    FEWER_REPLICAS = "FewerReplicas"  # the replication factor shrinks
    RACK_RULE = "RackRule"  # its rack holds more copies of the partition than the rack rule allows
    TOPIC_SHARE = "TopicShare"  # the broker has more than the low share of the topic, and ends with fewer
    TOPIC_EXCHANGE = "TopicExchange"  # the broker gets at least as many other replicas of the topic as it gives
    SHARE = "Share"  # the broker ends with fewer replicas than it had
    EXCHANGE = "Exchange"  # the broker gets at least as many other replicas as it gives


class Fit(StrEnum):
    """How a broker suits a new copy of a partition; the first that applies."""

    NOT_TARGET = "NotTarget"  # is not a target
    HELD = "Held"  # held a copy before
    CHOSEN = "Chosen"  # gets it
    RACK_FULL = "RackFull"  # its rack has as many copies as the rack rule allows, without this one
    TOPIC_FULL = "TopicFull"  # ends with the high share of the topic, without this one
    GETS_NOTHING = "GetsNothing"  # suits, and gets no copy of any partition
    GETS_OTHERS = "GetsOthers"  # suits, and gets copies of other partitions


class WhyLed(StrEnum):
    """Why the preferred leader changes; the first that applies."""

    COPY_LEAVES = "CopyLeaves"  # the former leader no longer holds a copy
    NOT_TARGET = "NotTarget"  # the former leader is not a target; its copy stays as a follower
    SHARE = "Share"  # the former leader ends with fewer leaderships than it had
    EXCHANGE = "Exchange"  # the former leader gives this leadership and gets another


@dataclass(frozen=True, slots=True)
class Share:
    """Replicas spread evenly over all target brokers, or those of a rack: each holds ``low`` or ``high``.

    With ``everyone`` False and no ``rack`` the brokers are those without a rack. ``pinned_full`` more brokers are left
    out: they hold only pinned replicas, at least ``low`` of them.
    """

    replicas: int
    brokers: int
    everyone: bool
    rack: str | None = None
    pinned_full: int = 0

    @property
    def low(self) -> int:
        """The fewest replicas of each broker."""
        return self.replicas // self.brokers

    @property
    def high(self) -> int:
        """The most replicas of each broker."""
        return -(-self.replicas // self.brokers)

    @property
    def at_high(self) -> int:
        """Number of brokers that have ``high``."""
        return self.replicas - self.low * self.brokers or self.brokers

    def beyond(self, count: int) -> int:
        """Replicas of ``count`` above ``high``; negative below ``low``."""
        return max(0, count - self.high) - max(0, self.low - count)


@dataclass(frozen=True, slots=True)
class TopicAccount:
    """The replicas of one topic on one broker. ``share`` is None if the topic gives way to the totals."""

    topic: str
    before: int
    after: int
    share: Share | None


@dataclass(frozen=True, slots=True)
class TopicsOutside:
    """Number of topics where a broker (or any broker) holds less or more than its share, before and after."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class BrokerAccount:
    """One broker before and after; ``pinned`` is the number of its pinned replicas.

    ``share`` is None if the plan does not make its count even with others. ``topics`` is None if topics are not
    balanced, and for a broker that is not a target.
    """

    broker: BrokerId
    rack: str | None
    known: bool
    target: bool
    before: int
    after: int
    pinned: int
    arriving: int
    leaving: Mapping[Why, int]
    led_before: int
    led_after: int
    share: Share | None
    topics: TopicsOutside | None = None

    @property
    def beyond(self) -> int:
        """Replicas above its share in the end; negative below it. 0 without a share."""
        return self.share.beyond(self.after) if self.share else 0


@dataclass(frozen=True, slots=True)
class Departure:
    """A copy that leaves. For RackRule: ``rack_held`` copies were in its rack, ``rack_room`` may be."""

    tp: TopicPartition
    broker: BrokerId
    why: Why
    rack_held: int = 0
    rack_room: int = 0


@dataclass(frozen=True, slots=True)
class PartitionAccount:
    """One partition: what leaves, what arrives, and how each known broker suits its new copies (empty: none new).

    ``led`` is why the preferred leader changes, None if it does not. ``skipped`` is why it was not planned. ``whole``
    is its list in the plan without a movement budget or minimum gain.
    """

    tp: TopicPartition
    current: Replicas
    target: Replicas
    whole: Replicas
    leaving: tuple[Departure, ...]
    arriving: Replicas
    fits: Mapping[BrokerId, Fit] = field(default_factory=dict)
    led: WhyLed | None = None
    pinned: bool = False
    skipped: str = ""
