"""Replicas on brokers with three log dirs each: their places, and requests to move them."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import NamedTuple

from e2e.bench.kafka import KafkaCluster
from e2e.bench.load import create_topics
from kafka.admin import KafkaAdminClient
from tests.contract.arranging import BITE_BYTES, settings_of, write
from tests.contract.observing import until

from kafka_rebalance.kafka.ports import KafkaAdmin
from kafka_rebalance.kafka.settings import kafka_python_config
from kafka_rebalance.model.topology import BrokerId, TopicPartition

RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
_names = count()


def jbod_cluster() -> KafkaCluster:
    """Two brokers with three log dirs each."""
    properties = {"replica.fetch.max.bytes": str(BITE_BYTES)}
    return KafkaCluster({1: "a", 2: "b"}, properties=properties, log_dirs=3)


class Place(NamedTuple):
    """The number of the log dir that holds a replica, and of the one that its future replica is being copied to."""

    at: int | None
    future: int | None = None


@contextlib.contextmanager
def new_client(cluster: KafkaCluster) -> Iterator[KafkaAdminClient]:
    """The plain kafka-python client; a new one for each call, because one from before a restart may not know the
    broker."""
    client = KafkaAdminClient(**kafka_python_config(settings_of(cluster)))
    try:
        yield client
    finally:
        client.close()


class Replica:
    """A new partition with data on broker 1 (and on 2 if ``both``), and its replica on broker 1."""

    def __init__(self, cluster: KafkaCluster, admin: KafkaAdmin, *, both: bool = False) -> None:
        self.tp = TopicPartition(f"moving-{next(_names)}", 0)
        create_topics(cluster, {self.tp.topic: [[1, 2] if both else [1]]})
        write(cluster, [self.tp])
        self._jbod, self._admin = cluster, admin

    def move(self, to: int | str, broker: int = 1) -> type[Exception]:
        """Request a log dir, by number or path. Returns Kafka's answer."""
        path = to if isinstance(to, str) else str(self._jbod.log_dirs_of(broker)[to])
        with new_client(self._jbod) as client:
            found: Mapping[object, type[Exception]] = client.alter_replica_log_dirs({(*self.tp, broker): path})
        return next(iter(found.values()))

    async def place(self, broker: int = 1) -> Place:
        """Where DescribeLogDirs shows it."""
        answers = await self._admin.log_dirs([BrokerId(broker)])
        dirs = {found.path: found for found in answers.get(BrokerId(broker), ())}
        at, future = None, None
        for number, path in enumerate(self._jbod.log_dirs_of(broker)):
            if (found := dirs.get(str(path))) is not None:
                at = number if self.tp in found.replica_bytes else at
                future = number if self.tp in found.future_bytes else future
        return Place(at, future)

    async def shows(self, expected: Place, broker: int = 1) -> None:
        async def ask() -> Place:
            return await self.place(broker)

        await until(f"{self.tp} on broker {broker}", ask, lambda seen: seen == expected)

    async def others(self) -> tuple[int, int, int]:
        """Its log dir, and the other two."""
        at = (await self.place()).at
        assert at is not None
        first, second = sorted({0, 1, 2} - {at})
        return at, first, second


NewReplica = Callable[..., Replica]
"""Creates a `Replica`; with ``both`` on two brokers."""
