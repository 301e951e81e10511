"""KIP-542's reassignment throttle on stock brokers: the rate of each broker and the lists of each topic.

Pure. A stock broker has one rate per side for all listed replicas (KIP-73); KIP-542 adds a second one for reassigning
replicas. ``target_of`` translates KIP-542's table. Our entries are appended to the lists and subtracted again, so those
of others stay; we never set ``*``. Original values are in ``execution.ledger``.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from kafka_rebalance.model.topology import BrokerId, PartitionState, Replicas, TopicPartition

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_LIST = "leader.replication.throttled.replicas"
FOLLOWER_LIST = "follower.replication.throttled.replicas"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
"""Of copies between the log dirs of a broker: one rate for all of them, without a list."""
REPLICATION_RATES = (LEADER_RATE, FOLLOWER_RATE)
RATE_NAMES = (*REPLICATION_RATES, LOG_DIR_RATE)
LIST_NAMES = (LEADER_LIST, FOLLOWER_LIST)
REPLICATION_THROTTLE = "the replication throttle of the broker"
"""The limiting throttle if it is lower than every claim."""
RATE_OF = {LEADER_LIST: LEADER_RATE, FOLLOWER_LIST: FOLLOWER_RATE}

_NAMED = 3

Entries = Mapping[str, Mapping[str, frozenset[str]]]
"""Topic -> list config -> ``partition:broker``."""


class Side(StrEnum):
    """The side of a copy that a broker's rate limits."""

    LEADER = "leader"
    FOLLOWER = "follower"


class Mode(StrEnum):
    """How a reassignment rate combines with an existing replication rate."""

    ADDITIVE = "Additive"
    SEPARATE = "Separate"
    LOWEST = "Lowest"


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes per second per broker; None: not throttled. ``log_dirs``: between the log dirs of the broker."""

    leader: int | None = None
    follower: int | None = None
    log_dirs: int | None = None

    def by_name(self) -> dict[str, int]:
        """The rates that are set, by config name."""
        pairs = ((LEADER_RATE, self.leader), (FOLLOWER_RATE, self.follower), (LOG_DIR_RATE, self.log_dirs))
        return {name: rate for name, rate in pairs if rate is not None}


@dataclass(frozen=True, slots=True)
class ClusterRates:
    """The rates of a rebalance on each broker: ``general``, except on the brokers in ``own``."""

    general: Rates = field(default_factory=Rates)
    own: Mapping[BrokerId, Rates] = field(default_factory=dict)

    def on(self, broker: BrokerId) -> Rates:
        """The rates of this broker."""
        return self.own.get(broker, self.general)

    @property
    def unlimited(self) -> bool:
        """Whether no broker has a rate on any side."""
        return all(rates == Rates() for rates in (self.general, *self.own.values()))


@dataclass(frozen=True, slots=True)
class Claim:
    """What one resource needs throttled: its rates, the brokers involved, the replicas that move now.

    ``asked`` is False for the default rate, which no spec asked for. Without rates a claim still lists its replicas
    where replication has a rate of its own.
    """

    rates: Rates
    brokers: frozenset[BrokerId] = frozenset()
    entries: Entries = field(default_factory=dict)
    overrides: Mapping[BrokerId, Rates] = field(default_factory=dict)
    asked: bool = True

    def on(self, broker: BrokerId) -> Rates:
        """The rates on this broker."""
        return self.overrides.get(broker, self.rates)

    @property
    def asks(self) -> bool:
        """Whether it asks for a rate on any broker."""
        return any(rates != Rates() for rates in (self.rates, *self.overrides.values()))

    @property
    def copies(self) -> bool:
        """Whether anything moves for it now."""
        return any(any(lists.values()) for lists in self.entries.values())


@dataclass(frozen=True, slots=True)
class RequestedRate:
    """What one claim asks of one side of one broker."""

    rate: int
    explicit: bool = True


@dataclass(frozen=True, slots=True)
class WantedThrottle:
    """All claims together: the brokers involved, the rates asked for there (by claim), the entries to list.

    ``claims``: the names of all claims on a broker, with those that ask for no rate there. ``limited``: the entries of
    claims that ask for a rate.
    """

    brokers: frozenset[BrokerId] = frozenset()
    rates: Mapping[BrokerId, Mapping[str, Mapping[str, RequestedRate]]] = field(default_factory=dict)
    entries: Entries = field(default_factory=dict)
    claims: Mapping[BrokerId, frozenset[str]] = field(default_factory=dict)
    limited: Entries = field(default_factory=dict)

    def limited_entries(self, topic: str, name: str) -> Collection[str]:
        """The entries of replicas that a claim moves which asks for a rate."""
        return self.limited.get(topic, {}).get(name, frozenset())

    def asked(self, broker: BrokerId, name: str) -> Mapping[str, RequestedRate]:
        """The rate that each claim asks for on this broker and side; empty if none does."""
        return self.rates.get(broker, {}).get(name, {})


@dataclass(frozen=True, slots=True)
class Refusal:
    """KIP-542's configuration error: the ``rate`` that ``claim`` asks for is above the ``replication`` throttle."""

    rate: int
    claim: str
    replication: int


@dataclass(frozen=True, slots=True)
class Target:
    """The throttle that one side of one broker should have.

    ``rate``: bytes per second to write; None: none. ``listed``: whether moving replicas are listed. ``claim``: the one
    that binds. ``refused``: why nothing may be applied; None if it may.
    """

    rate: int | None = None
    listed: bool = False
    claim: str = ""
    refused: Refusal | None = None


def combine(claims: Mapping[str, Claim]) -> WantedThrottle:
    """All claims, by name, together."""
    rates: dict[BrokerId, dict[str, dict[str, RequestedRate]]] = {}
    names: dict[BrokerId, frozenset[str]] = {}
    for claimant, claim in sorted(claims.items()):
        for broker in claim.brokers:
            names[broker] = names.get(broker, frozenset()) | {claimant}
            for name, rate in claim.on(broker).by_name().items():
                rates.setdefault(broker, {}).setdefault(name, {})[claimant] = RequestedRate(rate, claim.asked)
    entries = united(claim.entries for claim in claims.values())
    asking = [claim for claim in claims.values() if claim.asks]
    limited = entries if len(asking) == len(claims) else united(claim.entries for claim in asking)
    return WantedThrottle(frozenset(names), rates, entries, names, limited)


def united(parts: Iterable[Entries]) -> dict[str, Mapping[str, frozenset[str]]]:
    """All entries of these parts. The lists of a topic that only one part has are those of the part."""
    found: dict[str, list[Mapping[str, frozenset[str]]]] = {}
    for part in parts:
        for topic, lists in part.items():
            found.setdefault(topic, []).append(lists)
    return {topic: lists for topic, rows in found.items() if (lists := _united_lists(rows))}


def _united_lists(rows: Sequence[Mapping[str, frozenset[str]]]) -> Mapping[str, frozenset[str]]:
    if len(rows) == 1 and all(rows[0].values()):
        return rows[0]
    found: dict[str, set[str]] = {}
    for lists in rows:
        for name, items in lists.items():
            if items:
                found.setdefault(name, set()).update(items)
    return {name: frozenset(items) for name, items in found.items()}


def target_of(replication: int | None, asked: Mapping[str, RequestedRate], mode: Mode) -> Target:
    """KIP-542's table for one side of one broker; ``replication``: the rate before us, or None.

    The lowest claim binds. A rate above the replication rate is a configuration error; a default rate is lowered to it
    instead, and with ``LOWEST`` any rate. The claim of a default has the name that it would have with a rate in the
    spec, and is shown as "the default of" it.
    """
    if not asked:
        return Target(listed=replication is not None)
    claim, least = min(asked.items(), key=lambda item: (item[1].rate, not item[1].explicit, item[0]))
    rate, claim = least.rate, claim if least.explicit else f"the default of {claim}"
    if replication is None:
        return Target(rate, listed=True, claim=claim)
    if mode is Mode.LOWEST:
        return Target(min(rate, replication), listed=True, claim=claim if rate <= replication else REPLICATION_THROTTLE)
    if rate > replication and least.explicit:
        return Target(listed=True, claim=claim, refused=Refusal(rate, claim, replication))
    rate = min(rate, replication)
    return Target(replication + rate if mode is Mode.ADDITIVE else rate, listed=True, claim=claim)


def refusals_told(refusals: Mapping[tuple[BrokerId, str], Refusal]) -> list[str]:
    """A sentence for each error, with all brokers that have it; ``refusals``: by broker and rate."""
    found: dict[Refusal, dict[BrokerId, set[str]]] = {}
    for (broker, name), refusal in sorted(refusals.items()):
        found.setdefault(refusal, {}).setdefault(broker, set()).add(name)
    return [_told(refusal, rows) for refusal, rows in found.items()]


def _told(refusal: Refusal, rows: Mapping[BrokerId, set[str]]) -> str:
    names = ", ".join(sorted(set().union(*rows.values())))
    some = ", ".join(str(broker) for broker in list(rows)[:_NAMED])
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    whose = f"broker {some} already has" if len(rows) == 1 else f"{len(rows)} brokers ({some}{more}) already have"
    has = f"a replication throttle of {refusal.replication} B/s ({names})"
    return f"{whose} {has}, below the {refusal.rate} B/s of {refusal.claim}"


def rate_in(value: str | None) -> int | None:
    """Bytes per second of a config value; None if it is unset, as are -1 and the empty string."""
    return None if value in (None, "", "-1") else int(value)


@lru_cache(maxsize=65536)
def broker_of(entry: str) -> BrokerId:
    """The broker of a ``partition:broker`` entry."""
    return BrokerId(int(entry.rpartition(":")[2]))


def entries_of(tp: TopicPartition, leaders: frozenset[BrokerId], followers: frozenset[BrokerId]) -> Entries:
    """The entries of a partition with these brokers on the leader side and on the follower side."""
    sides = {LEADER_LIST: leaders, FOLLOWER_LIST: followers}
    return {tp.topic: {name: frozenset(f"{tp.partition}:{b}" for b in brokers) for name, brokers in sides.items()}}


def brokers_to_throttle(state: PartitionState, submitted: Replicas) -> tuple[frozenset[BrokerId], frozenset[BrokerId]]:
    """Leader-side and follower-side brokers of a partition in flight or about to be submitted.

    Leader side: every replica, added ones too: any of them may become leader between two ticks and serve the others.
    Follower side: only added replicas.
    """
    added = frozenset(submitted).difference(set(state.replicas).difference(state.adding))
    return added.union(state.replicas), added


def needs_relief(state: PartitionState, submitted: Replicas) -> bool:
    """Whether a replica that stays is out of the ISR: leader-side entries would slow its return as well."""
    staying = set(submitted).intersection(state.replicas).difference(state.adding, state.removing)
    return not state.isr.issuperset(staying)


def moving_brokers(lists: Collection[Replicas], goals: Collection[Replicas]) -> frozenset[BrokerId]:
    """The sources and destinations of a partition's copies; none if no copy is made.

    ``lists``: all that the partition may have, or go to; each of the ``goals`` may be next.
    """
    copies = any(set(goal) - set(held) for goal in goals for held in lists)
    return frozenset[BrokerId]().union(*lists) if copies else frozenset()
