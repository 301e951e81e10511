"""What the API server's answers mean to us.

RebalanceError
├── Transient   ApiServerUnreachable, ApiServerBusy
│   └── Conflict         409: somebody was faster; read again, then decide again
├── Permanent
│   ├── NotFound         404
│   ├── Forbidden        403: a right is missing
│   │   └── Terminating  403: the namespace is being deleted and takes nothing new
│   └── StoredStateCorrupt   a record of ours is not what we wrote
└── Refused     ApiServerRefused: 400 and 422, what we sent is invalid
    └── DryRunsNotTaken  400: an admission webhook answers real requests only
"""

from __future__ import annotations

import json
from typing import Any

from kafka_rebalance.errors import Permanent, RebalanceError, Refused, Transient
from kafka_rebalance.reasons import Reason

_NO_DRY_RUN = "does not support dry run"
"""Of a webhook with side effects: the words are all that tells its answer from others of code 400."""


class Conflict(Transient):
    """The object changed since it was read, or exists already."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.CONFLICT, message, retry_after=0.0)


class NotFound(Permanent):
    """There is no such object, or no such kind of object."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.NOT_FOUND, message)


class Forbidden(Permanent):
    """The operator's account may not do this."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.API_SERVER_FORBIDDEN, message)


class Terminating(Forbidden):
    """The namespace is being deleted: what is there may still be changed, nothing can be added."""


class StoredStateCorrupt(Permanent):
    """A record in the operator's namespace is incomplete or was changed by somebody else."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.STORED_STATE_CORRUPT, message)


class DryRunsNotTaken(Refused):
    """Nobody can tell without doing it whether it would be taken."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.API_SERVER_REFUSED, message)


def unreachable(what: str, server: str, error: Exception) -> Transient:
    """No answer: the request may or may not have been carried out."""
    told = f"{what}: the API server at {server} did not answer ({type(error).__name__})"
    return Transient(Reason.API_SERVER_UNREACHABLE, told)


def from_response(what: str, code: int, body: bytes) -> RebalanceError:
    """The error for an answer that is not 2xx."""
    status = _status(body)
    message = f"{what}: {status.get('message') or f'HTTP {code}'}"
    if code == 404:
        return NotFound(message)
    if code == 409:
        return Conflict(message)
    if code == 403:
        causes = (status.get("details") or {}).get("causes") or []
        terminating = any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
        return Terminating(message) if terminating else Forbidden(message)
    if code == 401:
        # Tokens are rotated under us: the next request reads the file again.
        return Transient(Reason.API_SERVER_UNAUTHORIZED, message)
    if code == 429 or code >= 500:
        return Transient(Reason.API_SERVER_BUSY, message)
    if code == 400 and _NO_DRY_RUN in message:
        return DryRunsNotTaken(message)
    return Refused(Reason.API_SERVER_REFUSED, message)


def _status(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
