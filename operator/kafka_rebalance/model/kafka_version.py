"""The Kafka version of a cluster, by the levels of its feature ``metadata.version`` (KIP-584, KIP-778). Pure.

Kafka reports no version number. The highest level that a broker supports identifies its release line. The level that
the cluster has finalized shows whether it is a KRaft cluster and whether its upgrade is complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kafka_rebalance.reasons import Reason

RECORDED = ("3.9", "4.0", "4.1", "4.2", "4.3")
"""The release lines whose behaviour is on record: docs/kafka-behaviour.md."""
_NEWEST_LEVEL = 30
_LINES = {
    30: "4.3", 28: "4.2", 26: "4.1", 22: "4.0", 21: "3.9", 20: "3.8", 15: "3.7", 12: "3.6",
    9: "3.5", 8: "3.4", 4: "3.3", 3: "3.2", 2: "3.1", 1: "3.0",
}  # fmt: skip
"""The release lines by the lowest of their levels: `MetadataVersion` in Kafka's source."""
_KNOWN = f"recorded are Kafka {RECORDED[0]} to {RECORDED[-1]} in KRaft mode"
_GO_ON = f"The operator goes on; {_KNOWN}. Try a small rebalance first"


class VersionFinding(NamedTuple):
    """Whether the version is recorded, as reason and message of a condition."""

    recorded: bool
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class KafkaVersion:
    """Levels of ``metadata.version``: ``supported``, the newest of a broker, and ``finalized``, that of the cluster.

    None: not reported. A broker in KRaft mode reports both, one in ZooKeeper mode neither (recorded on 3.9).
    """

    supported: int | None = None
    finalized: int | None = None

    @property
    def line(self) -> str | None:
        """The release line of the broker's software; None: unknown, or newer than those known here."""
        return _line(self.supported)

    def finding(self) -> VersionFinding:
        """What is known of this version."""
        if self.supported is None or self.finalized is None:
            text = f"the cluster reports no metadata.version, as in ZooKeeper mode. {_GO_ON}, or migrate to KRaft"
            return VersionFinding(False, Reason.ZOOKEEPER_MODE, text)
        if self.line is None:
            text = f"the brokers are newer than Kafka {RECORDED[-1]} (metadata.version {self.supported}). {_GO_ON}"
            return VersionFinding(False, Reason.VERSION_NOT_RECORDED, text)
        if self.line not in RECORDED:
            return VersionFinding(False, Reason.VERSION_NOT_RECORDED, f"Kafka {self.line}. {_GO_ON}")
        if _line(self.finalized) != self.line:
            was = _line(self.finalized) or f"metadata.version {self.finalized}"
            text = (
                f"the brokers run Kafka {self.line}, and the cluster has the features of {was}. This combination is "
                f"not recorded: complete the upgrade with kafka-features.sh upgrade --release-version {self.line}"
            )
            return VersionFinding(False, Reason.VERSION_NOT_RECORDED, text)
        return VersionFinding(True, Reason.VERSION_RECORDED, f"Kafka {self.line} (metadata.version {self.finalized})")


def _line(level: int | None) -> str | None:
    if level is None or level > _NEWEST_LEVEL:
        return None
    return next((line for lowest, line in _LINES.items() if lowest <= level), None)
