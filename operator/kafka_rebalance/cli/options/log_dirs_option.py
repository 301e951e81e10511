"""The options --log-dirs and --drain-log-dir: reads the log dirs of a cluster file, and plans moves between them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import click

from kafka_rebalance.model.cluster_file import ClusterFile
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.reassignment_file import ANY_DIR
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.planning import PlanRequest
from kafka_rebalance.planning.log_dirs import BrokerDirs, DirPlan, DirReplica, even_log_dirs

_BANDS = range(1, 101)


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
    """The log dirs of the cluster file, the band, and the log dirs to be drained."""

    cluster: ClusterFile
    band: int
    drained: frozenset[tuple[BrokerId, str]]

    def plans(self, request: PlanRequest, made: Plan, sizes: Mapping[TopicPartition, int]) -> tuple[DirPlan, ...]:
        """The moves of each broker when it holds what the plan gives it. Only selected partitions move."""
        movable = {p.tp for p in request.partitions if not p.pinned}
        targets = {p.tp: p.target for p in made.partitions}
        held: defaultdict[BrokerId, list[DirReplica]] = defaultdict(list)
        for p in self.cluster.partitions:
            size = sizes.get(p.tp, p.size_bytes or 0)
            places = dict(zip(p.replicas, p.log_dirs or (ANY_DIR,) * len(p.replicas), strict=True))
            for broker in targets.get(p.tp, p.replicas):
                held[broker].append(DirReplica(p.tp, size, places.get(broker), p.tp not in movable))
        return tuple(
            even_log_dirs(BrokerDirs(broker, totals, _of(self.drained, broker), tuple(held[broker])), self.band)
            for broker, totals in sorted(self.cluster.log_dirs.items())
        )


def log_dir_options(
    cluster: ClusterFile, band: int | None, drained: Sequence[tuple[BrokerId, str]]
) -> LogDirOptions | None:
    """None if no option concerns log dirs. An impossible request is a usage error."""
    if band is None:
        if drained:
            raise click.UsageError("--drain-log-dir requires --log-dirs")
        return None
    if not cluster.log_dirs:
        raise click.UsageError("--log-dirs requires logDirs of brokers in the cluster file, as snapshot writes them")
    for broker, path in drained:
        known = cluster.log_dirs.get(broker, {})
        if path not in known:
            there = ", ".join(sorted(known)) or "none in the cluster file"
            raise click.UsageError(f"--drain-log-dir: broker {broker} has no log dir {path}; it has: {there}")
    for broker, totals in cluster.log_dirs.items():
        if totals.keys() <= _of(drained, broker):
            raise click.UsageError(
                f"--drain-log-dir names all log dirs of broker {broker}: use --decommission to empty a broker"
            )
    return LogDirOptions(cluster, band, frozenset(drained))


def _of(drained: Iterable[tuple[BrokerId, str]], broker: BrokerId) -> frozenset[str]:
    return frozenset(path for of, path in drained if of == broker)
