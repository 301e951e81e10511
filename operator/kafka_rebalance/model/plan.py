"""A plan: for each partition that changes, the list that it was planned from and its target."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby
from operator import attrgetter
from typing import Self

from kafka_rebalance.model.bulk import made_in_bulk
from kafka_rebalance.model.load_outcome import LoadOutcome
from kafka_rebalance.model.plan_totals import BrokerChange, PlanTotals
from kafka_rebalance.model.rate_room import RateRoom
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition


@made_in_bulk
@dataclass(frozen=True, slots=True, order=True)
class PlannedPartition:
    """One partition that the plan is about. ``topic_id`` is empty in plans made from files.

    ``elects``: the list does not change; its first replica does not lead now and is to be elected.
    """

    tp: TopicPartition
    current: Replicas
    target: Replicas
    topic_id: str = ""
    size_bytes: int = 0
    elects: bool = False

    @property
    def added(self) -> tuple[BrokerId, ...]:
        """Brokers that get a new copy, in the target's order."""
        return tuple(b for b in self.target if b not in self.current)

    @property
    def leader_moves(self) -> bool:
        """Whether the preferred leader changes."""
        return self.current[:1] != self.target[:1]


@dataclass(frozen=True, slots=True)
class LogDirMove:
    """One replica of a planned partition, and the log dirs of its broker that it is in, before and after the plan.

    ``before`` None: the plan brings the replica to the broker; ``after`` None: the plan takes it away. ``origin``: the
    log dir before the run, which is another one than ``before`` if an earlier plan of the run moved the replica.
    ``before`` and ``after`` are the same if that is all there is to know.
    """

    tp: TopicPartition
    broker: BrokerId
    before: str | None
    after: str | None
    origin: str | None
    size_bytes: int = 0

    @property
    def key(self) -> tuple[TopicPartition, BrokerId]:
        """The replica."""
        return self.tp, self.broker

    @property
    def copies(self) -> bool:
        """Whether the plan copies the replica from one log dir to another."""
        return None not in {self.before, self.after} and self.before != self.after

    def excludes(self, at: str | None) -> bool:
        """Whether others must have moved the replica if it is in this log dir now; None: not known.

        False if a reassignment of the run brings the replica or takes it away: Kafka may then have chosen the log dir.
        """
        known = {self.before, self.after, self.origin}
        return None not in known and at is not None and at not in known


@dataclass(frozen=True, slots=True)
class SkippedPartition:
    """A partition that the plan leaves alone, and why (CamelCase reason)."""

    tp: TopicPartition
    reason: str


@dataclass(frozen=True, slots=True)
class Spread:
    """The fewest and the most counted replicas of any target broker."""

    fewest: int
    most: int


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is proved about a plan.

    No plan that balances as well, or with a movement budget: that is as even as this one, makes fewer replica moves
    than ``lower_bound``. ``optimal``: the plan is proved to be the best, with a movement budget the best within it.
    It does not speak of bytes: ``data_lower_bound`` is the fewest bytes that a plan with so few moves can copy (None:
    not known, or all sizes are equal).
    """

    lower_bound: int
    optimal: bool
    data_lower_bound: int | None = None

    @classmethod
    def of(cls, moves: int, lower_bound: int) -> Self:
        """Optimal if the number of moves reaches the bound; the caller has proved everything else."""
        return cls(lower_bound, optimal=moves == lower_bound)


@dataclass(frozen=True, slots=True)
class Imbalance:
    """The imbalance within a movement budget: ``squares``, the sum of the target brokers' squared replica counts (of
    each topic's, if these are balanced first), and ``least``, a lower bound on it for any plan within the budget."""

    squares: int
    least: int


@dataclass(frozen=True)
class Plan:
    """A plan with its certificate.

    ``before`` and ``after`` are the spreads at its start and end (None: unknown). ``reason`` is the CamelCase reason of
    an empty plan for a cluster that does not meet the goals; ``data_source`` where sizes come from (LogDirs;
    LoadModel: also from the pipeline's model; empty: unknown).

    ``partitions`` holds the changed ones, sorted, and those that only get another leader; in a run that superseded an
    earlier plan also those that the earlier plan moved and this one leaves. Of both kinds current = target.
    ``imbalance`` is None unless a movement budget was reached.

    ``uneven_topics`` is the number of topics that are less even than they could be alone, as totals come first (Both).

    ``unmatched`` are sentences on the expressions of the spec that match no topic.

    ``crowded`` are sentences on brokers that end with much more, because others of their rack leave.

    ``in_place`` are the partitions of an assignment (strategy Assignment) that already have their lists: if one of them
    is gone when the run is planned again, it was deleted and is no typing error.

    ``load`` is what the plan does to the use of the brokers, with load goals. ``rate_room`` is what the order of its
    steps has to respect for the limits of rates; None: any order is within them.

    ``log_dirs``, sorted: the replicas of these partitions that move between log dirs of their broker, and those of
    which a rollback has to know the log dir. Only of brokers with several.

    ``decommission``, sorted: the brokers that the plan was made to empty. They may hold nothing of what is selected.
    """

    partitions: tuple[PlannedPartition, ...]
    certificate: Certificate
    rack_violations: int = 0
    skipped: tuple[SkippedPartition, ...] = ()
    before: Spread | None = None
    after: Spread | None = None
    imbalance: Imbalance | None = None
    uneven_topics: int = 0
    reason: str = ""
    data_source: str = ""
    in_place: tuple[TopicPartition, ...] = ()
    unmatched: tuple[str, ...] = ()
    crowded: tuple[str, ...] = ()
    load: LoadOutcome | None = None
    log_dirs: tuple[LogDirMove, ...] = ()
    rate_room: RateRoom | None = None
    decommission: tuple[BrokerId, ...] = ()

    @cached_property
    def log_dir_moves(self) -> int:
        """Number of replicas that are copied from one log dir of their broker to another."""
        return sum(move.copies for move in self.log_dirs)

    @cached_property
    def log_dir_bytes(self) -> int:
        """Bytes that are copied between log dirs."""
        return sum(move.size_bytes for move in self.log_dirs if move.copies)

    @property
    def changed(self) -> int:
        """Number of partitions whose list changes."""
        return self._totals.changed

    @cached_property
    def elections(self) -> int:
        """Number of partitions whose list stays and whose preferred leader is elected."""
        return sum(p.elects for p in self.partitions)

    @property
    def replica_moves(self) -> int:
        """Replicas placed on a broker that did not hold the partition."""
        return self._totals.replica_moves

    @property
    def leader_moves(self) -> int:
        """Partitions whose preferred leader changes."""
        return self._totals.leader_moves

    @property
    def data_to_move_bytes(self) -> int:
        """Bytes that new copies have to fetch."""
        return self._totals.data_to_move_bytes

    @cached_property
    def bytes_copied(self) -> tuple[dict[BrokerId, int], dict[BrokerId, int], dict[BrokerId, int]]:
        """Bytes that are copied into each broker, out of each (the old leaders), and between the log dirs of each."""
        between: defaultdict[BrokerId, int] = defaultdict(int)
        for move in self.log_dirs:
            if move.copies:
                between[move.broker] += move.size_bytes
        return self._totals.bytes_into, self._totals.bytes_out_of, dict(between)

    @property
    def broker_changes(self) -> tuple[BrokerChange, ...]:
        """The changes of each broker, most replicas, then most leaderships, first.

        These are differences: a plan has only the partitions that change, not all that a broker holds.
        """
        return self._totals.broker_changes

    @cached_property
    def _totals(self) -> PlanTotals:
        return PlanTotals.of((p.current, p.target, p.size_bytes) for p in self.partitions)

    @cached_property
    def about(self) -> frozenset[TopicPartition]:
        """Every partition that the plan names, changed or not."""
        named = ((p.tp for p in self.partitions), (row.tp for row in self.skipped), self.in_place)
        return frozenset(chain.from_iterable(named))

    @cached_property
    def hash(self) -> str:
        """``sha256:…`` over the moves and the brokers to empty: an approval covers both, since these are cordoned.

        Unrelated changes in the cluster, sizes included, do not change it, so they do not void an approval.
        """
        if not self.decommission:
            return self.moves_hash
        text = f"{self.moves_hash} {[*self.decommission]}"
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    @cached_property
    def moves_hash(self) -> str:
        """``sha256:…`` over the changed partitions, elections included, and the lists they were planned from.

        Stored plans are verified by it: earlier versions know no other hash.
        """
        return plan_hash(self.partitions, self.log_dirs)


def joined_log_dirs(
    older: Mapping[tuple[TopicPartition, BrokerId], LogDirMove], newer: Iterable[LogDirMove]
) -> dict[tuple[TopicPartition, BrokerId], LogDirMove]:
    """What two runs have moved, one after the other. A rollback of both leads to before the older one.

    If others have moved a replica in between, it leads to before the newer one.
    """
    since = {move.key: move for move in newer}
    both = {key: older[key].origin for key in since.keys() & older.keys() if not older[key].excludes(since[key].origin)}
    return {**older, **since, **{key: replace(since[key], origin=origin) for key, origin in both.items()}}


class _Texts(dict[Replicas, str]):
    """Lists as JSON, each written once. Lists of integers print as JSON."""

    def __missing__(self, replicas: Replicas) -> str:
        text = self[replicas] = str([*replicas])
        return text


def plan_hash(partitions: Iterable[PlannedPartition], log_dirs: Iterable[LogDirMove] = ()) -> str:
    """The hash of the changed partitions among these, and of the log dirs; it does not depend on their order.

    It is taken over one line of JSON per partition: ``["topic", 0, [1, 2, 3], [4, 2, 3]]``. The two lists are equal if
    only a leader is elected. Then follows a line per replica with log dirs: ``["topic", 0, 4, "/data/1", "/data/2",
    "/data/1"]``, which are its broker and the log dirs before and after the plan and before the run.
    """
    digest, texts = hashlib.sha256(), _Texts()
    changed = sorted((p for p in partitions if p.current != p.target or p.elects), key=attrgetter("tp"))
    for topic, rows in groupby(changed, key=attrgetter("tp.topic")):
        name = json.dumps(topic)
        lines = [f"[{name}, {p.tp.partition}, {texts[p.current]}, {texts[p.target]}]\n" for p in rows]
        digest.update("".join(lines).encode())
    for move in sorted(log_dirs, key=lambda move: move.key):
        row = [move.tp.topic, move.tp.partition, move.broker, move.before, move.after, move.origin]
        digest.update(f"{json.dumps(row)}\n".encode())
    return f"sha256:{digest.hexdigest()}"
