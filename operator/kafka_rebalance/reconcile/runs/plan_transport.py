"""The requests to a planner process and its answers, as bytes: faster and smaller than pickled instances.

Partitions are sent as plain values, in pieces of some thousand: while it reads a piece, Python's pickle
keeps the interpreter's lock, so one large piece would block the event loop for seconds.
"""

import pickle
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from io import BytesIO
from itertools import islice
from operator import attrgetter
from typing import Any, BinaryIO

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.bulk import without_collector
from kafka_rebalance.model.plan import Plan, PlannedPartition
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.planning.log_dirs import DirMove, DirReplica
from kafka_rebalance.planning.problem.request import PartitionInput, PlanRequest
from kafka_rebalance.reconcile.runs.log_dir_search import DirAnswer, DirQuestion

_PIECE = 2_000
"""Rows of a piece: a few milliseconds."""
_INPUT = tuple(
    map(attrgetter, ("tp.topic", "tp.partition", *(of.name for of in fields(PartitionInput) if of.name != "tp")))
)
"""Its columns."""


def write_request(request: PlanRequest) -> bytes:
    """What `read_request` reads."""
    stream, partitions = _begun(replace(request, partitions=())), request.partitions
    for start in range(0, len(partitions), _PIECE):
        piece = partitions[start : start + _PIECE]
        # Columns are written in half the time of rows.
        pickle.dump([list(map(column, piece)) for column in _INPUT], stream, pickle.HIGHEST_PROTOCOL)
    return stream.getvalue()


@without_collector()
def read_request(stream: BinaryIO) -> PlanRequest:
    """The request that was written."""
    request: PlanRequest = pickle.load(stream)  # noqa: S301 - our own parent wrote it
    rows = (row for piece in _pieces(stream) for row in zip(*piece, strict=True))
    made = (PartitionInput(TopicPartition(topic, number), *rest) for topic, number, *rest in rows)
    return replace(request, partitions=tuple(made))


def write_answer(made: Plan | Refused, request: PlanRequest) -> bytes:
    """What `read_answer` reads: of a partition as it was asked about, its number in the request and its target."""
    if isinstance(made, Refused):
        return pickle.dumps(made)
    numbers = {p.tp: number for number, p in enumerate(request.partitions)}

    def number_of(p: PlannedPartition) -> int | None:
        number = numbers.get(p.tp)
        if number is None or p.elects:
            return None
        asked = request.partitions[number]
        same = (p.current, p.topic_id, p.size_bytes) == (asked.replicas, asked.topic_id, asked.size_bytes)
        return number if same else None

    rows = ((p if (number := number_of(p)) is None else number, p.target) for p in made.partitions)
    stream = _begun(replace(made, partitions=()))
    while piece := list(islice(rows, _PIECE)):
        pickle.dump(tuple(zip(*piece, strict=True)), stream, pickle.HIGHEST_PROTOCOL)
    return stream.getvalue()


@without_collector()
def read_answer(answer: bytes, request: PlanRequest) -> Plan | Refused:
    """The answer to this request. Equal names and lists are those of the request, and not kept twice."""
    stream = BytesIO(answer)
    made: Plan | Refused = pickle.load(stream)  # noqa: S301 - our own process wrote it
    if isinstance(made, Refused):
        return made
    partitions, asked, share = list[PlannedPartition](), request.partitions, dict[Any, Any]().setdefault
    for numbers, targets in _pieces(stream):
        for number, target in zip(numbers, targets, strict=True):
            if isinstance(number, PlannedPartition):
                partitions.append(number)
            else:
                p = asked[number]
                planned = PlannedPartition(p.tp, p.replicas, share(target, target), p.topic_id, p.size_bytes)
                partitions.append(planned)
    return replace(made, partitions=tuple(partitions))


def write_dir_questions(questions: Sequence[DirQuestion]) -> bytes:
    """What `read_dir_questions` reads."""
    heads = [replace(question, dirs=replace(question.dirs, replicas=())) for question in questions]
    rows = ((at, *r.tp, r.size, r.path, r.pinned) for at, q in enumerate(questions) for r in q.dirs.replicas)
    return _written_rows(heads, rows)


@without_collector()
def read_dir_questions(stream: BinaryIO) -> list[DirQuestion]:
    """The questions that were written."""
    heads: list[DirQuestion] = pickle.load(stream)  # noqa: S301 - our own parent wrote it
    replicas = defaultdict[int, list[DirReplica]](list)
    for at, topic, number, *rest in _rows(stream):
        replicas[at].append(DirReplica(TopicPartition(topic, number), *rest))
    return [replace(q, dirs=replace(q.dirs, replicas=tuple(replicas[at]))) for at, q in enumerate(heads)]


def write_dir_answers(answers: Sequence[DirAnswer]) -> bytes:
    """What `read_dir_answers` reads."""
    rows = ((at, *m.tp, m.before, m.after, m.size) for at, answer in enumerate(answers) for m in answer.moves)
    return _written_rows([replace(answer, moves=()) for answer in answers], rows)


@without_collector()
def read_dir_answers(data: bytes) -> list[DirAnswer]:
    """The answers that were written."""
    stream = BytesIO(data)
    heads: list[DirAnswer] = pickle.load(stream)  # noqa: S301 - our own process wrote it
    moves = defaultdict[int, list[DirMove]](list)
    for at, topic, number, *rest in _rows(stream):
        moves[at].append(DirMove(TopicPartition(topic, number), *rest))
    return [replace(answer, moves=tuple(moves[at])) for at, answer in enumerate(heads)]


def _written_rows(head: object, rows: Iterator[tuple[Any, ...]]) -> bytes:
    stream = _begun(head)
    while piece := list(islice(rows, _PIECE)):
        pickle.dump(piece, stream, pickle.HIGHEST_PROTOCOL)
    return stream.getvalue()


def _begun(head: object) -> BytesIO:
    stream = BytesIO()
    pickle.dump(head, stream, pickle.HIGHEST_PROTOCOL)
    return stream


def _rows(stream: BinaryIO) -> Iterator[tuple[Any, ...]]:
    """Of all pieces that are left."""
    for piece in _pieces(stream):
        yield from piece


def _pieces(stream: BinaryIO) -> Iterator[Any]:
    """All that are left."""
    while True:
        try:
            piece = pickle.load(stream)  # noqa: S301 - see above
        except EOFError:
            return
        yield piece
