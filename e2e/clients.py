"""Kafka clients that stay connected: ten times cheaper than a new client for each call.

They are replaced when the set of running brokers changes.
"""

from collections.abc import Callable
from typing import TypeVar

from confluent_kafka.admin import AdminClient
from kafka.errors import KafkaError

from e2e.bench.judge import Key
from e2e.bench.kafka import KafkaCluster
from kafka import KafkaAdminClient

T = TypeVar("T")


class Clients:
    """One client of each kind for one cluster."""

    def __init__(self, kafka: KafkaCluster) -> None:
        self._kafka = kafka
        self._admin: tuple[str, AdminClient] | None = None
        self._other: tuple[str, KafkaAdminClient] | None = None

    def admin(self) -> AdminClient:
        """The confluent-kafka client."""
        servers = running(self._kafka)
        if self._admin is None or self._admin[0] != servers:
            self._admin = servers, self._kafka.admin(servers)
        return self._admin[1]

    def asked(self, question: Callable[[KafkaAdminClient], T]) -> T:
        """The result from kafka-python; retried over a new connection if the old one is lost."""
        if self._other is not None and self._other[0] == running(self._kafka):
            try:
                return question(self._other[1])
            except KafkaError:
                pass
        self.close()
        servers = running(self._kafka)
        self._other = servers, KafkaAdminClient(bootstrap_servers=servers.split(","))
        return question(self._other[1])

    def close(self) -> None:
        """Close the connections."""
        self._admin = None
        if self._other is not None:
            self._other[1].close()
            self._other = None


def running(kafka: KafkaCluster) -> str:
    """The addresses of the running brokers."""
    return ",".join(kafka.address(broker) for broker in kafka.running)


def adding_replicas(client: KafkaAdminClient) -> dict[Key, tuple[int, ...]]:
    """All reassignments in flight, with the replicas that each adds."""
    return {
        (found.topic, found.partition): tuple(row["adding_replicas"])
        for found, row in client.list_partition_reassignments().items()
    }
