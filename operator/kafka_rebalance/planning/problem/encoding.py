"""Checks a request and encodes it as an instance. Errors name the partition or broker at fault.

A larger replication factor adds replicas on a broker that does not exist: they must move, like those of any broker
that is gone. A smaller one makes an instance that shrinks. Pinned partitions are not part of the instance; their
replicas and preferred leaders are its ``fixed_replicas`` and ``fixed_leaders``.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import attrgetter, eq, gt, ne

import numpy as np
from numpy.typing import NDArray

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.goals import Balance, Strategy
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition
from kafka_rebalance.planning.problem.instance import Indices, Instance, Ints, encode
from kafka_rebalance.planning.problem.request import PartitionInput, PlanRequest
from kafka_rebalance.reasons import Reason

_INT32 = range(-(2**31), 2**31)
"""Broker ids are 32 bits wide in Kafka's protocol."""

_LARGEST = 2**50
"""Sizes are capped at one pebibyte."""

_REPLICAS = attrgetter("replicas")

NOWHERE = 2**31
"""The first id of the brokers that do not exist, for added replicas."""


@dataclass(frozen=True)
class Encoded:
    """The instance, and the partitions and brokers of its indices."""

    instance: Instance
    partitions: tuple[PartitionInput, ...]
    brokers: tuple[BrokerId, ...]

    def ids(self, indices: Indices) -> Replicas:
        """Broker indices as broker ids."""
        return tuple(map(self.brokers.__getitem__, indices.tolist()))

    def flat(self, lists: Mapping[TopicPartition, Replicas]) -> Indices:
        """The lists of all partitions as flat indices [N]; partitions missing from ``lists`` keep theirs."""
        rows = (lists.get(p.tp, p.replicas) for p in self.partitions)
        ids = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(self.instance.rf.sum()))
        return np.searchsorted(np.array(self.brokers, dtype=np.int64), ids).astype(np.int32)


def build(request: PlanRequest) -> Encoded:
    """Check the request and encode it. Raises Refused naming the partition, broker or goal at fault."""
    _check_goals(request)
    partitions = [p for p in request.partitions if p.has_leader or p.pinned]
    tps = [p.tp for p in partitions]
    if any(map(gt, tps, tps[1:])):
        partitions.sort(key=attrgetter("tp"))
        tps.sort()
    _check_brokers(request)
    _refuse_doubled(tps)
    pinned = [p for p in partitions if p.pinned]
    partitions = [p for p in partitions if not p.pinned] if pinned else partitions
    _check_ids(partitions)
    _check_ids(pinned)
    rf = _replication_factors(request, partitions)
    _check_factors(partitions, rf, request)
    listed, flat = _lists(partitions, rf)
    staying = np.fromiter(chain.from_iterable(p.replicas for p in pinned), dtype=np.int64)
    ids = np.unique(np.concatenate([np.array([b.id for b in request.brokers], dtype=np.int64), flat, staying]))
    brokers = tuple(BrokerId(b) for b in ids.tolist())
    rack_of = {b.id: b.rack for b in request.brokers}
    broker_of = np.searchsorted(ids, flat)
    _check_lists(partitions, listed, broker_of)
    leading = np.array([p.replicas[0] for p in pinned], dtype=np.int64)
    instance = encode(
        [rack_of.get(b) for b in brokers],
        np.array([b in request.targets for b in brokers], dtype=np.bool_),
        rf,
        broker_of,
        request.goals.rack_awareness,
        topic=_topics(partitions),
        size=_sizes(partitions),
        list_length=listed,
        fixed_replicas=np.bincount(np.searchsorted(ids, staying), minlength=len(ids)),
        fixed_leaders=np.bincount(np.searchsorted(ids, leading), minlength=len(ids)),
    )
    return Encoded(instance, tuple(partitions), brokers)


def _topics(partitions: list[PartitionInput]) -> Ints:
    """The topic number of each partition [P]; partitions are sorted by topic."""
    topics = [p.tp.topic for p in partitions]
    begins = map(ne, topics, topics[1:])
    return np.cumsum(np.fromiter(chain((0,), begins), dtype=np.int64, count=max(1, len(partitions)))[: len(partitions)])


def _sizes(partitions: list[PartitionInput]) -> Ints:
    """The bytes of one replica of each partition [P], at most ``_LARGEST``."""
    sizes = [p.size_bytes for p in partitions]
    if max(sizes, default=0) > _LARGEST:
        sizes = [min(size, _LARGEST) for size in sizes]
    return np.array(sizes, dtype=np.int64)


def _lengths(partitions: list[PartitionInput]) -> Ints:
    """The number of replicas that each partition has now [P]."""
    return np.fromiter(map(len, map(_REPLICAS, partitions)), dtype=np.int64, count=len(partitions))


def _replication_factors(request: PlanRequest, partitions: list[PartitionInput]) -> Ints:
    """The target replication factor of each partition [P]."""
    listed = _lengths(partitions)
    if request.strategy is Strategy.PREFERRED_LEADERS or request.replication_factor is None:
        return listed
    if request.strategy is Strategy.ASSIGNMENT:
        named = np.fromiter((p.tp in request.assignment for p in partitions), dtype=np.bool_, count=len(partitions))
        return np.where(named, request.replication_factor, listed)
    return np.full(len(partitions), request.replication_factor, dtype=np.int64)


def _lists(partitions: list[PartitionInput], rf: Ints) -> tuple[Ints, Ints]:
    """The length of each list [P], and all lists flat; those that grow get brokers that do not exist."""
    listed, lists = _lengths(partitions), map(_REPLICAS, partitions)
    grow = np.maximum(rf - listed, 0)
    if not grow.any():
        return listed, np.fromiter(chain.from_iterable(lists), dtype=np.int64, count=int(listed.sum()))
    nowhere = range(NOWHERE, NOWHERE + int(grow.max()))
    filled = ((*row, *nowhere[:more]) for row, more in zip(lists, grow.tolist(), strict=True))
    longer = listed + grow
    return longer, np.fromiter(chain.from_iterable(filled), dtype=np.int64, count=int(longer.sum()))


def _check_goals(request: PlanRequest) -> None:
    """Refuse goals that cannot be combined."""
    goals = request.goals
    asked = {
        "balance": goals.balance is not Balance.TOTAL,
        "maxReplicaMoves": goals.max_replica_moves is not None,
        "maxDataToMove": goals.max_data_to_move is not None,
    }
    if goals.load and request.strategy is not Strategy.MINIMAL_MOVEMENT:
        raise Refused(Reason.GOALS_NOT_COMBINED, f"goals.load cannot be combined with the strategy {request.strategy}")
    counted = {"goals.balance": asked["balance"], "goals.minimumGain": goals.minimum_gain > 0}
    if not goals.counts and (unfit := [name for name, given in counted.items() if given]):
        raise Refused(
            Reason.GOALS_NOT_COMBINED, f"goals.counts: false cannot be combined with {unfit[0]}, which is about counts"
        )
    if not goals.counts and not goals.load:
        raise Refused(Reason.GOALS_NOT_COMBINED, "goals.counts: false requires goals.load: nothing else would be even")
    others = {
        f"the strategy {request.strategy}": request.strategy is not Strategy.MINIMAL_MOVEMENT,
        "a replicationFactor": request.replication_factor is not None,
    }
    goal, other = (next((name for name, given in of.items() if given), None) for of in (asked, others))
    if goal and other:
        raise Refused(Reason.GOALS_NOT_COMBINED, f"goals.{goal} cannot be combined with {other}")


def _check_brokers(request: PlanRequest) -> None:
    known = Counter(b.id for b in request.brokers)
    doubled = sorted(b for b, n in known.items() if n > 1)
    if doubled:
        raise Refused(Reason.DUPLICATE_BROKER, f"broker {doubled[0]} is listed more than once")
    unknown = sorted(request.targets - known.keys())
    if unknown:
        raise Refused(Reason.UNKNOWN_BROKER, f"broker {unknown[0]} may hold replicas but is not in the cluster")
    impossible = sorted(b for b in known if b not in _INT32)
    if impossible:
        raise Refused(Reason.INVALID_BROKER, f"broker {impossible[0]} has an id of more than 32 bits")


def _refuse_doubled(tps: list[TopicPartition]) -> None:
    if any(map(eq, tps, tps[1:])):
        doubled = next(tp for tp, after in pairwise(tps) if tp == after)
        raise Refused(Reason.DUPLICATE_PARTITION, f"topic-partition {doubled} is listed more than once")


def _check_ids(partitions: list[PartitionInput]) -> None:
    if all(map(_REPLICAS, partitions)):
        ids = set(chain.from_iterable(map(_REPLICAS, partitions)))
        if not ids or (min(ids) in _INT32 and max(ids) in _INT32):
            return
    for p in partitions:
        if not p.replicas:
            raise Refused(Reason.NO_REPLICAS, f"topic-partition {p.tp} has no replicas")
        if min(p.replicas) not in _INT32 or max(p.replicas) not in _INT32:
            raise Refused(Reason.INVALID_BROKER, f"topic-partition {p.tp} lists a broker id of more than 32 bits")


def _check_factors(partitions: list[PartitionInput], rf: Ints, request: PlanRequest) -> None:
    """Refuse more replicas than eligible brokers, and fewer than min.insync.replicas."""
    targets = len(request.targets)
    places = request.strategy not in (Strategy.PREFERRED_LEADERS, Strategy.ASSIGNMENT)
    insync = np.array([p.min_insync for p in partitions], dtype=np.int64)
    wrong = rf < np.minimum(_lengths(partitions), insync)
    if places:
        wrong |= rf > targets
    if not wrong.any():
        return
    first = int(wrong.argmax())
    p, factor = partitions[first], int(rf[first])
    if places and factor > targets:
        raise Refused(
            Reason.INSUFFICIENT_BROKERS,
            f"topic-partition {p.tp} needs {factor} replicas, only {targets} eligible brokers: "
            f"{sorted(request.targets)}",
        )
    told = f"topic-partition {p.tp} needs {p.min_insync} in-sync replicas (min.insync.replicas)"
    raise Refused(Reason.BELOW_MIN_INSYNC_REPLICAS, f"{told} and would have {factor}")


def _check_lists(partitions: list[PartitionInput], rf: Ints, broker_of: NDArray[np.integer]) -> None:
    """Refuse a list that names a broker twice."""
    partition_of = np.repeat(np.arange(len(rf)), rf)
    sign = np.sort(partition_of * (int(broker_of.max(initial=0)) + 1) + broker_of)
    same = np.flatnonzero(sign[1:] == sign[:-1])
    if len(same):
        p = partitions[int(sign[same[0]] // (int(broker_of.max()) + 1))]
        raise Refused(Reason.DUPLICATE_REPLICA, f"topic-partition {p.tp} lists a broker twice: {list(p.replicas)}")
