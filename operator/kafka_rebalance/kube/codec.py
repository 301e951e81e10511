"""How plans, origins and runs look on disk: gzip'd JSON, grouped by topic, the same bytes for the same value.

Pure, and slow for large clusters (a second for 200,000 partitions): call it off the event loop. 200,000 partitions
take about 2 MB.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import datetime
from itertools import groupby
from typing import Any

from kafka_rebalance.kube.errors import StoredStateCorrupt
from kafka_rebalance.model.plan import Plan, PlannedPartition, SkippedPartition
from kafka_rebalance.model.run import Origin, Run, RunOutcome
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

_FORMAT = 1


def pack(value: Any) -> bytes:
    """JSON, gzip'd; no time stamp inside."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True)
    return gzip.compress(text.encode(), 6, mtime=0)


def unpack(payload: bytes) -> Any:
    """The reverse of ``pack``."""
    try:
        return json.loads(gzip.decompress(payload))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise StoredStateCorrupt(f"a stored record cannot be read: {error}") from error


def encode_plan(plan: Plan) -> bytes:
    """A plan with its certificate."""
    return pack(
        {
            "format": _FORMAT,
            "lowerBound": plan.lower_bound,
            "optimal": plan.optimal,
            "rackViolations": plan.rack_violations,
            "skipped": [[s.tp.topic, s.tp.partition, s.reason] for s in plan.skipped],
            "topics": [
                {
                    "topic": topic,
                    "id": topic_id,
                    "partitions": [[p.tp.partition, p.current, p.target, p.size_bytes] for p in rows],
                }
                for (topic, topic_id), rows in groupby(sorted(plan.partitions), key=lambda p: (p.tp.topic, p.topic_id))
            ],
        }
    )


def decode_plan(payload: bytes) -> Plan:
    """StoredStateCorrupt where it is not a plan of ours."""
    raw = _known(unpack(payload))
    return Plan(
        partitions=tuple(
            PlannedPartition(
                TopicPartition(group["topic"], number), replicas_of(*current), replicas_of(*target), group["id"], size
            )
            for group in raw["topics"]
            for number, current, target, size in group["partitions"]
        ),
        lower_bound=raw["lowerBound"],
        optimal=raw["optimal"],
        rack_violations=raw["rackViolations"],
        skipped=tuple(
            SkippedPartition(TopicPartition(topic, number), reason) for topic, number, reason in raw["skipped"]
        ),
    )


def encode_origins(origins: Iterable[Origin]) -> bytes:
    """Origins in the order in which they were recorded, topic by topic."""
    return pack(
        {
            "format": _FORMAT,
            "topics": [
                {"topic": topic, "id": topic_id, "partitions": [_origin_row(o) for o in rows]}
                for (topic, topic_id), rows in groupby(origins, key=lambda o: (o.tp.topic, o.topic_id))
            ],
        }
    )


def decode_origins(payload: bytes) -> Iterator[Origin]:
    """In the order in which they were recorded."""
    for group in _known(unpack(payload))["topics"]:
        for number, replicas, *leader in group["partitions"]:
            tp = TopicPartition(group["topic"], number)
            yield Origin(tp, group["id"], replicas_of(*replicas), *map(BrokerId, leader))


def _origin_row(origin: Origin) -> list[object]:
    """Without the leader where there was none: so were all rows before leaders were recorded."""
    row: list[object] = [origin.tp.partition, origin.replicas]
    return row if origin.leader is None else [*row, origin.leader]


def encode_run(run: Run) -> str:
    """Readable JSON: a person looks here first."""
    raw = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(run).items()}
    return json.dumps({"format": _FORMAT, **raw}, indent=1)


def decode_run(text: str) -> Run:
    """StoredStateCorrupt where it is not a run of ours."""
    try:
        raw = _known(json.loads(text))
        del raw["format"]
        raw["opened_at"] = datetime.fromisoformat(raw["opened_at"])
        raw["closed_at"] = datetime.fromisoformat(raw["closed_at"]) if raw["closed_at"] else None
        raw["outcome"] = RunOutcome(raw["outcome"]) if raw["outcome"] else None
        raw["cordoned"] = replicas_of(*raw.get("cordoned", ()))
        return Run(**raw)
    except (KeyError, TypeError, ValueError) as error:
        raise StoredStateCorrupt(f"a stored run cannot be read: {error}") from error


def _known(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, dict) or raw.get("format") != _FORMAT:
        raise StoredStateCorrupt("a stored record has a format that this version does not know")
    return raw
