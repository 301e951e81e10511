"""Why a plan moves what it moves, as facts that can be checked by counting.

Counts are over the planned partitions, pinned ones included. Shares are those at the end of the plan; if a movement
budget or the minimum gain cuts it short, those of the plan without (``whole``).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.goals import Balance, Strategy
from kafka_rebalance.model.plan import Plan, PlannedPartition
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition
from kafka_rebalance.planning.explain.accounts import BrokerAccount, Departure, Fit, PartitionAccount, Why, WhyLed
from kafka_rebalance.planning.explain.fair_shares import FairShares
from kafka_rebalance.planning.explain.rack_rule import RackRule
from kafka_rebalance.planning.explain.topic_evenness import TopicCounts, giving_way
from kafka_rebalance.planning.gain import Gain, gains_of
from kafka_rebalance.planning.planner import plan
from kafka_rebalance.planning.problem.request import PlanRequest
from kafka_rebalance.reasons import Reason

Lists = Mapping[TopicPartition, Replicas]


class Explanation:
    """The facts about a plan of a request."""

    def __init__(self, request: PlanRequest, made: Plan) -> None:
        self.request = request
        self.plan = made
        self.planned = tuple(p for p in request.partitions if p.counts)
        self._rack = {b.id: b.rack for b in request.brokers}
        self._lists = {p.tp: p.replicas for p in self.planned}
        self._targets = self._lists | {p.tp: p.target for p in made.partitions}
        self._before, self._after = _held(self._lists), _held(self._targets)
        self._led_before, self._led_after = _led(self._lists), _led(self._targets)
        self._pinned = _held({p.tp: p.replicas for p in self.planned if p.pinned})

    @property
    def cut_short(self) -> bool:
        """Whether a movement budget or the minimum gain keeps the plan from full balance."""
        return self.plan.imbalance is not None or self.plan.reason == Reason.GAIN_TOO_SMALL

    @cached_property
    def whole(self) -> Plan:
        """This plan or, if it was cut short, the plan without a budget and minimum gain."""
        if not self.cut_short:
            return self.plan
        goals = replace(self.request.goals, max_replica_moves=None, max_data_to_move=None, minimum_gain=0)
        return plan(replace(self.request, goals=goals))

    @cached_property
    def judged(self) -> Plan:
        """The plan whose gain is judged: this one or, if it gains too little, the plan without a minimum gain."""
        if self.plan.reason != Reason.GAIN_TOO_SMALL:
            return self.plan
        goals = replace(self.request.goals, minimum_gain=0)
        return plan(replace(self.request, goals=goals)) if goals.limited else self.whole

    @property
    def budget_reached(self) -> bool:
        """Whether full balance exceeds the movement budget, also if the plan gains too little."""
        return self.judged.imbalance is not None

    @cached_property
    def gains(self) -> tuple[Gain, ...]:
        """The gains that the plan is judged by; empty if a move is forced."""
        return gains_of(self.request, self.judged)

    @cached_property
    def topics(self) -> TopicCounts | None:
        """The counts of each topic; None if topics are not balanced."""
        if self.request.goals.balance is Balance.TOTAL:
            return None
        gives_way = giving_way(self.request, self.whole)
        before, after, whole = map(self._may_move, (self._lists, self._targets, self._at_end))
        return TopicCounts(before, after, whole, self._target_racks, gives_way)

    @cached_property
    def departures(self) -> tuple[Departure, ...]:
        """All copies that leave, by partition."""
        return tuple(departure for p in self.plan.partitions for departure in self._leaving(p))

    @cached_property
    def brokers(self) -> tuple[BrokerAccount, ...]:
        """Every broker that is known or held a replica, by id."""
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
                pinned=self._pinned[b],
                arriving=self._arrivals[b],
                leaving=leaving.get(b, {}),
                led_before=self._led_before[b],
                led_after=self._led_after[b],
                share=self._shares.of(b) if self._shares else None,
                topics=self.topics.outside(b) if self.topics and b in self.request.targets else None,
            )
            for b in sorted(self._rack.keys() | self._before.keys())
        )

    def broker(self, broker: int) -> BrokerAccount:
        """One broker. Raises Refused (UnknownBroker) if it is not in the cluster and holds nothing."""
        at = bisect_left(self.brokers, broker, key=lambda account: account.broker)
        if at == len(self.brokers) or self.brokers[at].broker != broker:
            known = [account.broker for account in self.brokers]
            raise Refused(
                Reason.UNKNOWN_BROKER, f"broker {broker} is not in the cluster and holds nothing; known: {known}"
            )
        return self.brokers[at]

    def partition(self, tp: TopicPartition) -> PartitionAccount:
        """One partition. Raises Refused (UnknownPartition) if the request does not have it."""
        asked = next((p for p in self.request.partitions if p.tp == tp), None)
        if asked is None:
            raise Refused(Reason.UNKNOWN_PARTITION, f"topic-partition {tp} is not among those that the plan is about")
        skipped = next((s.reason for s in self.plan.skipped if s.tp == tp), "")
        unchanged = PlannedPartition(tp, asked.replicas, asked.replicas)
        changed = next((p for p in self.plan.partitions if p.tp == tp), unchanged)
        return PartitionAccount(
            tp=tp,
            current=changed.current,
            target=changed.target,
            whole=self._at_end.get(tp, asked.replicas),
            leaving=tuple(self._leaving(changed)),
            arriving=changed.added,
            fits={b: self._fit(changed, b) for b in sorted(self._rack)} if changed.added else {},
            led=self.led(changed) if changed.leader_moves else None,
            pinned=asked.pinned,
            skipped=skipped,
        )

    def led(self, p: PlannedPartition) -> WhyLed:
        """Why the preferred leader changes, for a partition whose preferred leader changes."""
        former = p.current[0]
        rules = (
            (WhyLed.COPY_LEAVES, former not in p.target),
            (WhyLed.NOT_TARGET, former not in self.request.targets),
            (WhyLed.SHARE, self._led_before[former] > self._led_after[former]),
        )
        return next((why for why, applies in rules if applies), WhyLed.EXCHANGE)

    @cached_property
    def _at_end(self) -> Lists:
        """Every list at the end of ``whole``."""
        return self._lists | {p.tp: p.target for p in self.whole.partitions}

    def _may_move(self, lists: Lists) -> Lists:
        """The lists without pinned partitions."""
        if not self._pinned:
            return lists
        pinned = {p.tp for p in self.planned if p.pinned}
        return {tp: replicas for tp, replicas in lists.items() if tp not in pinned}

    @cached_property
    def _target_racks(self) -> Mapping[BrokerId, str | None]:
        return {b: self._rack.get(b) for b in sorted(self.request.targets)}

    @cached_property
    def _shares(self) -> FairShares | None:
        """None if totals are no goal: PerTopic evens them only where that costs no moves."""
        if self.request.goals.balance is Balance.PER_TOPIC or not self.request.goals.counts:
            return None
        return FairShares(_held(self._at_end), self._target_racks, self._pinned)

    @cached_property
    def _arrivals(self) -> Counter[BrokerId]:
        return Counter(b for p in self.plan.partitions for b in p.added)

    @cached_property
    def _racks(self) -> RackRule:
        return RackRule(self.request, {len(row) for lists in (self._lists, self._targets) for row in lists.values()})

    def _leaving(self, p: PlannedPartition) -> list[Departure]:
        gone = [b for b in p.current if b not in p.target]
        fewer = len(p.current) - len(p.target)
        left = Counter[str | None]()
        found = []
        for b in gone:
            held, capacity = self._racks.beside(p.current, b), self._racks.capacity(len(p.target), b)
            rack = self._racks.rack(b)
            # As many as the rack loses, down to what the rule allows.
            over = held - max(capacity, self._racks.beside(p.target, b))
            crowded = rack is not None and b in self.request.targets and left[rack] < over
            why = self._why(p.tp.topic, b, crowded=crowded, fewer=fewer > 0)
            left[rack] += b in self.request.targets
            if why is Why.FEWER_REPLICAS:
                fewer -= 1
            found.append(Departure(p.tp, b, why, *((held, capacity) if why is Why.RACK_RULE else (0, 0))))
        return found

    def _why(self, topic: str, broker: BrokerId, *, crowded: bool, fewer: bool) -> Why:
        of = self.topics.account(topic, broker) if self.topics else None
        share = of.share if of else None
        rules = (
            (Why.GONE, broker not in self._rack),
            (Why.NOT_TARGET, broker not in self.request.targets),
            (Why.ASSIGNED, self.request.strategy in {Strategy.ASSIGNMENT, Strategy.GENERATE}),
            (Why.FEWER_REPLICAS, fewer),
            (Why.RACK_RULE, crowded),
            (Why.TOPIC_SHARE, of and share and of.before > max(of.after, share.low)),
            (Why.TOPIC_EXCHANGE, of and share and of.before <= of.after),
            (Why.SHARE, self._before[broker] > self._after[broker]),
        )
        return next((why for why, applies in rules if applies), Why.EXCHANGE)

    def _fit(self, p: PlannedPartition, broker: BrokerId) -> Fit:
        of = self.topics.account(p.tp.topic, broker) if self.topics else None
        rules = (
            (Fit.NOT_TARGET, broker not in self.request.targets),
            (Fit.HELD, broker in p.current),
            (Fit.CHOSEN, broker in p.target),
            (Fit.RACK_FULL, not self._racks.has_capacity(p, broker)),
            (Fit.TOPIC_FULL, of and of.share and of.after >= of.share.high),
            (Fit.GETS_OTHERS, self._arrivals[broker] > 0),
        )
        return next((fit for fit, applies in rules if applies), Fit.GETS_NOTHING)


def _held(lists: Lists) -> Counter[BrokerId]:
    return Counter(b for row in lists.values() for b in row)


def _led(lists: Lists) -> Counter[BrokerId]:
    return Counter(row[0] for row in lists.values())
