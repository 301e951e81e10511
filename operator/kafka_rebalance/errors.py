"""The errors of this project, and nothing else's: adapters translate, nothing above them sees a client's exception.

RebalanceError             reason (CamelCase, becomes a condition's reason) and a message for a person
├── Transient              worth another try after ``retry_after`` seconds: a time-out, a broker that is away
├── Permanent              will not heal by itself: wrong credentials, a missing right
└── Refused                the request itself cannot be carried out: unknown broker, fewer brokers than replicas
"""

from __future__ import annotations


class RebalanceError(Exception):
    """Anything that keeps a rebalance from going on, said for the person who reads it at 3 a.m."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Transient(RebalanceError):
    """May heal by itself; try again after ``retry_after`` seconds."""

    def __init__(self, reason: str, message: str, retry_after: float = 5.0) -> None:
        super().__init__(reason, message)
        self.retry_after = retry_after


class Permanent(RebalanceError):
    """Needs a person: the same call would fail again."""


class Refused(RebalanceError):
    """The request contradicts the cluster or itself; nothing was changed."""
