"""A broker that is replaced by one with the same id and an empty disk."""

import pytest
from e2e.bench.kafka import KafkaCluster
from e2e.bench.load import create_topics
from tests.contract.arranging import BITE_BYTES, RECORDS, begin, write
from tests.contract.observing import partition, until

from kafka_rebalance.kafka.ports import KafkaAdmin
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

pytestmark = pytest.mark.brokers

FIVE = BrokerId(5)


class TestReplaced:
    async def test_everything_is_copied_again(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        """The lists stay. A replica in sync and one that is being added are both copied from the leaders."""
        create_topics(cluster, {"replaced": [[5, 1], [1, 2]]})
        held, added = (TopicPartition("replaced", number) for number in (0, 1))
        write(cluster, [held, added])
        cluster.kill9(5)
        cluster.wait_gone(5)
        await begin(admin, {added: replicas_of(1, 2, 5)})
        await partition(admin, held, "is led by 1", lambda s: s.isr == {1} and s.leader == 1)
        cluster.replace(5)
        await partition(admin, held, "is whole", lambda s: s.isr == {1, 5} and s.replicas == (5, 1) and s.leader == 1)
        await partition(admin, added, "is on 5", lambda s: s.isr == {1, 2, 5} and not s.in_flight)
        dirs = (await until("broker 5 answers", lambda: admin.log_dirs([FIVE]), lambda found: FIVE in found))[FIVE]
        for tp in (held, added):
            assert sum(found.replica_bytes.get(tp, 0) for found in dirs) > (RECORDS - 1) * BITE_BYTES * 0.9
