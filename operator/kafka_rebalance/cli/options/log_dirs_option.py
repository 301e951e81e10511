"""The options --log-dirs and --drain-log-dir, and goals.logDirs: plans moves between the log dirs of a cluster file."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import click

from kafka_rebalance.api.log_dir_goals import LogDirGoals
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.cluster_file import ClusterFile
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.reassignment_file import ANY_DIR
from kafka_rebalance.model.topology import BrokerId, ReplicaKey, TopicPartition
from kafka_rebalance.planning import PlanRequest
from kafka_rebalance.planning.log_dirs import BrokerDirs, DirPlan, DirReplica, even_log_dirs
from kafka_rebalance.reasons import Reason

_BANDS = range(1, 101)
_DRAIN = "--drain-log-dir"


def log_dir_band(text: str) -> int:
    """``10%``."""
    number = text.removesuffix("%")
    if not text.endswith("%") or not number.isdecimal() or int(number) not in _BANDS:
        raise ValueError(f"{text!r} is not a percentage from 1% to 100%, like 10%")
    return int(number)


def drained_log_dir(text: str) -> tuple[BrokerId, str]:
    """``3:/data/2``."""
    broker, _, path = text.partition(":")
    if not broker.isdecimal() or not path:
        raise ValueError(f"{text!r} is not a broker and a path like 3:/data/2")
    return BrokerId(int(broker)), path


@dataclass(frozen=True, slots=True)
class LogDirOptions:
    """The log dirs of the cluster file, the band, and the log dirs to be drained. ``where``: what asks for it."""

    where: str
    cluster: ClusterFile
    band: int
    drained: Mapping[BrokerId, frozenset[str]]

    def plans(self, request: PlanRequest, made: Plan, sizes: Mapping[TopicPartition, int]) -> tuple[DirPlan, ...]:
        """The moves of each broker when it holds what the plan gives it. Only selected partitions move.

        Brokers that may hold no replicas are left alone, unless a log dir of theirs is drained, as the operator does.
        Refused (SizesUnknown) if the size of a replica that counts is not known.
        """
        movable = {p.tp for p in request.partitions if not p.pinned}
        targets = {p.tp: p.target for p in made.partitions}
        held: defaultdict[BrokerId, list[DirReplica]] = defaultdict(list)
        unknown = []
        brokers = self._brokers(request)
        for p in self.cluster.partitions:
            size = sizes.get(p.tp, p.size_bytes)
            places = self._places(p.replicas, p.log_dirs)
            for broker in targets.get(p.tp, p.replicas):
                if broker in brokers and places.get(broker) != ANY_DIR:
                    held[broker].append(DirReplica(p.tp, size or 0, places.get(broker), p.tp not in movable))
                    unknown += [p.tp] if size is None else []
        if unknown:
            missing = f"the sizes of {len(set(unknown))} partitions are unknown, for example {min(unknown)}"
            message = f"{self.where}: log dirs are balanced by bytes, and {missing}: add them, or use --load-model"
            raise Refused(Reason.SIZES_UNKNOWN, message)
        none: frozenset[str] = frozenset()
        return tuple(
            even_log_dirs(BrokerDirs(b, self.cluster.log_dirs[b], self.drained.get(b, none), tuple(held[b])), self.band)
            for b in sorted(brokers)
        )

    def warnings(self, request: PlanRequest) -> Iterator[str]:
        """What the cluster file does not say, and what follows. Refused (LogDirsUnknown) if it says of no replica where
        it is."""
        brokers = self._brokers(request)
        unknown: list[ReplicaKey] = []
        known = False
        for p in self.cluster.partitions:
            for broker, path in self._places(p.replicas, p.log_dirs).items():
                if broker in brokers:
                    unknown += [(p.tp, broker)] if path == ANY_DIR else []
                    known |= path != ANY_DIR
        if unknown and not known:
            message = f"{self.where}: the cluster file has no log dir of any replica (log_dirs)"
            raise Refused(Reason.LOG_DIRS_UNKNOWN, message)
        if unknown:
            tp, broker = min(unknown)
            yield (
                f"the cluster file has no log dir of {len(unknown)} replicas, for example {tp} on broker {broker}: "
                "they stay and do not count"
            )
        if silent := sorted({b.id for b in self.cluster.brokers} & request.targets - self.cluster.log_dirs.keys()):
            names = ", ".join(str(b) for b in silent)
            left = (
                f"{names}: they are left alone, as brokers"
                if len(silent) > 1
                else f"{names}: it is left alone, as a broker"
            )
            yield f"the cluster file has no logDirs of broker{'s' if len(silent) > 1 else ''} {left} with one log dir"

    def _brokers(self, request: PlanRequest) -> Collection[BrokerId]:
        return self.cluster.log_dirs.keys() & (request.targets | self.drained.keys())

    def _places(self, replicas: Sequence[BrokerId], paths: Sequence[str]) -> dict[BrokerId, str]:
        """By broker the log dir of its replica; ``any`` if it is not known, or not among those of the broker."""
        found = zip(replicas, paths or (ANY_DIR,) * len(replicas), strict=True)
        return {b: path if path in self.cluster.log_dirs.get(b, {}) else ANY_DIR for b, path in found}


def log_dir_options(
    cluster: ClusterFile,
    goals: LogDirGoals | None,
    band: int | None,
    drained: Sequence[tuple[BrokerId, str]],
) -> LogDirOptions | None:
    """What ``goals`` of the resource and the options request; an option overrides its field. None: nothing.

    Refused (LogDirsUnknown, UnknownLogDir, LastLogDir) names the option or the field.
    """
    if band is None and goals is None:
        if drained:
            raise click.UsageError("--drain-log-dir requires --log-dirs, or goals.logDirs in the file of --rebalance")
        return None
    where = "spec.goals.logDirs" if band is None else "--log-dirs"
    if not cluster.log_dirs:
        raise Refused(
            Reason.LOG_DIRS_UNKNOWN,
            f"{where}: the cluster file has no logDirs of brokers, so where their replicas are is not known: "
            "`snapshot` writes logDirs of the brokers with more than one",
        )
    asked = goals or LogDirGoals()
    rows = ((f"spec.goals.logDirs.drain[{i}]", BrokerId(row.broker), row.path) for i, row in enumerate(asked.drain))
    named = [(_DRAIN, broker, path) for broker, path in drained] or list(rows)
    return LogDirOptions(where, cluster, asked.band if band is None else band, _drained(cluster, named))


def _drained(cluster: ClusterFile, named: Sequence[tuple[str, BrokerId, str]]) -> Mapping[BrokerId, frozenset[str]]:
    found: defaultdict[BrokerId, frozenset[str]] = defaultdict(frozenset)
    for where, broker, path in named:
        there = cluster.log_dirs.get(broker, {})
        if path not in there:
            names = ", ".join(sorted(there)) or "none in the cluster file"
            message = f"{where}: broker {broker} has no log dir {path}; it has: {names}"
            raise Refused(Reason.UNKNOWN_LOG_DIR, message)
        found[broker] |= {path}
        if there.keys() <= found[broker]:
            instead = "--decommission" if where == _DRAIN else "spec.brokers.decommission"
            message = f"{where}: broker {broker} has no other log dir; to empty a broker, use {instead}"
            raise Refused(Reason.LAST_LOG_DIR, message)
    return found
