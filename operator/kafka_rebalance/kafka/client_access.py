"""What the clients of both libraries need to reach one cluster."""

from collections.abc import Callable
from dataclasses import dataclass

from kafka_rebalance.kafka.oauth_tokens import TokenSource
from kafka_rebalance.kafka.settings import ConnectionSettings


def _allowed() -> None:
    """Every order may be sent."""


@dataclass(frozen=True, slots=True)
class ClientAccess:
    """One cluster. ``tokens`` are required for OAUTHBEARER.

    ``before_order``: called in the thread that sends an order, just before that; raises if it may not be sent.
    ``cluster_id``: the cluster that an earlier client has reached; empty: none has.
    """

    settings: ConnectionSettings
    tokens: TokenSource | None = None
    before_order: Callable[[], None] = _allowed
    cluster_id: str = ""
