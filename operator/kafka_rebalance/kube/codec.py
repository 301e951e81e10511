"""How plans, origins and runs are stored: JSON, gzip'd for plans and origins, the same bytes for the same value.

Plans and origins are grouped by topic and stored in columns, which compress a quarter better than rows and are read
with fewer objects: less than 5 MB for 200,000 partitions that all move. Pure, but slow for large clusters (half a
second for 200,000 partitions): call it outside the event loop.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, islice
from typing import Any

from pydantic import TypeAdapter, ValidationError

from kafka_rebalance.kube.api_errors import StoredStateCorrupt
from kafka_rebalance.model.bulk import without_collector
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.load_outcome import LoadOutcome
from kafka_rebalance.model.plan import (
    Certificate,
    Imbalance,
    LogDirMove,
    Plan,
    PlannedPartition,
    SkippedPartition,
    Spread,
)
from kafka_rebalance.model.rate_room import RateKey, RateRoom
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition

_FORMAT = 2
"""Of plans and origins. A change that an earlier version would misread raises it. (1 were rows, never released.)"""
_LOG_DIR_FORMAT = 3
"""Of plans with moves between log dirs: an operator that does not know these must not take such a plan for done."""
_RUN_FORMAT = 1
_LEVEL = 5
"""Of gzip, for plans: 6 takes twice as long on a large plan for 2 % less."""
_QUICK = 1
"""For what is written in each round: a third of the time, for a fifth more bytes."""
_RUN = TypeAdapter(Run)
_LOAD = TypeAdapter(LoadOutcome)


def pack(value: Any, level: int = _QUICK) -> bytes:
    """JSON, gzip'd, without a time stamp."""
    return _zipped(_text(value), level)


_text = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


def _zipped(text: str, level: int) -> bytes:
    return gzip.compress(text.encode(), level, mtime=0)


def unpack(payload: bytes) -> Any:
    """The reverse of ``pack``."""
    try:
        return json.loads(gzip.decompress(payload))
    except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
        raise StoredStateCorrupt(f"a stored record cannot be read: {error}") from error


@without_collector()
def encode_plan(plan: Plan) -> bytes:
    """A plan with its certificate."""
    return pack(
        {
            "format": _LOG_DIR_FORMAT if plan.log_dirs else _FORMAT,
            "lowerBound": plan.certificate.lower_bound,
            "optimal": plan.certificate.optimal,
            "dataLowerBound": plan.certificate.data_lower_bound,
            "rackViolations": plan.rack_violations,
            "skipped": [[s.tp.topic, s.tp.partition, s.reason] for s in plan.skipped],
            "before": _spread_numbers(plan.before),
            "after": _spread_numbers(plan.after),
            "reason": plan.reason,
            "dataSource": plan.data_source,
            "imbalance": [plan.imbalance.squares, plan.imbalance.least] if plan.imbalance is not None else None,
            "unevenTopics": plan.uneven_topics,
            "unmatched": plan.unmatched,
            "crowded": plan.crowded,
            "inPlace": [
                [topic, [tp.partition for tp in named]]
                for topic, named in groupby(sorted(plan.in_place), key=lambda tp: tp.topic)
            ],
            "topics": _topic_columns(plan.partitions),
            **({"load": _LOAD.dump_python(plan.load, mode="json")} if plan.load is not None else {}),
            **({"logDirs": _log_dir_columns(plan.log_dirs)} if plan.log_dirs else {}),
            **({"rateRoom": _rate_columns(plan.rate_room)} if plan.rate_room is not None else {}),
            **({"decommission": plan.decommission} if plan.decommission else {}),
        },
        _LEVEL,
    )


def _topic_columns(partitions: Iterable[PlannedPartition]) -> list[dict[str, Any]]:
    """Grouped by topic, in the order of the partitions. ``_planned_partitions`` is the reverse."""
    topics = []
    for (topic, topic_id), group in groupby(sorted(partitions, key=lambda p: p.tp), lambda p: (p.tp.topic, p.topic_id)):
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
    return topics


def _planned_partitions(topics: Iterable[Any]) -> tuple[PlannedPartition, ...]:
    partitions, share = [], dict[Replicas, Replicas]().setdefault
    for group in topics:
        topic, topic_id, elects = group["topic"], group["id"], frozenset(group["elects"])
        lists = _split(group["current"], share), _split(group["target"], share)
        partitions += [
            PlannedPartition(TopicPartition(topic, number), current, target, topic_id, size, number in elects)
            for number, current, target, size in zip(group["partitions"], *lists, group["sizes"], strict=True)
        ]
    return tuple(partitions)


@without_collector()
def decode_plan(payload: bytes) -> Plan:
    """StoredStateCorrupt where it is not a plan of ours."""
    with _corrupt_unless_ours("plan"):
        raw = _known(unpack(payload), _FORMAT, _LOG_DIR_FORMAT)
        return Plan(
            partitions=_planned_partitions(raw["topics"]),
            # Plans of older operators have no bound of the bytes.
            certificate=Certificate(raw["lowerBound"], raw["optimal"], raw.get("dataLowerBound")),
            rack_violations=raw["rackViolations"],
            skipped=tuple(
                SkippedPartition(TopicPartition(topic, number), reason) for topic, number, reason in raw["skipped"]
            ),
            before=_spread(raw["before"]),
            after=_spread(raw["after"]),
            reason=raw["reason"],
            data_source=raw["dataSource"],
            imbalance=Imbalance(*raw["imbalance"]) if raw["imbalance"] is not None else None,
            uneven_topics=raw["unevenTopics"],
            in_place=tuple(TopicPartition(topic, number) for topic, numbers in raw["inPlace"] for number in numbers),
            unmatched=tuple(raw.get("unmatched", ())),  # plans of older operators do not have it
            crowded=tuple(raw.get("crowded", ())),
            load=_LOAD.validate_python(raw["load"]) if "load" in raw else None,  # only of plans with load goals
            log_dirs=_log_dir_moves(raw["logDirs"]) if "logDirs" in raw else (),
            rate_room=_rate_room(raw["rateRoom"]) if "rateRoom" in raw else None,
            decommission=tuple(map(BrokerId, raw.get("decommission", ()))),  # plans of earlier versions do not have it
        )


def _log_dir_columns(moves: Sequence[LogDirMove]) -> dict[str, Any]:
    """Grouped by broker; a log dir is its number among ``paths``, and -1 stands for None."""
    paths = sorted({path for move in moves for path in (move.before, move.after, move.origin) if path is not None})
    number: dict[str | None, int] = {None: -1} | {path: at for at, path in enumerate(paths)}
    brokers = []
    for broker, group in groupby(sorted(moves, key=lambda m: (m.broker, m.tp)), key=lambda m: m.broker):
        rows = list(group)
        topics = [(topic, list(of)) for topic, of in groupby(rows, key=lambda m: m.tp.topic)]
        brokers.append(
            {
                "broker": broker,
                "topics": [[topic, [m.tp.partition for m in of]] for topic, of in topics],
                "before": [number[m.before] for m in rows],
                "after": [number[m.after] for m in rows],
                "origin": [number[m.origin] for m in rows],
                "sizes": [m.size_bytes for m in rows],
            }
        )
    return {"paths": paths, "brokers": brokers}


def _log_dir_moves(raw: Any) -> tuple[LogDirMove, ...]:
    """The reverse of ``_log_dir_columns``."""
    path = {-1: None} | dict(enumerate(raw["paths"]))
    moves = []
    for group in raw["brokers"]:
        tps = [TopicPartition(topic, number) for topic, numbers in group["topics"] for number in numbers]
        columns = (group["before"], group["after"], group["origin"])
        moves += [
            LogDirMove(tp, group["broker"], path[before], path[after], path[origin], size)
            for tp, before, after, origin, size in zip(tps, *columns, group["sizes"], strict=True)
        ]
    return tuple(sorted(moves, key=lambda move: move.key))


def _rate_columns(room: RateRoom) -> dict[str, Any]:
    """Free bytes per second by broker and resource, and by resource and topic the rates of partitions."""
    resources = sorted({resource for of in room.rates.values() for resource in of})
    columns: dict[str, list[Any]] = {}
    for resource in resources:
        rows = sorted((tp, of[resource]) for tp, of in room.rates.items() if resource in of)
        topics = [(topic, list(group)) for topic, group in groupby(rows, key=lambda row: row[0].topic)]
        columns[resource] = [[topic, [tp.partition for tp, _ in of], [rate for _, rate in of]] for topic, of in topics]
    return {"free": [[*key, free] for key, free in sorted(room.free.items())], "rates": columns}


def _rate_room(raw: Any) -> RateRoom:
    """The reverse of ``_rate_columns``."""
    rates: dict[TopicPartition, dict[LoadResource, int]] = {}
    for resource, topics in raw["rates"].items():
        for topic, numbers, column in topics:
            for number, rate in zip(numbers, column, strict=True):
                rates.setdefault(TopicPartition(topic, number), {})[LoadResource(resource)] = rate
    return RateRoom({RateKey(BrokerId(b), LoadResource(name)): free for b, name, free in raw["free"]}, rates)


def _spread_numbers(spread: Spread | None) -> list[int] | None:
    return [spread.fewest, spread.most] if spread is not None else None


def _spread(numbers: list[int] | None) -> Spread | None:
    return Spread(*numbers) if numbers is not None else None


@without_collector()
def encode_origins(origins: Iterable[Origin], *, first: bool = True, last: bool = True) -> bytes:
    """One piece of a record of origins, sorted by topic. All pieces joined are the record, for any version.

    gzip allows members to be joined, and the texts of the pieces are one JSON document when they are.
    """
    topics = []
    # Stable: of a topic that was created anew the newer id stays behind the older one.
    for (topic, topic_id), group in groupby(sorted(origins, key=_topic), key=lambda o: (o.tp.topic, o.topic_id)):
        rows = list(group)
        topics.append(
            _text(
                {
                    "topic": topic,
                    "id": topic_id,
                    "partitions": [o.tp.partition for o in rows],
                    "replicas": _joined([o.replicas for o in rows]),
                    "leaders": [o.leader for o in rows],
                    **(
                        {"firstCalls": _joined([o.first_call for o in rows])} if any(o.first_call for o in rows) else {}
                    ),
                    # Written even if empty, to distinguish the record from one of an earlier version.
                    "logDirs": {str(at): o.log_dirs for at, o in enumerate(rows) if o.log_dirs != ()},
                }
            )
        )
    opening = f'{{"format":{_FORMAT},"topics":[' if first else "," if topics else ""
    return _zipped(opening + ",".join(topics) + ("]}" if last else ""), _QUICK)


def _topic(origin: Origin) -> str:
    return origin.tp.topic


@without_collector()
def decode_origins(payload: bytes) -> list[Origin]:
    """Piece by piece; StoredStateCorrupt where it is not a record of ours."""
    with _corrupt_unless_ours("record of origins"):
        origins, share = [], dict[Replicas, Replicas]().setdefault
        for group in _known(unpack(payload))["topics"]:
            topic, topic_id = group["topic"], group["id"]
            partitions, leaders = group["partitions"], group["leaders"]
            # Missing where each first call was carried out, and in records of older operators.
            calls = _split(group["firstCalls"], share) if "firstCalls" in group else [()] * len(partitions)
            dirs = [_log_dirs_of(group.get("logDirs"), at) for at in range(len(partitions))]
            rows = zip(partitions, _split(group["replicas"], share), leaders, calls, dirs, strict=True)
            origins += [Origin(TopicPartition(topic, n), topic_id, *row) for n, *row in rows]
        return origins


def _log_dirs_of(column: Any, at: int) -> tuple[tuple[BrokerId, str], ...] | None:
    found = column.get(str(at), ()) if column is not None else None
    return tuple((BrokerId(broker), str(path)) for broker, path in found) if found is not None else None


def _joined(lists: Sequence[Replicas]) -> list[list[int]]:
    """The lengths of the lists, and the lists joined into one."""
    return [[len(replicas) for replicas in lists], [broker for replicas in lists for broker in replicas]]


def _split(joined: Any, share: Callable[[Replicas, Replicas], Replicas]) -> list[Replicas]:
    """The reverse of ``_joined``. Equal lists are one object, see ``share``."""
    lengths, brokers = joined
    if sum(lengths) != len(brokers):
        raise ValueError("assignments are incomplete")
    rest = iter(brokers)
    return [share(found, found) for found in (tuple(islice(rest, length)) for length in lengths)]


def encode_run(run: Run) -> str:
    """Readable JSON, for people who look into the ConfigMap."""
    return json.dumps({"format": _RUN_FORMAT, **_RUN.dump_python(run, mode="json")}, indent=1)


def decode_run(text: str) -> Run:
    """StoredStateCorrupt where it is not a run of ours. Fields that a later version added are ignored.

    An earlier version has not stored that a run in doubt is doubted again by later owners.
    """
    with _corrupt_unless_ours("run"):
        run: Run = _RUN.validate_python(_known(json.loads(text), _RUN_FORMAT))
    return run.to_doubt_later if run.unproved else run


@contextmanager
def _corrupt_unless_ours(what: str) -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        where = ".".join(map(str, wrong["loc"]))
        raise StoredStateCorrupt(f"a stored {what} cannot be read: {where}: {wrong['msg']}") from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise StoredStateCorrupt(f"a stored {what} cannot be read: {error}") from error


def _known(raw: Any, *forms: int) -> dict[str, Any]:
    if not isinstance(raw, dict) or raw.get("format") not in (forms or (_FORMAT,)):
        raise StoredStateCorrupt("a stored record has a format that this version does not know")
    return raw
