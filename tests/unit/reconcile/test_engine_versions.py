"""The Kafka version is named on each resource; one that is not on record holds nothing back."""

import pytest
from tests.fakes.walked_operator import SlowCluster, applied

from kafka_rebalance.kafka.ports import ClusterInfo
from kafka_rebalance.model.kafka_version import KafkaVersion


class Versioned(SlowCluster):
    """Brokers of a version."""

    def __init__(self, version):
        super().__init__(slow=False)
        self.version = version

    @property
    def info(self):
        return ClusterInfo("c", dict(self.brokers), self.version)


@pytest.mark.parametrize(
    ("version", "status", "reason"),
    [
        (KafkaVersion(30, 30), "True", "VersionRecorded"),
        (KafkaVersion(20, 20), "False", "VersionNotRecorded"),
        (KafkaVersion(), "False", "ZooKeeperMode"),
    ],
)
async def test_is_named(version, status, reason):
    operator = applied(Versioned(version))
    await operator.until("Succeeded")
    condition = operator.condition("VersionRecorded")
    assert (condition["status"], condition["reason"]) == (status, reason)


async def test_follows_an_upgrade():
    operator = applied(Versioned(KafkaVersion(20, 20)), approval={"policy": "Manual"})
    await operator.until("AwaitingApproval")
    operator.kafka.version = KafkaVersion(30, 30)
    await operator.until_true(lambda: operator.condition("VersionRecorded")["status"] == "True")
