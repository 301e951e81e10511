"""What is known of a Kafka version, by its levels of metadata.version."""

import pytest

from kafka_rebalance.model.kafka_version import KafkaVersion


@pytest.mark.parametrize(
    ("supported", "finalized", "recorded", "reason", "says"),
    [
        (30, 30, True, "VersionRecorded", "Kafka 4.3 (metadata.version 30)"),
        (29, 28, True, "VersionRecorded", "Kafka 4.2 (metadata.version 28)"),
        (27, 27, True, "VersionRecorded", "Kafka 4.1 (metadata.version 27)"),
        (25, 25, True, "VersionRecorded", "Kafka 4.0 (metadata.version 25)"),
        (21, 21, True, "VersionRecorded", "Kafka 3.9 (metadata.version 21)"),
        (31, 31, False, "VersionNotRecorded", "the brokers are newer than Kafka 4.3 (metadata.version 31). "),
        (
            20,
            20,
            False,
            "VersionNotRecorded",
            "Kafka 3.8. The operator goes on; recorded are Kafka 3.9 to 4.3",
        ),
        (7, 7, False, "VersionNotRecorded", "Kafka 3.3. "),
        (30, 21, False, "VersionNotRecorded", "the brokers run Kafka 4.3, and the cluster has the features of 3.9. "),
        (21, None, False, "ZooKeeperMode", "the cluster reports no metadata.version, as in ZooKeeper mode. "),
        (None, None, False, "ZooKeeperMode", "the cluster reports no metadata.version, as in ZooKeeper mode. "),
    ],
)
def test_finding(supported: int | None, finalized: int | None, recorded: bool, reason: str, says: str) -> None:
    found = KafkaVersion(supported, finalized).finding()
    assert (found.recorded, found.reason) == (recorded, reason)
    assert found.message.startswith(says)
