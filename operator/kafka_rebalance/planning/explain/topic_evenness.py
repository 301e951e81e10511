"""Counts per broker and shares of each topic, for plans that balance topics (PerTopic, Both).

A topic has shares if it is as even as it could be alone. With Both the other topics give way to the totals.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition
from kafka_rebalance.planning.explain.accounts import TopicAccount, TopicsOutside
from kafka_rebalance.planning.explain.fair_shares import FairShares
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.encoding import build
from kafka_rebalance.planning.problem.request import PlanRequest
from kafka_rebalance.planning.topics.topic_balance import uneven_topics

Lists = Mapping[TopicPartition, Replicas]


@dataclass(frozen=True, slots=True)
class Evenness:
    """Number of topics with shares over all brokers, with shares within racks only, and with none."""

    over_all: int
    in_racks: int
    giving_way: int


class TopicCounts:
    """Replicas of each topic on each broker: before, after, and ``whole``, at the end of the plan without a budget or
    minimum gain, which determines the shares. The topics ``giving_way`` have none. Pinned partitions are left out."""

    def __init__(
        self,
        before: Lists,
        after: Lists,
        whole: Lists,
        racks: Mapping[BrokerId, str | None],
        giving_way: Collection[str],
    ) -> None:
        """``racks`` has the rack of each target broker."""
        self._before, self._after, at_end = (_counts(lists) for lists in (before, after, whole))
        self._shares = {topic: FairShares(held, racks) for topic, held in at_end.items() if topic not in giving_way}
        self._targets = sorted(racks)
        self.evenness = Evenness(
            over_all=sum(shares.of_all is not None for shares in self._shares.values()),
            in_racks=sum(shares.of_all is None for shares in self._shares.values()),
            giving_way=len(giving_way),
        )
        self._outside_before, self._outside_after = map(self._count_outside, (self._before, self._after))

    def account(self, topic: str, broker: BrokerId) -> TopicAccount:
        """One topic on one broker."""
        shares = self._shares.get(topic)
        share = shares.of(broker) if shares else None
        return TopicAccount(topic, self._before[topic][broker], self._after[topic][broker], share)

    def outside(self, broker: BrokerId) -> TopicsOutside:
        """Number of topics where this target broker holds less or more than its share."""
        return TopicsOutside(len(self._outside_before[broker]), len(self._outside_after[broker]))

    @property
    def outside_anywhere(self) -> TopicsOutside:
        """Number of topics where any target broker holds less or more than its share."""
        before, after = (set[str]().union(*of.values()) for of in (self._outside_before, self._outside_after))
        return TopicsOutside(len(before), len(after))

    def _count_outside(self, counts: Mapping[str, Counter[BrokerId]]) -> dict[BrokerId, set[str]]:
        outside: dict[BrokerId, set[str]] = defaultdict(set)
        for topic, shares in self._shares.items():
            for b in self._targets:
                share = shares.of(b)
                if share is not None and share.beyond(counts[topic][b]):
                    outside[b].add(topic)
        return outside


def giving_way(request: PlanRequest, made: Plan) -> frozenset[str]:
    """The topics that a plan without a budget leaves less even than they could be alone."""
    if not made.uneven_topics:
        return frozenset()
    encoded = build(request)
    lists = encoded.flat({p.tp: p.target for p in made.partitions})
    topics = sorted({p.tp.topic for p in encoded.partitions})
    return frozenset(topics[number] for number in uneven_topics(Copies.of_lists(encoded.instance, lists)))


def _counts(lists: Lists) -> dict[str, Counter[BrokerId]]:
    counts: dict[str, Counter[BrokerId]] = defaultdict(Counter)
    for tp, replicas in lists.items():
        counts[tp.topic].update(replicas)
    return counts
