"""The API server's errors as ours.

RebalanceError
├── Transient   ApiServerUnreachable, ApiServerBusy (also 410: a list must be read again)
│   └── Conflict         409: changed by somebody else; read again, then decide again
├── Permanent
│   ├── NotFound         404
│   │   └── KindNotFound 404: this kind is not served; nothing is known of the object
│   ├── Forbidden        403: a permission is missing
│   │   └── Terminating  403: the namespace is being deleted; nothing can be created in it
│   └── StoredStateCorrupt   a record of ours is not as it was written
└── Refused     ApiServerRefused: 400 and 422, the request is invalid
    └── DryRunUnsupported    400: an admission webhook does not support dry runs
"""

import json
from typing import Any

from kafka_rebalance.errors import Permanent, RebalanceError, Refused, Transient
from kafka_rebalance.reasons import Reason

_NO_DRY_RUN = "does not support dry run"
"""Part of the message if a webhook with side effects prevents the dry run: the only difference from other 400s."""


class Conflict(Transient):
    """The object changed since it was read, or already exists."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.CONFLICT, message, retry_after=0.0)


class NotFound(Permanent):
    """No such object, or no such kind (``KindNotFound``)."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.NOT_FOUND, message)


class KindNotFound(NotFound):
    """The answer names no object: the kind is not served, for instance while its CRD is installed again."""


class Forbidden(Permanent):
    """The operator's account lacks the permission."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.API_SERVER_FORBIDDEN, message)


class Terminating(Forbidden):
    """The namespace is being deleted: its objects can still be changed, none can be created."""


class StoredStateCorrupt(Permanent):
    """A record in the operator's namespace is incomplete or was changed by somebody else."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.STORED_STATE_CORRUPT, message)


class DryRunUnsupported(Refused):
    """Only a real request shows whether the object is valid."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.API_SERVER_REFUSED, message)


def unreachable(what: str, server: str, error: Exception, how: str = "did not answer") -> Transient:
    """No answer of the API server: the request may have been carried out."""
    message = f"{what}: the API server at {server} {how} ({type(error).__name__})"
    return Transient(Reason.API_SERVER_UNREACHABLE, message)


def from_response(what: str, code: int, body: bytes) -> RebalanceError:
    """The error for a status other than 2xx."""
    status = _status(body)
    message = f"{what}: {status.get('message') or f'HTTP {code}'}"
    if code == 404:
        named = (status.get("details") or {}).get("name")
        return NotFound(message) if named else KindNotFound(message)
    if code == 409:
        return Conflict(message)
    if code == 403:
        causes = (status.get("details") or {}).get("causes") or []
        terminating = any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
        return Terminating(message) if terminating else Forbidden(message)
    if code == 401:
        # Tokens are rotated: the next request reads the file again.
        return Transient(Reason.API_SERVER_UNAUTHORIZED, message)
    if code in {410, 429} or code >= 500:  # 410: the list has changed between two of its pages
        return Transient(Reason.API_SERVER_BUSY, message)
    if code == 400 and _NO_DRY_RUN in message:
        return DryRunUnsupported(message)
    return Refused(Reason.API_SERVER_REFUSED, message)


def _status(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
