"""The rows of the partitions that change, packed for the page: JSON by topic, compressed, in base64.

The page unpacks them when it needs them. The size is bounded: of a plan with too many partitions the largest copies are
kept, which come first.
"""

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass

from kafka_rebalance.report.report_contents import PartitionRow


@dataclass(frozen=True, slots=True)
class PackedPartitions:
    """``data``: base64 of the gzipped JSON; ``kept``: how many rows it has, of ``total``."""

    data: str
    kept: int
    total: int


def packed(rows: Sequence[PartitionRow], most: int) -> PackedPartitions:
    """As many of the first rows as fit into that many characters; none if there is no room at all."""
    kept = len(rows)
    data = _pack(rows)
    while kept and len(data) > most:
        kept = max(0, int(kept * most / len(data) * 0.97))
        data = _pack(rows[:kept])
    return PackedPartitions(data, kept, len(rows))


def _pack(rows: Sequence[PartitionRow]) -> str:
    """By topic: partition, what leaves, what arrives, the rest, bytes (rounded to three digits), reason.

    Columns compress better than rows: each list of the same kind is one string of JSON.
    """
    topics: dict[str, list[PartitionRow]] = {}
    for row in sorted(rows, key=lambda row: row.tp):
        topics.setdefault(row.tp.topic, []).append(row)
    columns = {
        "topics": list(topics),
        "counts": [len(found) for found in topics.values()],
        "partition": _steps([row.tp.partition for found in topics.values() for row in found]),
        "current": [list(row.current) for found in topics.values() for row in found],
        # A target differs in one place or two: what stays is null.
        "target": [_changes(row) for found in topics.values() for row in found],
        "size": [_rounded(row.size_bytes) for found in topics.values() for row in found],
        "why": [row.why for found in topics.values() for row in found],
    }
    text = json.dumps(columns, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _steps(numbers: Sequence[int]) -> list[int]:
    """Differences to the number before: mostly 1."""
    return [number - before for before, number in zip([0, *numbers], numbers, strict=False)]


def _changes(row: PartitionRow) -> list[int | None]:
    held = (*row.current, *([None] * len(row.target)))
    return [None if was == now else now for was, now in zip(held, row.target, strict=False)]


def _rounded(size: int) -> int:
    """Three digits are as many as the page shows."""
    scale: int = 10 ** max(0, len(str(size)) - 3)
    return round(size / scale) * scale
