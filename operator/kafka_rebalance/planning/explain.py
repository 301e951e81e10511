"""Why a plan moves what it moves: facts that anyone can check by counting, no guess at what a solver had in mind.

Counts are over the partitions that were planned. A copy *leaves* a broker that does not hold the partition any more,
and *arrives* at one that did not hold it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.plan import Plan, PlannedPartition
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition
from kafka_rebalance.planning.instance import encode
from kafka_rebalance.planning.request import PlanRequest, RackAwareness, Strategy


class Why(StrEnum):
    """Why a copy leaves a broker; the first that applies."""

    GONE = "Gone"  # the broker is not there
    NOT_TARGET = "NotTarget"  # the broker shall hold nothing
    ASSIGNED = "Assigned"  # the assignment was given, or made from scratch: what is there does not count
    FEWER_REPLICAS = "FewerReplicas"  # the partition shall have fewer replicas
    RACK_RULE = "RackRule"  # its rack holds more copies of the partition than the rack rule allows
    SHARE = "Share"  # the broker ends with fewer replicas than it had
    EXCHANGE = "Exchange"  # the broker ends with as many: it gives this one and gets another


class Fit(StrEnum):
    """What a broker is for a new copy of a partition; the first that applies."""

    NOT_TARGET = "NotTarget"  # shall hold nothing
    HELD = "Held"  # held a copy before
    CHOSEN = "Chosen"  # gets it
    RACK_FULL = "RackFull"  # its rack has as many copies as the rack rule allows, without this one
    GETS_NOTHING = "GetsNothing"  # could have got it, and gets no copy of anything
    GETS_OTHERS = "GetsOthers"  # could have got it, gets copies of other partitions


class WhyLed(StrEnum):
    """Why the preferred leader changes; the first that applies."""

    COPY_LEAVES = "CopyLeaves"  # the former one holds no copy any more
    SHARE = "Share"  # the former one ends with fewer leaderships than it had
    EXCHANGE = "Exchange"  # the former one gives this leadership and gets another


@dataclass(frozen=True, slots=True)
class Share:
    """Replicas spread evenly over all target brokers, or those of a rack: each holds ``low`` or ``high``.

    With ``everyone`` False and no ``rack`` the brokers are those without one.
    """

    replicas: int
    brokers: int
    everyone: bool
    rack: str | None = None

    @property
    def low(self) -> int:
        """What each has at least."""
        return self.replicas // self.brokers

    @property
    def high(self) -> int:
        """What each has at most."""
        return -(-self.replicas // self.brokers)


@dataclass(frozen=True, slots=True)
class BrokerAccount:
    """One broker before and after. ``share`` is None where the plan does not even the counts around it out."""

    broker: BrokerId
    rack: str | None
    known: bool
    target: bool
    before: int
    after: int
    arriving: int
    leaving: Mapping[Why, int]
    led_before: int
    led_after: int
    share: Share | None


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
    """

    tp: TopicPartition
    current: Replicas
    target: Replicas
    leaving: tuple[Departure, ...]
    arriving: Replicas
    fits: Mapping[BrokerId, Fit] = field(default_factory=dict)
    led: WhyLed | None = None
    pinned: bool = False
    skipped: str = ""


class Explanation:
    """The plan that was made of a request, in facts."""

    def __init__(self, request: PlanRequest, made: Plan) -> None:
        self.request = request
        self.plan = made
        self.planned = tuple(p for p in request.partitions if p.has_leader)
        self._target = {p.tp: p.target for p in made.partitions}
        self._rack = {b.id: b.rack for b in request.brokers}
        ruled = request.goals.rack_awareness is not RackAwareness.DISABLED
        self._ruled_rack = {b: rack for b, rack in self._rack.items() if ruled}
        before, after = Counter[BrokerId](), Counter[BrokerId]()
        led_before, led_after = Counter[BrokerId](), Counter[BrokerId]()
        for p in self.planned:
            target = self._target.get(p.tp, p.replicas)
            before.update(p.replicas)
            after.update(target)
            led_before[p.replicas[0]] += 1
            led_after[target[0]] += 1
        self._before, self._after, self._led_before, self._led_after = before, after, led_before, led_after

    @cached_property
    def departures(self) -> tuple[Departure, ...]:
        """All copies that leave, by partition."""
        return tuple(departure for p in self.plan.partitions for departure in self._leaving(p))

    @cached_property
    def brokers(self) -> tuple[BrokerAccount, ...]:
        """Every broker that is known or held something, by id."""
        arriving = Counter(b for p in self.plan.partitions for b in p.added)
        leaving: dict[BrokerId, Counter[Why]] = {}
        for departure in self.departures:
            leaving.setdefault(departure.broker, Counter())[departure.why] += 1
        return tuple(
            BrokerAccount(
                broker=b,
                rack=self._rack.get(b),
                known=b in self._rack,
                target=b in self.request.targets,
                before=self._before[b],
                after=self._after[b],
                arriving=arriving[b],
                leaving=leaving.get(b, {}),
                led_before=self._led_before[b],
                led_after=self._led_after[b],
                share=self.share(b),
            )
            for b in sorted(self._rack.keys() | self._before.keys())
        )

    def broker(self, broker: int) -> BrokerAccount:
        """One broker. Refused (UnknownBroker) where it is not there and holds nothing."""
        at = bisect_left(self.brokers, broker, key=lambda account: account.broker)
        if at == len(self.brokers) or self.brokers[at].broker != broker:
            known = [account.broker for account in self.brokers]
            raise Refused("UnknownBroker", f"broker {broker} is not in the cluster and holds nothing; known: {known}")
        return self.brokers[at]

    def partition(self, tp: TopicPartition) -> PartitionAccount:
        """One partition. Refused (UnknownPartition) where it is not among those that were asked for."""
        asked = next((p for p in self.request.partitions if p.tp == tp), None)
        if asked is None:
            raise Refused("UnknownPartition", f"topic-partition {tp} is not among those that the plan is about")
        skipped = next((s.reason for s in self.plan.skipped if s.tp == tp), "")
        unchanged = PlannedPartition(tp, asked.replicas, asked.replicas)
        changed = next((p for p in self.plan.partitions if p.tp == tp), unchanged)
        return PartitionAccount(
            tp=tp,
            current=changed.current,
            target=changed.target,
            leaving=tuple(self._leaving(changed)),
            arriving=changed.added,
            fits={b: self._fit(changed, b) for b in sorted(self._rack)} if changed.added else {},
            led=self.led(changed) if changed.leader_moves else None,
            pinned=asked.pinned,
            skipped=skipped,
        )

    def share(self, broker: BrokerId) -> Share | None:
        """How the counts around a target broker are even: over all target brokers, or else over those of its rack."""
        if broker not in self.request.targets:
            return None
        everyone = self.request.targets
        rack = self._rack.get(broker)
        alike = frozenset(b for b in everyone if self._rack.get(b) == rack)
        for share in (Share(0, 0, everyone=True), Share(0, 0, everyone=False, rack=rack)):
            brokers = everyone if share.everyone else alike
            fewest, most, replicas = self._spread(brokers)
            if most - fewest <= 1:
                return replace(share, replicas=replicas, brokers=len(brokers))
        return None

    def _spread(self, brokers: frozenset[BrokerId]) -> tuple[int, int, int]:
        """The fewest, the most and all replicas that these brokers end with."""
        known = self._spreads.get(brokers)
        if known is None:
            counts = [self._after[b] for b in brokers]
            known = self._spreads[brokers] = (min(counts), max(counts), sum(counts))
        return known

    @cached_property
    def _spreads(self) -> dict[frozenset[BrokerId], tuple[int, int, int]]:
        return {}

    @cached_property
    def _room(self) -> Mapping[tuple[int, BrokerId], int]:
        """How many copies of a partition of so many replicas the rack rule allows in a target broker's rack."""
        kinds = sorted({len(rf) for p in self.planned for rf in (p.replicas, self._target.get(p.tp, p.replicas))})
        brokers = sorted(self._rack)
        eligible = np.array([b in self.request.targets for b in brokers], dtype=np.bool_)
        racks = [self._rack[b] for b in brokers]
        rf = np.array(kinds, dtype=np.int64)
        # An instance of one partition for each replication factor, wherever it is: the rule depends on nothing else.
        rule = encode(racks, eligible, rf, np.zeros(int(rf.sum()), dtype=np.int64), self.request.goals.rack_awareness)
        return {
            (kind, b): int(rule.room_of[k, rule.group[i]])
            for k, kind in enumerate(kinds)
            for i, b in enumerate(brokers)
            if b in self.request.targets
        }

    def _beside(self, brokers: Iterable[BrokerId], broker: BrokerId) -> int:
        """How many of these the rack rule counts as in the rack of ``broker``: target brokers only, itself included.

        A broker without a rack is one by itself.
        """
        rack = self._ruled_rack.get(broker)
        if rack is None:
            return sum(b == broker for b in brokers)
        return sum(b in self.request.targets and self._rack.get(b) == rack for b in brokers)

    def _leaving(self, p: PlannedPartition) -> list[Departure]:
        gone = [b for b in p.current if b not in p.target]
        fewer = len(p.current) - len(p.target)
        left = Counter[str | None]()
        found = []
        for b in gone:
            held, room = self._beside(p.current, b), self._room.get((len(p.target), b), 0)
            rack = self._ruled_rack.get(b)
            # As many as the rack has fewer in the end, down to what the rule allows.
            over = held - max(room, self._beside(p.target, b))
            crowded = rack is not None and b in self.request.targets and left[rack] < over
            why = self._why(b, crowded=crowded, fewer=fewer > 0)
            left[rack] += b in self.request.targets
            if why is Why.FEWER_REPLICAS:
                fewer -= 1
            found.append(Departure(p.tp, b, why, *((held, room) if why is Why.RACK_RULE else (0, 0))))
        return found

    def _why(self, broker: BrokerId, *, crowded: bool, fewer: bool) -> Why:
        rules = (
            (Why.GONE, broker not in self._rack),
            (Why.NOT_TARGET, broker not in self.request.targets),
            (Why.ASSIGNED, self.request.strategy in {Strategy.ASSIGNMENT, Strategy.GENERATE}),
            (Why.FEWER_REPLICAS, fewer),
            (Why.RACK_RULE, crowded),
            (Why.SHARE, self._before[broker] > self._after[broker]),
        )
        return next((why for why, applies in rules if applies), Why.EXCHANGE)

    def _fit(self, p: PlannedPartition, broker: BrokerId) -> Fit:
        if broker not in self.request.targets:
            return Fit.NOT_TARGET
        if broker in p.current:
            return Fit.HELD
        if broker in p.target:
            return Fit.CHOSEN
        if not self._has_room(p, broker):
            return Fit.RACK_FULL
        return Fit.GETS_OTHERS if self._arrivals[broker] else Fit.GETS_NOTHING

    def _has_room(self, p: PlannedPartition, broker: BrokerId) -> bool:
        """Whether the rack rule lets this broker have one of the new copies instead of the one that gets it."""
        room = self._room[len(p.target), broker]
        return any(self._beside([b for b in p.target if b != chosen], broker) < room for chosen in p.added)

    @cached_property
    def _arrivals(self) -> Counter[BrokerId]:
        return Counter(b for p in self.plan.partitions for b in p.added)

    def led(self, p: PlannedPartition) -> WhyLed:
        """Why the preferred leader of a changed partition changes, which it does."""
        former = p.current[0]
        if former not in p.target:
            return WhyLed.COPY_LEAVES
        return WhyLed.SHARE if self._led_before[former] > self._led_after[former] else WhyLed.EXCHANGE
