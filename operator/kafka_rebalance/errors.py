"""The errors of this project. Adapters translate those of client libraries; nothing above them sees one.

RebalanceError             a reason, which becomes a condition's reason, and a message for a person
├── Transient              retry after ``retry_after`` seconds: a time-out, a broker that is down
├── Permanent              needs a person: wrong credentials, a missing permission
└── Refused                the request is invalid: an unknown broker, fewer brokers than replicas
"""

from typing import TypeVar

from kafka_rebalance.printable_text import printable

E = TypeVar("E", bound=BaseException)
MOST_CHARACTERS = 8_000
"""Of a message, which is kept for each resource and logged. It may quote values that people wrote, of any length."""


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


class RebalanceError(Exception):
    """Why a rebalance cannot continue, in words for the person who reads it at 3 a.m."""

    def __init__(self, reason: str, message: str) -> None:
        message = _cut(printable(_cut(message), kept="\n"))
        super().__init__(message)
        self.reason = reason
        self.message = message

    def __reduce__(self) -> tuple[object, ...]:
        """Exceptions are pickled as class and ``args``, which are not the arguments here: a plan's process raises."""
        return (self.__class__.__new__, (self.__class__,), {**self.__dict__, "args": self.args})


class Transient(RebalanceError):
    """May resolve itself; retry after ``retry_after`` seconds."""

    def __init__(self, reason: str, message: str, retry_after: float = 5.0) -> None:
        super().__init__(reason, message)
        self.retry_after = retry_after


class Permanent(RebalanceError):
    """Needs a person: a retry would fail again."""


class Refused(RebalanceError):
    """The request contradicts the cluster or itself; nothing was changed."""


def without_traceback(error: E) -> E:
    """The error, to be kept: tracebacks, also of what caused it, refer to the variables of all calls on their way."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)
