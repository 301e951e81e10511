"""Converts answers and errors of `KafkaAdmin` to JSON and back.

The reader does not trust the writer. It accepts only the types that `KafkaAdmin` declares for the method. A long answer
is written in pieces, because reading a piece holds the interpreter's lock.
"""

import functools
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from kafka_rebalance.errors import Permanent, RebalanceError, Refused, Transient
from kafka_rebalance.kafka.isolated.answer_memory import ERROR_BYTES, MEMORY_FACTOR, REPLICA_BYTES, memory_of
from kafka_rebalance.kafka.isolated.frames import LONGEST_PIECE, Kind, check_length
from kafka_rebalance.kafka.isolated.largest_cluster import check_size
from kafka_rebalance.kafka.isolated.printable_names import check_names
from kafka_rebalance.kafka.ports import Answers, KafkaReader, KafkaWriter, LogDir
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.printable_text import printable
from kafka_rebalance.reasons import Reason

READS = frozenset(name for name in vars(KafkaReader) if not name.startswith("_"))
"""The methods that change nothing."""
ORDERS = frozenset(name for name in vars(KafkaWriter) if not name.startswith("_"))
"""The methods that need the fence."""

_ROWS_OF_A_PIECE = 1_000
"""Rows in a piece. Reading a piece of partitions takes ten milliseconds."""
_LONGEST_MESSAGE = 4_000
_LONGEST_RETRY_SECONDS = 300.0
_KINDS: dict[str, type[RebalanceError]] = {kind.__name__: kind for kind in (Transient, Permanent, Refused)}
_Numbers = list[tuple[TopicPartition, int]]
"""Pairs of a partition and a number, because a JSON key cannot be a partition."""
_Error = tuple[str, str, str, float]
_ERROR: TypeAdapter[_Error] = TypeAdapter(_Error)


class _LogDirRow(NamedTuple):
    path: str
    replica_bytes: _Numbers
    future_bytes: _Numbers
    total_bytes: int
    usable_bytes: int


_SizedRows = Iterator[tuple[int, Any]]
"""Each row with its size: the number of rows of a piece that it counts for."""


def _chunks(numbers: Mapping[TopicPartition, int]) -> list[_Numbers]:
    rows = list(numbers.items())
    return [rows[start : start + _ROWS_OF_A_PIECE] for start in range(0, len(rows), _ROWS_OF_A_PIECE)]


def _split_log_dirs(log_dirs: tuple[LogDir, ...]) -> _SizedRows:
    yield len(log_dirs), [_LogDirRow(one.path, [], [], one.total_bytes, one.usable_bytes) for one in log_dirs]
    for one in log_dirs:
        for chunk in _chunks(one.replica_bytes):
            yield len(chunk), [_LogDirRow(one.path, chunk, [], one.total_bytes, one.usable_bytes)]
        for chunk in _chunks(one.future_bytes):
            yield len(chunk), [_LogDirRow(one.path, [], chunk, one.total_bytes, one.usable_bytes)]


def _length_of_log_dirs(rows: list[_LogDirRow]) -> int:
    return sum(1 + len(row.replica_bytes) + len(row.future_bytes) for row in rows)


_LogDirParts = tuple[dict[TopicPartition, int], dict[TopicPartition, int], int, int]


def _add_log_dirs(found: dict[str, _LogDirParts], rows: list[_LogDirRow]) -> None:
    for row in rows:
        replicas, future, *_ = found.setdefault(row.path, ({}, {}, row.total_bytes, row.usable_bytes))
        replicas.update(row.replica_bytes)
        future.update(row.future_bytes)


def _log_dirs(found: dict[str, _LogDirParts]) -> tuple[LogDir, ...]:
    return tuple(LogDir(path, *parts) for path, parts in found.items())


def _split_numbers(numbers: Mapping[TopicPartition, int]) -> _SizedRows:
    for chunk in _chunks(numbers) or [[]]:
        yield max(len(chunk), 1), chunk


class _Nested(NamedTuple):
    """Values that contain partitions as keys, and may be long themselves.

    ``in_json``: the type of a part. ``split`` cuts a value into parts, ``length`` is the number of values in a part,
    ``add`` adds a part to a mapping, and ``whole`` makes the value from this mapping.
    """

    in_json: Any
    split: Callable[[Any], _SizedRows]
    length: Callable[[Any], int]
    add: Callable[[dict[Any, Any], Any], None]
    whole: Callable[[dict[Any, Any]], Any]


_NESTED = {
    "log_dirs": _Nested(list[_LogDirRow], _split_log_dirs, _length_of_log_dirs, _add_log_dirs, _log_dirs),
    "committed_offsets": _Nested(_Numbers, _split_numbers, len, dict.update, dict),
}


class _Format(NamedTuple):
    """``rows``: the type of the pairs of key and value. None: the answer is not a mapping, and ``whole`` is its type.

    ``errors``: the type of the errors by topic or broker. None: the answer has none.
    """

    rows: TypeAdapter[Any] | None
    whole: TypeAdapter[Any] | None
    errors: TypeAdapter[Any] | None
    nested: _Nested | None


@functools.cache
def _format_of(method: str) -> _Format:
    port = KafkaReader if method in READS else KafkaWriter
    declared = typing.get_type_hints(getattr(port, method))["return"]
    kind, nested = typing.get_origin(declared), _NESTED.get(method)
    if kind not in {Answers, dict}:
        return _Format(None, TypeAdapter(declared), None, None)
    key, value, *of_errors = typing.get_args(declared)
    errors = _pairs(of_errors[0], _Error) if of_errors else None
    return _Format(_pairs(key, nested.in_json if nested else value), None, errors, nested)


def _pairs(key: Any, value: Any) -> TypeAdapter[Any]:
    kind: Any = types.GenericAlias(list, types.GenericAlias(tuple, (key, value)))
    return TypeAdapter(kind)


def written(method: str, answer: Any) -> Iterator[tuple[Kind, bytes]]:
    """The answer of this method, in pieces. The last piece ends the answer.

    Refused("InlineConnectionRefused") if the cluster is too large for a client in a separate process, or a name is not
    printable or too long.
    """
    check_size(answer)
    check_names(answer)
    form = _format_of(method)
    if form.whole is not None:
        yield Kind.ANSWER, form.whole.dump_json(answer)
        return
    assert form.rows is not None  # noqa: S101 - for the type checker
    for piece in _pieces(_rows(answer, form.nested)):
        yield from _short_pieces(Kind.ROWS, form.rows, piece)
    if form.errors is not None:
        for piece in _pieces((1, (key, _plain(error))) for key, error in answer.errors.items()):
            yield from _short_pieces(Kind.ERRORS, form.errors, piece)
    yield Kind.ANSWER, b""


def _short_pieces(kind: Kind, form: TypeAdapter[Any], rows: list[Any]) -> Iterator[tuple[Kind, bytes]]:
    """The rows in one piece, or in several if it is too long."""
    content = form.dump_json(rows)
    if len(content) <= LONGEST_PIECE or len(rows) == 1:
        yield kind, content
        return
    half = len(rows) // 2
    yield from _short_pieces(kind, form, rows[:half])
    yield from _short_pieces(kind, form, rows[half:])


def _rows(answer: Mapping[Any, Any], nested: _Nested | None) -> _SizedRows:
    for key, value in answer.items():
        if nested is None:
            yield 1, (key, value)
        else:
            for size, part in nested.split(value):
                yield size, (key, part)


def _pieces(rows: _SizedRows) -> Iterator[list[Any]]:
    piece: list[Any] = []
    count = 0
    for size, row in rows:
        if piece and count + size > _ROWS_OF_A_PIECE:
            yield piece
            piece, count = [], 0
        piece.append(row)
        count += size
    if piece:
        yield piece


class ReadAnswer:
    """Reads the pieces of an answer of this method. Raises ValueError if they are not valid.

    Each piece is checked when it arrives: a check of a whole answer would block the event loop.
    """

    def __init__(self, method: str) -> None:
        self._form = _format_of(method)
        self._rows: dict[Any, Any] = {}
        self._errors: dict[Any, RebalanceError] = {}
        self.count = 0
        """Bytes of the pieces so far."""
        self.weight = 0
        """As ``count``, but for at least the memory that the values take, divided by `MEMORY_FACTOR`."""

    def add_rows(self, content: bytes) -> None:
        """One piece."""
        self._count(content)
        if self._form.rows is None:
            raise ValueError("rows in an answer that has none")
        _check_piece(content)
        rows = self._form.rows.validate_json(content)
        if (nested := self._form.nested) is None:
            found = dict(rows)
            _check(found)
            if self._form.errors is None:
                # Errors of brokers and topics are plain text; codes are enums, which are strings too.
                found = {key: printable(value) if type(value) is str else value for key, value in rows}
            self._weigh(content, sum(map(memory_of, found.values())))
            self._rows.update(found)
            return
        self._weigh(content, REPLICA_BYTES * sum(nested.length(part) for _, part in rows))
        for key, part in rows:
            alone: dict[Any, Any] = {}
            nested.add(alone, part)
            _check({key: nested.whole(alone)})
            nested.add(self._rows.setdefault(key, {}), part)

    def add_errors(self, content: bytes) -> None:
        """One piece of the errors by topic or broker."""
        self._count(content)
        if self._form.errors is None:
            raise ValueError("errors in an answer that has none")
        _check_piece(content)
        found = {key: _error(*plain) for key, plain in self._form.errors.validate_json(content)}
        _check(Answers({}, found))
        self._weigh(content, ERROR_BYTES * len(found))
        self._errors.update(found)

    def ended(self, content: bytes) -> Any:
        """The whole answer, with its last piece."""
        self._count(content)
        if self._form.whole is not None:
            whole = self._form.whole.validate_json(content)
            _check(whole)
            return whole
        if self._form.nested is not None:
            self._rows = {key: self._form.nested.whole(value) for key, value in self._rows.items()}
        return self._rows if self._form.errors is None else Answers(self._rows, self._errors)

    def _weigh(self, content: bytes, memory: int) -> None:
        """The text of the piece has been counted."""
        self.weight += max(memory // MEMORY_FACTOR - len(content), 0)

    def _count(self, content: bytes) -> None:
        self.count += len(content)
        self.weight += len(content)
        check_length(self.count)


def _check_piece(content: bytes) -> None:
    if len(content) > LONGEST_PIECE:
        raise ValueError(f"a piece of the answer is longer than {LONGEST_PIECE >> 20} MiB")


def _check(part: object) -> None:
    try:
        check_size(part)
        check_names(part)
    except Refused as refused:  # a correct process refuses such an answer itself
        raise ValueError(refused.message) from refused


def written_error(error: RebalanceError) -> bytes:
    """One of our errors: its class, reason and message."""
    return _ERROR.dump_json(_plain(error))


def read_error(content: bytes) -> RebalanceError:
    """The error. Raises ValueError if the content is not an error."""
    return _error(*_ERROR.validate_json(content))


def _plain(error: RebalanceError) -> _Error:
    kind = next(name for name, kind in _KINDS.items() if isinstance(error, kind))
    return kind, error.reason, error.message[:_LONGEST_MESSAGE], getattr(error, "retry_after", 0.0)


def _error(kind: str, reason: str, message: str, retry_after: float) -> RebalanceError:
    if kind not in _KINDS:
        raise ValueError("an error of no known class")
    message = printable(message[:_LONGEST_MESSAGE])
    if kind == Transient.__name__:
        return Transient(Reason(reason), message, min(max(retry_after, 1.0), _LONGEST_RETRY_SECONDS))
    return _KINDS[kind](Reason(reason), message)
