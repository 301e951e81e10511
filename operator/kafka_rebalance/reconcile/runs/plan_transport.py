"""The requests to a planner process and its answers, as bytes: faster and smaller than pickled instances.

Partitions are sent as rows of plain values, in pieces of some thousand rows: while it reads a piece, Python's pickle
keeps the interpreter's lock, so one large piece would block the event loop for seconds.
"""

import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
_INPUT = tuple(field.name for field in fields(PartitionInput) if field.name != "tp")
_PLANNED = tuple(field.name for field in fields(PlannedPartition) if field.name != "tp")


def write_request(request: PlanRequest) -> bytes:
    """What `read_request` reads."""
    return _written(replace(request, partitions=()), _INPUT, request.partitions)


@without_collector()
def read_request(stream: BinaryIO) -> PlanRequest:
    """The request that was written."""
    request: PlanRequest = pickle.load(stream)  # noqa: S301 - our own parent wrote it
    rows = (PartitionInput(TopicPartition(topic, number), *rest) for topic, number, *rest in _rows(stream))
    return replace(request, partitions=tuple(rows))


def write_answer(made: Plan | Refused) -> bytes:
    """What `read_answer` reads."""
    if isinstance(made, Refused):
        return pickle.dumps(made)
    return _written(replace(made, partitions=()), _PLANNED, made.partitions)


@without_collector()
def read_answer(answer: bytes, request: PlanRequest) -> Plan | Refused:
    """The answer to this request. Equal names and lists are those of the request, and not kept twice."""
    stream = BytesIO(answer)
    made: Plan | Refused = pickle.load(stream)  # noqa: S301 - our own process wrote it
    if isinstance(made, Refused):
        return made
    asked = {p.tp: p for p in request.partitions}
    share = dict[Any, Any]().setdefault
    return replace(made, partitions=tuple(_planned(row, asked, share) for row in _rows(stream)))


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


def _planned(row: tuple[Any, ...], asked: Mapping[TopicPartition, PartitionInput], share: Any) -> PlannedPartition:
    topic, number, current, target, topic_id, *rest = row
    tp = TopicPartition(topic, number)
    if (known := asked.get(tp)) is not None:
        tp = known.tp
        current = known.replicas if known.replicas == current else current
        topic_id = known.topic_id if known.topic_id == topic_id else topic_id
    return PlannedPartition(tp, current, share(target, target), topic_id, *rest)


def _written(head: object, names: tuple[str, ...], partitions: Iterable[Any]) -> bytes:
    of = attrgetter(*names)
    return _written_rows(head, ((*p.tp, *of(p)) for p in partitions))


def _written_rows(head: object, rows: Iterator[tuple[Any, ...]]) -> bytes:
    stream = BytesIO()
    pickle.dump(head, stream, pickle.HIGHEST_PROTOCOL)
    while piece := list(islice(rows, _PIECE)):
        pickle.dump(piece, stream, pickle.HIGHEST_PROTOCOL)
    return stream.getvalue()


def _rows(stream: BinaryIO) -> Iterator[tuple[Any, ...]]:
    """Of all pieces that are left."""
    while True:
        try:
            piece = pickle.load(stream)  # noqa: S301 - see above
        except EOFError:
            return
        yield from piece
