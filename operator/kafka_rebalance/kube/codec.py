"""How plans, origins and runs look on disk: gzip'd JSON, the same bytes for the same value.

Plans and origins are grouped by topic and stored in columns: numbers of one kind side by side compress a quarter
better than rows, and are read with fewer objects. Pure, and slow for large clusters (half a second for 200,000
partitions): call it off the event loop. Plan and origins of 200,000 partitions, all moving, take less than 5 MB.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import datetime
from itertools import groupby, islice
from typing import Any

from kafka_rebalance.kube.api_errors import StoredStateCorrupt
from kafka_rebalance.model.bulk import without_collector
from kafka_rebalance.model.plan import Certificate, Imbalance, Plan, PlannedPartition, SkippedPartition, Spread
from kafka_rebalance.model.run import Origin, Run, RunOutcome, Spent
from kafka_rebalance.model.topology import Replicas, TopicPartition

_ROWS = 1
_COLUMNS = 2
"""Of plans and origins. Those in rows are still read; they have no leaders."""
_RUN = 1
_LEVEL = 5
"""Of gzip: 6 takes twice as long on a large plan for 2 % less."""


def pack(value: Any) -> bytes:
    """JSON, gzip'd; no time stamp inside."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True)
    return gzip.compress(text.encode(), _LEVEL, mtime=0)


def unpack(payload: bytes) -> Any:
    """The reverse of ``pack``."""
    try:
        return json.loads(gzip.decompress(payload))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise StoredStateCorrupt(f"a stored record cannot be read: {error}") from error


@without_collector()
def encode_plan(plan: Plan) -> bytes:
    """A plan with its certificate."""
    topics = []
    partitions = sorted(plan.partitions, key=lambda p: p.tp)
    for (topic, topic_id), group in groupby(partitions, key=lambda p: (p.tp.topic, p.topic_id)):
        rows = list(group)
        topics.append(
            {
                "topic": topic,
                "id": topic_id,
                "partitions": [p.tp.partition for p in rows],
                "current": _joined([p.current for p in rows]),
                "target": _joined([p.target for p in rows]),
                "sizes": [p.size_bytes for p in rows],
                "elects": [p.tp.partition for p in rows if p.elects],
            }
        )
    return pack(
        {
            "format": _COLUMNS,
            "lowerBound": plan.certificate.lower_bound,
            "optimal": plan.certificate.optimal,
            "rackViolations": plan.rack_violations,
            "skipped": [[s.tp.topic, s.tp.partition, s.reason] for s in plan.skipped],
            "before": _spread_numbers(plan.before),
            "after": _spread_numbers(plan.after),
            "reason": plan.reason,
            "dataSource": plan.data_source,
            "imbalance": [plan.imbalance.squares, plan.imbalance.least] if plan.imbalance is not None else None,
            "unevenTopics": plan.uneven_topics,
            "inPlace": [
                [topic, [tp.partition for tp in named]]
                for topic, named in groupby(sorted(plan.in_place), key=lambda tp: tp.topic)
            ],
            "topics": topics,
        }
    )


@without_collector()
def decode_plan(payload: bytes) -> Plan:
    """StoredStateCorrupt where it is not a plan of ours."""
    with _corrupt_unless_ours("plan"):
        raw = _known(unpack(payload), _ROWS, _COLUMNS)
        partitions = []
        for group in raw["topics"]:
            topic, topic_id, rows = group["topic"], group["id"], group["partitions"]
            elects = frozenset(group.get("elects", ()))
            if raw["format"] == _COLUMNS:
                rows = zip(rows, _split(group["current"]), _split(group["target"]), group["sizes"], strict=True)
            partitions += [
                PlannedPartition(
                    TopicPartition(topic, number), tuple(current), tuple(target), topic_id, size, number in elects
                )
                for number, current, target, size in rows
            ]
        return Plan(
            partitions=tuple(partitions),
            certificate=Certificate(raw["lowerBound"], raw["optimal"]),
            rack_violations=raw["rackViolations"],
            skipped=tuple(
                SkippedPartition(TopicPartition(topic, number), reason) for topic, number, reason in raw["skipped"]
            ),
            before=_spread(raw.get("before")),
            after=_spread(raw.get("after")),
            reason=raw.get("reason", ""),
            data_source=raw.get("dataSource", ""),
            imbalance=Imbalance(*raw["imbalance"]) if raw.get("imbalance") is not None else None,
            uneven_topics=raw.get("unevenTopics", 0),
            in_place=tuple(
                TopicPartition(topic, number) for topic, numbers in raw.get("inPlace", ()) for number in numbers
            ),
        )


def _spread_numbers(spread: Spread | None) -> list[int] | None:
    return [spread.fewest, spread.most] if spread is not None else None


def _spread(numbers: list[int] | None) -> Spread | None:
    return Spread(*numbers) if numbers is not None else None


@without_collector()
def encode_origins(origins: Iterable[Origin]) -> bytes:
    """Origins in the order in which they were recorded, topic by topic."""
    topics = []
    for (topic, topic_id), group in groupby(origins, key=lambda o: (o.tp.topic, o.topic_id)):
        rows = list(group)
        topics.append(
            {
                "topic": topic,
                "id": topic_id,
                "partitions": [o.tp.partition for o in rows],
                "replicas": _joined([o.replicas for o in rows]),
                "leaders": [o.leader for o in rows],
            }
        )
    return pack({"format": _COLUMNS, "topics": topics})


@without_collector()
def decode_origins(payload: bytes) -> list[Origin]:
    """In the order in which they were recorded; StoredStateCorrupt where it is not a record of ours."""
    with _corrupt_unless_ours("record of origins"):
        raw = _known(unpack(payload), _ROWS, _COLUMNS)
        origins = []
        for group in raw["topics"]:
            topic, topic_id, rows = group["topic"], group["id"], group["partitions"]
            if raw["format"] == _COLUMNS:
                rows = zip(rows, _split(group["replicas"]), group["leaders"], strict=True)
            origins += [Origin(TopicPartition(topic, n), topic_id, tuple(found), *leader) for n, found, *leader in rows]
        return origins


def _joined(lists: Sequence[Replicas]) -> list[list[int]]:
    """The lengths of the lists, and all of them one after the other."""
    return [[len(replicas) for replicas in lists], [broker for replicas in lists for broker in replicas]]


def _split(joined: Any) -> list[Replicas]:
    """The reverse of ``_joined``."""
    lengths, brokers = joined
    if sum(lengths) != len(brokers):
        raise ValueError("assignments are incomplete")
    rest = iter(brokers)
    return [tuple(islice(rest, length)) for length in lengths]


def encode_run(run: Run) -> str:
    """Readable JSON: a person looks here first. ``spent`` only where something is: earlier versions do not know it."""
    raw = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(run).items()}
    if run.spent == Spent():
        del raw["spent"]
    return json.dumps({"format": _RUN, **raw}, indent=1)


def decode_run(text: str) -> Run:
    """StoredStateCorrupt where it is not a run of ours. What a later version has added to it is not looked at."""
    with _corrupt_unless_ours("run"):
        found = _known(json.loads(text), _RUN)
        raw = {field.name: found[field.name] for field in fields(Run) if field.name in found}
        raw["opened_at"] = datetime.fromisoformat(raw["opened_at"])
        raw["closed_at"] = datetime.fromisoformat(raw["closed_at"]) if raw["closed_at"] else None
        started = found.get("started_at", found["opened_at"])  # versions that do not tell may have sent something
        raw["started_at"] = datetime.fromisoformat(started) if started else None
        raw["outcome"] = RunOutcome(raw["outcome"]) if raw["outcome"] else None
        raw["cordoned"] = tuple(raw.get("cordoned", ()))
        raw["spent"] = Spent(**raw.get("spent", {}))
        return Run(**raw)


@contextmanager
def _corrupt_unless_ours(what: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise StoredStateCorrupt(f"a stored {what} cannot be read: {error}") from error


def _known(raw: Any, *formats: int) -> dict[str, Any]:
    if not isinstance(raw, dict) or raw.get("format") not in formats:
        raise StoredStateCorrupt("a stored record has a format that this version does not know")
    return raw
