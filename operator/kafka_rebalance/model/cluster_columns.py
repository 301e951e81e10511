"""Millions of plain rows of a cluster file, checked column by column: five times as fast as row by row.

It only ever says yes or no. What is wrong, and where, is said by the reading row by row in ``cluster_file``.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from operator import itemgetter, methodcaller
from typing import Any

from kafka_rebalance.model.json_shapes import MAX_INT32, MAX_INT64
from kafka_rebalance.model.topology import Replicas, TopicPartition

Columns = tuple[Sequence[TopicPartition], Sequence[Replicas], Sequence[int | None]]
"""Of each row the partition, its replicas and its size (None: not said)."""

_REQUIRED = frozenset(("topic", "partition", "replicas"))


def plain_columns(rows: Sequence[Any], known: AbstractSet[str]) -> Columns | None:
    """The columns where every row is an object of ``known`` keys with values of the right types and ranges.

    None where any is not, and where two rows are of one partition or one row names a broker twice.
    """
    if set(map(type, rows)) - {dict} or not all(_REQUIRED <= set(keys) <= known for keys in set(map(tuple, rows))):
        return None
    topics, numbers, lists = (list(map(itemgetter(key), rows)) for key in ("topic", "partition", "replicas"))
    sizes = list(map(methodcaller("get", "size"), rows))
    if not (_are(str, topics) and all(topics) and _integers(numbers, MAX_INT32)):
        return None
    if not _integers([size for size in sizes if size is not None], MAX_INT64) or not _are(list, lists):
        return None
    if not (all(lists) and _integers(list(chain.from_iterable(lists)), MAX_INT32)):
        return None
    partitions = list(map(TopicPartition, topics, numbers))
    if len(set(partitions)) < len(partitions) or sum(map(len, map(set, lists))) < sum(map(len, lists)):
        return None
    return partitions, list(map(tuple, lists)), sizes


def _are(kind: type, values: Sequence[Any]) -> bool:
    """Exactly: True is no int here."""
    return set(map(type, values)) <= {kind}


def _integers(values: Sequence[Any], highest: int) -> bool:
    return _are(int, values) and min(values, default=0) >= 0 and max(values, default=0) <= highest
