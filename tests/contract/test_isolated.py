"""A client in a separate process returns the same answers as one in this process, and its orders take effect."""

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from e2e.bench.kafka import KafkaCluster
from tests.contract.arranging import EVERYONE, new_topic, settings_of
from tests.contract.observing import partition

from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kafka.isolated.isolated_admin import IsolatedClients
from kafka_rebalance.kafka.ports import AlterCode, Answers, ConfigChange, ConfigOp, KafkaAdmin, LogDir
from kafka_rebalance.model.topology import TopicPartition, replicas_of

pytestmark = pytest.mark.brokers


@pytest.fixture
async def isolated(cluster: KafkaCluster) -> AsyncIterator[KafkaAdmin]:
    clients = IsolatedClients()
    admin = clients.connect(settings_of(cluster), Fence(lambda: True), "team")
    yield admin
    await admin.close()
    await clients.close()


READS: dict[str, Callable[[KafkaAdmin, TopicPartition], Awaitable[Any]]] = {
    "describe_cluster": lambda admin, _: admin.describe_cluster(),
    "describe_partitions": lambda admin, tp: admin.describe_partitions([tp.topic]),
    "topic_ids": lambda admin, _: admin.topic_ids(),
    "topic_configs": lambda admin, tp: admin.topic_configs([tp.topic, "missing"], ["retention.ms"]),
    "broker_configs": lambda admin, _: admin.broker_configs({*EVERYONE, 99}, ["log.dirs"]),
    "log_dirs": lambda admin, _: admin.log_dirs(EVERYONE),
    "offsets": lambda admin, tp: admin.offsets({tp}),
    "committed_offsets": lambda admin, _: admin.committed_offsets(10),
    "authorized_operations": lambda admin, tp: admin.authorized_operations([tp.topic]),
}


class TestIsolated:
    @pytest.mark.parametrize("method", READS)
    async def test_reads(self, cluster: KafkaCluster, admin: KafkaAdmin, isolated: KafkaAdmin, method: str) -> None:
        tp = TopicPartition("read-twice", 0)
        if not await admin.topic_ids([tp.topic]):
            tp = new_topic(cluster, "read-twice", 1, 2, 3)
        own, other = await READS[method](admin, tp), await READS[method](isolated, tp)
        assert _lasting(own) == _lasting(other)
        if isinstance(own, Answers):
            assert {key: error.reason for key, error in own.errors.items()} == {
                key: error.reason for key, error in other.errors.items()
            }

    async def test_orders(self, cluster: KafkaCluster, admin: KafkaAdmin, isolated: KafkaAdmin) -> None:
        tp = new_topic(cluster, "ordered-there", 1, 2, 3)
        changes = {tp.topic: [ConfigChange("retention.ms", ConfigOp.SET, "7200000")]}
        assert await isolated.alter_topic_configs(changes) == {tp.topic: None}
        assert await isolated.alter_reassignments({tp: replicas_of(4, 2, 3)}) == {tp: AlterCode.OK}
        await partition(admin, tp, "is moved", lambda s: s.replicas == (4, 2, 3) and not s.in_flight)
        assert (await admin.topic_configs([tp.topic], ["retention.ms"]))[tp.topic]["retention.ms"].value == "7200000"
        assert set(await isolated.elect_preferred({tp})) == {tp}


def _lasting(answer: Any) -> Any:
    """Without free space, which changes between two calls."""
    if isinstance(answer, Answers) and any(isinstance(value, tuple) for value in answer.values()):
        return {key: [_without_space(one) for one in found] for key, found in answer.items()}
    return answer


def _without_space(one: LogDir) -> LogDir:
    return dataclasses.replace(one, usable_bytes=0)
