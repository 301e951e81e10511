"""The client of kafka-python, with the requests that it does not offer: the only file that imports it.

kafka-python logs every request, its configuration and every failed attempt. We get errors as exceptions, so its logger
is off.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    DescribeClusterRequest,
    DescribeLogDirsRequest,
    ListGroupsRequest,
)

from kafka import TopicPartition as ClientPartition
from kafka import errors as client_errors
from kafka_rebalance.kafka.oauth_tokens import TokenSource
from kafka_rebalance.kafka.settings import SOCKET_TIMEOUT_MS
from kafka_rebalance.model.kafka_version import KafkaVersion
from kafka_rebalance.model.topology import TopicPartition

__all__ = [
    "BROKER_SECONDS",
    "TOO_OLD",
    "BeforeOrder",
    "ClientPartition",
    "PythonClient",
    "TokenProvider",
    "client_errors",
]

BROKER_SECONDS = 4.0
"""How long one broker may take to answer."""
TOO_OLD = (client_errors.IncompatibleBrokerVersion, client_errors.UnsupportedVersionError)
_VERSION_SECONDS = 60.0
"""How long a version is believed: the brokers may be upgraded while we are connected."""
_OTHER_BROKERS = 3
"""How many brokers that refuse a connection are passed over in one call."""
_THROTTLED_SECONDS = 0.02
"""How often it is checked whether a connection is throttled."""
_log = logging.getLogger(__name__)

logging.getLogger("kafka").setLevel(logging.CRITICAL)


BeforeOrder = Callable[[int | None, str], None]
"""Called with the broker that gets an order and the id of its cluster; raises if the order may not be sent."""


def _identity() -> DescribeClusterRequest:
    return DescribeClusterRequest(include_fenced_brokers=False, include_cluster_authorized_operations=False)


class PythonClient(KafkaAdminClient):  # type: ignore[misc]
    """kafka-python's client, cleaned up if it cannot connect, and with the requests that it does not offer."""

    _controller_id: int | None

    def __init__(self, **config: Any) -> None:
        self._version: KafkaVersion | None = None
        self._version_due = float("-inf")
        try:
            super().__init__(**config)
        except BaseException:
            # Otherwise each failed attempt leaves a thread and three file descriptors behind.
            self._closed = False
            with contextlib.suppress(AttributeError):
                self.close()
            raise

    def alter(
        self, orders: Mapping[ClientPartition, list[int] | None], before_order: BeforeOrder
    ) -> dict[ClientPartition, type[Exception] | None]:
        """The error of each partition. ``before_order`` is called right before each attempt to send.

        The client's own call has no such moment: it looks for the controller first, and sends again if another broker
        has become the controller.
        """
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=SOCKET_TIMEOUT_MS, topics=self._process_alter_partition_reassignments_input(orders)
        )

        async def attempt() -> Any:
            if self._controller_id is None:
                self._controller_id = await self._refresh_controller_id()
            return await self._send_order(self._controller_id, request, before_order)

        answer = self._manager.run(attempt)
        if answer.error_code == client_errors.NotControllerError.errno:
            self._controller_id = None
            answer = self._manager.run(attempt)
        if answer.error_code:
            raise client_errors.for_code(answer.error_code)
        rows = [(topic.name, row) for topic in answer.responses for row in topic.partitions]
        errors = {ClientPartition(name, row.partition_index): row.error_code for name, row in rows}
        return {tp: client_errors.for_code(code) if code else None for tp, code in errors.items()}

    def log_dirs_of(self, broker: int) -> Any:
        """Everything that one broker holds; the client's own call drops the error code of the response."""
        request = DescribeLogDirsRequest(topics=None)
        return self._manager.run(lambda: self._manager.send(request, broker, BROKER_SECONDS * 1000))

    def alter_log_dirs_of(self, broker: int, paths: Mapping[TopicPartition, str], before_order: BeforeOrder) -> Any:
        """Ask one broker for these log dirs; the client's own call has no time limit for each broker."""
        request = self._alter_replica_log_dirs_requests({(*tp, broker): path for tp, path in paths.items()})[broker]
        return self._manager.run(lambda: self._send_order(broker, request, before_order, BROKER_SECONDS * 1000))

    def cluster_id_of(self, broker: int) -> str:
        """The id of the cluster that this broker belongs to, as it says itself."""
        return str(self._manager.run(lambda: self._manager.send(_identity(), broker, BROKER_SECONDS * 1000)).cluster_id)

    def groups_of(self, broker: int) -> Any:
        """All groups that one broker coordinates, of every type."""
        return self._manager.run(lambda: self._manager.send(ListGroupsRequest(), broker, BROKER_SECONDS * 1000))

    def cluster(self, *, operations: bool = False) -> Any:
        """The unfenced brokers, and what we may do; the client's own call includes the fenced ones.

        Metadata names a broker that died for up to 5 s. A refused connection excludes that broker for a moment, so the
        next attempt uses another one.
        """
        request = DescribeClusterRequest(include_fenced_brokers=False, include_cluster_authorized_operations=operations)
        for _ in range(_OTHER_BROKERS):
            with contextlib.suppress(client_errors.KafkaConnectionError):
                return self._manager.run(lambda: self._manager.send(request))
        return self._manager.run(lambda: self._manager.send(request))

    async def _send_order(
        self, broker: int | None, request: Any, before_order: BeforeOrder, timeout_ms: float | None = None
    ) -> Any:
        """Send over the very connection whose broker has just said to which cluster it belongs.

        Another connection may lead elsewhere, even to the same address.
        """
        deadline = time.monotonic() + (timeout_ms or SOCKET_TIMEOUT_MS) / 1000
        connection = self._manager.get_connection(broker)
        await self._not_throttled(connection, deadline)
        answer = await connection.send_request(_identity(), request_timeout_ms=timeout_ms)
        await self._not_throttled(connection, deadline)
        before_order(broker, answer.cluster_id)
        return await connection.send_request(request, request_timeout_ms=timeout_ms)

    async def _not_throttled(self, connection: Any, deadline: float) -> None:
        """Wait: each answer may throttle the client, which then refuses to send over this connection for that long."""
        while connection.paused and not connection.closed and time.monotonic() < deadline:
            await self._net.sleep(_THROTTLED_SECONDS)

    def version(self) -> KafkaVersion | None:
        """The levels of metadata.version, from any broker: those last known if it does not answer. None: not known yet.

        Brokers without features report no level.
        """
        if time.monotonic() >= self._version_due:
            self._version_due = time.monotonic() + _VERSION_SECONDS
            try:
                found = self.describe_features().get("metadata.version", {})
            except TOO_OLD:
                found = {}
            except client_errors.KafkaError as error:
                # Other requests to the cluster must not fail because this is missing: a broker may just have died.
                _log.info("the version of Kafka is not known: %s", type(error).__name__)
                return self._version
            levels = (found[kind][1] if kind in found else None for kind in ("supported", "finalized"))
            self._version = KafkaVersion(*levels)
        return self._version


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """kafka-python's view of a `TokenSource`."""

    def __init__(self, tokens: TokenSource) -> None:
        self._tokens = tokens

    def token(self) -> str:
        """The token to authenticate with now."""
        return self._tokens.token().value
