"""The Kafka version of a cluster: brokers report no number, only the levels of their features (KIP-584)."""

import pytest
from e2e.bench.kafka_jars import VERSIONS

from kafka_rebalance.kafka.ports import KafkaAdmin
from kafka_rebalance.reasons import Reason

pytestmark = pytest.mark.brokers


async def test_the_levels_of_metadata_version(admin: KafkaAdmin, family: str) -> None:
    """A new cluster has finalized the newest level that its brokers support; each release line has its own levels."""
    version = (await admin.describe_cluster()).version
    assert version is not None
    assert (version.line, version.finalized) == (family, version.supported)
    found = version.finding()
    assert (found.recorded, found.reason) == (True, Reason.VERSION_RECORDED)
    assert family in VERSIONS
