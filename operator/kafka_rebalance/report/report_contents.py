"""What a report shows, as values. `plan_contents` and `run_contents` make it; pages and charts only draw it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from kafka_rebalance.model.run_record import RunRecord
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition


class BeforeAfter(NamedTuple):
    """A figure before the plan and after it."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker. Without a cluster file only the partitions that change are counted. ``target``: may hold replicas."""

    broker: BrokerId
    rack: str | None
    target: bool
    replicas: BeforeAfter
    leaders: BeforeAfter
    size_bytes: BeforeAfter


@dataclass(frozen=True, slots=True)
class CopyFlow:
    """Copies from one broker, the leader, to another."""

    source: BrokerId
    destination: BrokerId
    replicas: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition that changes. ``why``: an index into ``Report.reasons``, or -1."""

    tp: TopicPartition
    current: Replicas
    target: Replicas
    size_bytes: int
    why: int = -1


@dataclass(frozen=True, slots=True)
class BalancePoint:
    """A plan with this many moves: the fewest and most replicas of a broker, and the bytes copied."""

    moves: int
    fewest: int
    most: int
    data_bytes: int


@dataclass(frozen=True, slots=True)
class Fact:
    """A figure with its label. ``code``: to be copied as it is."""

    label: str
    text: str
    code: bool = False


@dataclass(frozen=True, slots=True)
class BatchCopy:
    """A partition in flight."""

    tp: TopicPartition
    adding: Replicas
    since: datetime | None
    bytes_remaining: int | None


@dataclass(frozen=True, slots=True)
class Conditioned:
    """A condition of the resource: type, status, reason and since when."""

    kind: str
    status: str
    reason: str
    message: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Course:
    """The progress of a run. ``phases``: partitions by phase; ``batch``: some of those in flight, of ``in_flight``.

    ``record``: its steps, if the history has them.
    """

    phases: Mapping[str, int] = field(default_factory=dict)
    bytes_moved: int = 0
    bytes_total: int = 0
    batch: Sequence[BatchCopy] = ()
    in_flight: int = 0
    conditions: Sequence[Conditioned] = ()
    skipped: Sequence[tuple[str, str]] = ()
    record: RunRecord | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The whole report. ``whole_cluster``: the figures of brokers count all replicas, not only those that change.

    ``command``: the next command to paste; ``risks`` and ``why`` are sentences; ``reasons``: of the partitions.
    ``moved_back``: a sentence, if the brokers do not get, or no longer have, the figures after the plan.
    ``course`` None: the plan has not started. ``partitions`` None: they could not be read. ``rates``: bytes per second
    of the brokers by resource, of a plan by load.
    """

    title: str
    state: str
    made_at: datetime
    facts: Sequence[Fact]
    brokers: Sequence[BrokerRow]
    whole_cluster: bool
    flows: Sequence[CopyFlow]
    partitions: Sequence[PartitionRow] | None
    reasons: Sequence[str] = ()
    why: Sequence[str] = ()
    risks: Sequence[str] = ()
    curve: Sequence[BalancePoint] = ()
    command: str = ""
    moved_back: str = ""
    course: Course | None = None
    rates: Mapping[str, Mapping[BrokerId, BeforeAfter]] = field(default_factory=dict)
