"""What an explanation is made of: the reasons there are, and accounts of brokers, topics and partitions.

Counts are over the partitions that were planned. A copy *leaves* a broker that does not hold the partition any more,
and *arrives* at one that did not hold it. How they are found is said in ``explain``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition


class Why(StrEnum):
    """Why a copy leaves a broker; the first that applies."""

    GONE = "Gone"  # the broker is not there
    NOT_TARGET = "NotTarget"  # the broker shall hold nothing
    ASSIGNED = "Assigned"  # the assignment was given, or made from scratch: what is there does not count
    FEWER_REPLICAS = "FewerReplicas"  # the partition shall have fewer replicas
    RACK_RULE = "RackRule"  # its rack holds more copies of the partition than the rack rule allows
    TOPIC_SHARE = "TopicShare"  # the broker holds more than the least share of the topic, and ends with fewer of it
    TOPIC_EXCHANGE = "TopicExchange"  # the broker gives it, and gets as many others of the topic as it gives, or more
    SHARE = "Share"  # the broker ends with fewer replicas than it had
    EXCHANGE = "Exchange"  # the broker gives it, and gets as many others as it gives, or more


class Fit(StrEnum):
    """What a broker is for a new copy of a partition; the first that applies."""

    NOT_TARGET = "NotTarget"  # shall hold nothing
    HELD = "Held"  # held a copy before
    CHOSEN = "Chosen"  # gets it
    RACK_FULL = "RackFull"  # its rack has as many copies as the rack rule allows, without this one
    TOPIC_FULL = "TopicFull"  # ends with its share of the topic, the most of it, without this one
    GETS_NOTHING = "GetsNothing"  # could have got it, and gets no copy of anything
    GETS_OTHERS = "GetsOthers"  # could have got it, gets copies of other partitions


class WhyLed(StrEnum):
    """Why the preferred leader changes; the first that applies."""

    COPY_LEAVES = "CopyLeaves"  # the former one holds no copy any more
    NOT_TARGET = "NotTarget"  # the former one shall hold nothing; its copy stays, and does not lead
    SHARE = "Share"  # the former one ends with fewer leaderships than it had
    EXCHANGE = "Exchange"  # the former one gives this leadership and gets another


@dataclass(frozen=True, slots=True)
class Share:
    """Replicas spread evenly over all target brokers, or those of a rack: each holds ``low`` or ``high``.

    With ``everyone`` False and no ``rack`` the brokers are those without one. ``pinned_full`` more are left out: they
    hold nothing but pinned replicas, and of those ``low`` or more.
    """

    replicas: int
    brokers: int
    everyone: bool
    rack: str | None = None
    pinned_full: int = 0

    @property
    def low(self) -> int:
        """What each has at least."""
        return self.replicas // self.brokers

    @property
    def high(self) -> int:
        """What each has at most."""
        return -(-self.replicas // self.brokers)

    @property
    def at_high(self) -> int:
        """How many of the brokers can have ``high``."""
        return self.replicas - self.low * self.brokers or self.brokers

    def beyond(self, count: int) -> int:
        """How many replicas ``count`` is above ``high``; below ``low`` it is negative."""
        return max(0, count - self.high) - max(0, self.low - count)


@dataclass(frozen=True, slots=True)
class TopicAccount:
    """The replicas of one topic on one broker. ``share`` is None where the topic gives way to the totals."""

    topic: str
    before: int
    after: int
    share: Share | None


@dataclass(frozen=True, slots=True)
class TopicsOutside:
    """Of how many topics a broker (or any broker) holds less or more than its share, before and after."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class BrokerAccount:
    """One broker before and after, ``pinned`` being the replicas that stay on it whatever is planned.

    ``share`` is None where the plan does not even the counts around it out. ``topics`` is None where topics are not
    balanced, and for a broker that shall hold nothing.
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
        """How many replicas it ends with above its share; below it is negative. 0 without a share."""
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
    """One partition: what leaves, what arrives, and what each known broker is for its new copies (empty: none new).

    ``led`` is why the preferred leader changes, None where it does not. ``skipped`` is why it was not planned.
    ``whole`` is the list that the plan gives it that nothing cuts short.
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
