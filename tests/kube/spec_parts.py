"""Parts of specs and of messages, for the modules with specs."""

from typing import Any, NamedTuple

SECRET = {"name": "user"}


def sasl(mechanism: str, *, tls: bool = True, **sasl: Any) -> dict[str, Any]:
    """A spec with this SASL configuration."""
    kafka = {"bootstrapServers": "a:1", "sasl": {"mechanism": mechanism, "secretRef": SECRET, **sasl}}
    return {"kafka": {**kafka, "tls": {}} if tls else kafka}


TOKENS = "https://login.example.org/token"

VOLUME = {"broker": 3, "path": "/data/2"}
DISK: dict[str, Any] = {"load": {"resources": [{"name": "Disk"}]}}


class BadInput(NamedTuple):
    """A spec with one mistake. ``model``: what our own validation says of it; ``server``: what the API server says.

    For a wrong type, the API server names only the right type: its messages cannot be changed.
    """

    spec: dict[str, Any]
    model: str
    server: str


def said_by_both(spec: dict[str, Any], field: str, message: str) -> BadInput:
    return BadInput(spec, f"{field}: {message}", message)


ADDRESSES = "must be host:port, or up to 20 separated by commas without spaces, like kafka-1:9092,kafka-2:9092"
DURATION = "must be a duration of at least 1s, like 15m, 1h30m or 2d"
OBJECT_NAME = "must be the name of an object: lower case letters, digits, '-' and '.'"
SERVER_RATE = "must be a quantity of 1 to 1Pi bytes per second, like 50Mi or 1048576"
