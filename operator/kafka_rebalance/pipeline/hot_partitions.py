"""Finds the partitions that alone carry much of a broker's load, in the load model of all partitions.

By means, because they add up: the shares of all partitions of a broker are 1. Goes through the model by row groups, as
arrays; nothing is a Python object but what is found.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from kafka_rebalance.model.goals import LoadResource

LEAST_SHARE = 0.1
"""Of the broker's load, so that a broker has ten at most."""
LEAST_MULTIPLE = 2
"""Of the mean of the broker's partitions, so that with a few partitions not each of them is hot."""
_COLUMNS = ("topic", "partition", "leader", "replica_brokers", "replica_bytes", "bytes_in_mean", "bytes_out_mean")
_ROW_GROUP = 131_072


class HotPartition(NamedTuple):
    """``share`` of the broker's load that this partition alone carries, from 0 to 1."""

    topic: str
    partition: int
    share: float


Place = tuple[int, LoadResource]
"""A resource of a broker."""


def hot_partitions(model: bytes, partitions: Mapping[Place, int]) -> Mapping[Place, tuple[HotPartition, ...]]:
    """For each broker and resource the hot partitions, largest first.

    ``partitions``: how many each place has. A place is missing if the model has not the loads of all of them: then no
    share is known.
    """
    totals: defaultdict[Place, float] = defaultdict(float)
    counts: defaultdict[Place, int] = defaultdict(int)
    for _, resource, _, brokers, loads in _loads(model):
        for broker, total, count in _by_broker(brokers, loads):
            totals[broker, resource] += total
            counts[broker, resource] += count
    found: dict[Place, list[HotPartition]] = {
        place: [] for place, count in partitions.items() if counts[place] == count and not np.isnan(totals[place])
    }
    least = {
        place: max(LEAST_SHARE, LEAST_MULTIPLE / counts[place]) * totals[place] for place in found if totals[place] > 0
    }
    for rows, resource, parents, brokers, loads in _loads(model):
        limits = _limits(brokers, resource, least)
        for at in np.flatnonzero(loads >= limits).tolist():
            place = int(brokers[at]), resource
            topic, partition = (rows[name][parents[at].item()].as_py() for name in ("topic", "partition"))
            found[place].append(HotPartition(topic, partition, round(loads.item(at) / totals[place], 4)))
    return {place: tuple(sorted(hot, key=lambda each: (-each.share, each[:2]))) for place, hot in found.items()}


_Loads = tuple[pa.Table, LoadResource, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.float64]]


def _loads(model: bytes) -> Iterator[_Loads]:
    """By row group and resource: the rows; and for each replica that counts its row, its broker, and its load."""
    file = pyarrow.parquet.ParquetFile(pa.BufferReader(model))
    for batch in file.iter_batches(_ROW_GROUP, columns=list(_COLUMNS)):
        rows = pa.Table.from_batches([batch])
        held = rows["replica_brokers"].combine_chunks()
        sizes = rows["replica_bytes"].combine_chunks()
        parents = held.value_parent_indices().to_numpy()
        brokers = held.flatten().to_numpy()
        leads = brokers == rows["leader"].to_numpy()[parents]
        came, went = (rows[f"bytes_{way}_mean"].to_numpy() for way in ("in", "out"))
        sent = went + came * (held.value_lengths().to_numpy() - 1)
        yield rows, LoadResource.DISK, parents, brokers, sizes.flatten().to_numpy().astype(float)
        yield rows, LoadResource.BYTES_IN, parents, brokers, came[parents]
        yield rows, LoadResource.LEADER_BYTES_IN, parents[leads], brokers[leads], came[parents[leads]]
        yield rows, LoadResource.BYTES_OUT, parents[leads], brokers[leads], sent[parents[leads]]


def _by_broker(brokers: npt.NDArray[Any], loads: npt.NDArray[np.float64]) -> Iterator[tuple[int, float, int]]:
    ids, places, counts = np.unique(brokers, return_inverse=True, return_counts=True)
    yield from zip(ids.tolist(), np.bincount(places, loads, len(ids)).tolist(), counts.tolist(), strict=True)


def _limits(brokers: npt.NDArray[Any], resource: LoadResource, least: Mapping[Place, float]) -> npt.NDArray[np.float64]:
    """Of each replica, the load from which on it is hot."""
    ids, places = np.unique(brokers, return_inverse=True)
    limits: npt.NDArray[np.float64] = np.array([least.get((broker, resource), np.inf) for broker in ids.tolist()])
    return limits[places]
