"""The search for moves between log dirs, broker by broker: the only part of such a plan that may take long. Pure.

Its time grows with the square of the replicas in a log dir, and the servers of an inline connection can claim any.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kafka_rebalance.execution.log_dir_moves import DirShift, without_room
from kafka_rebalance.planning.log_dirs import BrokerDirs, DirMove, even_log_dirs


@dataclass(frozen=True, slots=True)
class DirQuestion:
    """A broker, the band of its log dirs in percent, and the bytes usable in each; absent: not known."""

    dirs: BrokerDirs
    band: int
    room: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DirAnswer:
    """The moves. ``full``: a log dir that has no room for them in any order; empty: none."""

    moves: tuple[DirMove, ...]
    full: str = ""


def answers_to(questions: Iterable[DirQuestion]) -> list[DirAnswer]:
    """The answer to each, in the same order."""
    return [_answer_to(question) for question in questions]


def size_of(questions: Collection[DirQuestion]) -> int:
    """Replicas times log dirs, summed up over the brokers."""
    return sum(len(question.dirs.replicas) * len(question.dirs.totals) for question in questions)


def _answer_to(question: DirQuestion) -> DirAnswer:
    moves = even_log_dirs(question.dirs, question.band).moves
    shifts = [DirShift(move.tp, move.before, move.after, move.size) for move in moves]
    full = without_room(shifts, question.room)
    return DirAnswer(moves, full[0] if full else "")
