"""The known load of partitions: sizes, and rates of bytes in and out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_rebalance.model.goals import LoadResource, LoadStatistic
from kafka_rebalance.model.topology import BrokerId, TopicPartition


class PartitionLoad(NamedTuple):
    """``size_bytes`` of a new replica; bytes per second in (produced) and out (to consumers), None where not known.

    ``bytes_in_per_second`` is the mean over ``covered_seconds`` of the model's window, ``bytes_out_per_second`` over
    ``bytes_out_covered_seconds``; the other figures are of the same time. ``topic_id`` is empty where it was not
    measured. ``replica_bytes``: the sizes of the replicas whose brokers answered.
    """

    size_bytes: int
    bytes_in_per_second: float | None = None
    bytes_in_p95: float | None = None
    bytes_in_max: float | None = None
    covered_seconds: float = 0.0
    topic_id: str = ""
    replica_bytes: Mapping[BrokerId, int] = MappingProxyType({})
    bytes_in_p50: float | None = None
    bytes_in_p99: float | None = None
    bytes_out_covered_seconds: float = 0.0
    bytes_out_per_second: float | None = None
    bytes_out_p50: float | None = None
    bytes_out_p95: float | None = None
    bytes_out_p99: float | None = None
    bytes_out_max: float | None = None

    def rate(self, resource: LoadResource, statistic: LoadStatistic) -> float | None:
        """Bytes per second of the partition itself: out for BytesOut, else in. What replication adds is not in it."""
        rates = (
            (
                self.bytes_out_per_second,
                self.bytes_out_p50,
                self.bytes_out_p95,
                self.bytes_out_p99,
                self.bytes_out_max,
            )
            if resource is LoadResource.BYTES_OUT
            else (self.bytes_in_per_second, self.bytes_in_p50, self.bytes_in_p95, self.bytes_in_p99, self.bytes_in_max)
        )
        return rates[_STATISTICS.index(statistic)]

    def covered(self, resource: LoadResource) -> float:
        """Seconds that the rate of this resource is made of."""
        return self.bytes_out_covered_seconds if resource is LoadResource.BYTES_OUT else self.covered_seconds


_STATISTICS = tuple(LoadStatistic)  # in the order of the columns: mean, p50, p95, p99, max


class LoadColumns(NamedTuple):
    """Loads as arrays with one row per partition, sorted by topic and partition.

    ``starts`` has the first row of each of ``topics``, and the number of rows. ``rates`` (float32, NaN: unknown) has
    mean, p50, p95, p99 and max of bytes in, then of bytes out. ``topic_id`` are indices of ``topic_ids``. The replicas
    of row i are those from ``replica_starts[i]`` to ``replica_starts[i + 1]``.
    """

    topics: Sequence[str]
    starts: npt.NDArray[np.int64]
    partition: npt.NDArray[np.int32]
    topic_id: npt.NDArray[np.int32]
    topic_ids: Sequence[str]
    size_bytes: npt.NDArray[np.int64]
    rates: npt.NDArray[np.float32]
    covered_seconds: npt.NDArray[np.float32]
    covered_out_seconds: npt.NDArray[np.float32]
    replica_starts: npt.NDArray[np.integer]
    replica_brokers: npt.NDArray[np.int32]
    replica_bytes: npt.NDArray[np.int64]


class PartitionLoads(Mapping[TopicPartition, PartitionLoad]):
    """Loads kept as arrays: a million of them are no million objects. A `PartitionLoad` is made when asked for."""

    __slots__ = ("_columns", "_places", "_starts")

    def __init__(self, columns: LoadColumns) -> None:
        self._columns = columns
        self._places = {topic: place for place, topic in enumerate(columns.topics)}
        self._starts: list[int] = columns.starts.tolist()

    def __getitem__(self, tp: TopicPartition) -> PartitionLoad:
        row = self._row(tp)
        if row is None:
            raise KeyError(tp)
        c = self._columns
        in_mean, in_p50, in_p95, in_p99, in_max, *out = (
            rate if rate == rate else None  # NaN is unknown: it is not equal to itself
            for rate in c.rates[row].tolist()
        )
        first, end = c.replica_starts[row : row + 2].tolist()
        held = dict(zip(c.replica_brokers[first:end].tolist(), c.replica_bytes[first:end].tolist(), strict=True))
        size, covered, topic_id = c.size_bytes.item(row), c.covered_seconds.item(row), c.topic_ids[c.topic_id[row]]
        covered_out = c.covered_out_seconds.item(row)
        return PartitionLoad(size, in_mean, in_p95, in_max, covered, topic_id, held, in_p50, in_p99, covered_out, *out)

    def __iter__(self) -> Iterator[TopicPartition]:
        for topic, first, end in zip(self._columns.topics, self._starts, self._starts[1:], strict=False):
            for number in self._columns.partition[first:end].tolist():
                yield TopicPartition(topic, number)

    def __len__(self) -> int:
        return len(self._columns.partition)

    def __contains__(self, tp: object) -> bool:
        return isinstance(tp, TopicPartition) and self._row(tp) is not None

    def _row(self, tp: TopicPartition) -> int | None:
        place = self._places.get(tp.topic)
        if place is None:
            return None
        first, end = self._starts[place : place + 2]
        numbers, guess = self._columns.partition, first + tp.partition
        if first <= guess < end and numbers[guess] == tp.partition:  # where none of the topic is missing
            return guess
        row: int = first + int(np.searchsorted(numbers[first:end], tp.partition))
        return row if row < end and numbers[row] == tp.partition else None


@dataclass(frozen=True, slots=True)
class LoadModel:
    """Loads by partition, and how fresh they are. ``source``: LoadModel, the pipeline's.

    ``measured_at`` is the time of the newest sample, ``window_start`` that of the oldest one of ``samples``.
    """

    source: str
    measured_at: datetime | None
    partitions: Mapping[TopicPartition, PartitionLoad] = field(default_factory=dict)
    cluster_id: str | None = None
    window_start: datetime | None = None
    samples: int = 0

    def load_of(self, tp: TopicPartition, topic_id: str) -> PartitionLoad | None:
        """The load of this topic, not that of an earlier one of the same name. An empty id matches any topic."""
        load = self.partitions.get(tp)
        same = load is not None and (not load.topic_id or not topic_id or load.topic_id == topic_id)
        return load if same else None
