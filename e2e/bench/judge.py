"""The state of a cluster according to Kafka's own command-line tools: the code under test must not check itself.

Read-only.
"""

import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from e2e.bench.kafka import KafkaCluster

_REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
_TOPICS = "org.apache.kafka.tools.TopicCommand"
_CONFIGS = "kafka.admin.ConfigCommand"
_LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
_LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"

_PARTITION = re.compile(
    r"^\s+Topic: (?P<topic>\S+)\s+Partition: (?P<partition>\d+)\s+Leader: (?P<leader>\S+)"
    r"\s+Replicas: (?P<replicas>[\d,]*)\s+Isr: (?P<isr>[\d,]*)"
)
_REASSIGNMENT = re.compile(
    r"^(?P<topic>\S+)-(?P<partition>\d+): replicas: (?P<replicas>[\d,]+)\."
    r"(?: adding: (?P<adding>[\d,]+)\.)?(?: removing: (?P<removing>[\d,]+)\.)?$"
)
_ENTITY = re.compile(
    r"^(?:Dynamic configs for (?:topic|broker) (?P<name>\S+)|(?P<default>Default configs for brokers.*)) are:"
)
_ENTRY = re.compile(r"^\s+(?P<key>\S+?)=(?P<value>.*) sensitive=(?:true|false) synonyms=\{.*\}$")

Key = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True)
class PartitionState:
    """One partition as TopicCommand shows it; leader None: no leader."""

    replicas: tuple[int, ...]
    leader: int | None
    isr: frozenset[int]


@dataclass(frozen=True)
class Reassignment:
    """One reassignment in flight."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True)
class Judge:
    """Kafka's tools on one cluster."""

    cluster: KafkaCluster

    def describe_topics(self, *topics: str) -> dict[Key, PartitionState]:
        """All partitions of these topics; without topics, of all topics including internal ones."""
        chosen = ("--topic", "|".join(re.escape(topic) for topic in topics)) if topics else ()
        states = {}
        for line in self._ask(_TOPICS, "--describe", *chosen).splitlines():
            if found := _PARTITION.match(line):
                leader = found["leader"]
                states[found["topic"], int(found["partition"])] = PartitionState(
                    _ids(found["replicas"]),
                    int(leader) if leader.isdecimal() else None,
                    frozenset(_ids(found["isr"])),
                )
        return states

    def list_reassignments(self) -> dict[Key, Reassignment]:
        """All reassignments in flight."""
        return {
            (found["topic"], int(found["partition"])): Reassignment(
                _ids(found["replicas"]), _ids(found["adding"]), _ids(found["removing"])
            )
            for line in self._ask(_REASSIGN, "--list").splitlines()
            if (found := _REASSIGNMENT.match(line))
        }

    def verify(self, target: Mapping[Key, Sequence[int]]) -> list[str]:
        """The problems that `--verify` reports: one line per partition whose replica list is not exactly its target.

        Empty if all partitions have reached their targets. The throttles are left as they are.
        """
        partitions = [
            {"topic": topic, "partition": partition, "replicas": list(replicas)}
            for (topic, partition), replicas in target.items()
        ]
        with tempfile.NamedTemporaryFile("w", suffix=".json", dir=self.cluster.directory) as file:
            json.dump({"version": 1, "partitions": partitions}, file)
            file.flush()
            said = self._ask(_REASSIGN, "--verify", "--preserve-throttles", "--reassignment-json-file", file.name)
        return _complaints(said.splitlines(), len(partitions))

    def topic_configs(self, *topics: str) -> dict[str, dict[str, str]]:
        """The configs that are set on these topics (one call each), or on all topics."""
        if not topics:
            return self._configs("topics")
        return {name: found for topic in topics for name, found in self._configs("topics", topic).items()}

    def broker_configs(self) -> dict[str, dict[str, str]]:
        """The dynamic configs of each live broker (by id), and the cluster default ("default")."""
        return self._configs("brokers")

    def throttles(self) -> dict[str, dict[str, str]]:
        """Every throttle of copies on any broker or topic: empty after the operator has cleaned up."""
        brokers = {f"broker {name}": configs for name, configs in self.broker_configs().items()}
        topics = {f"topic {name}": configs for name, configs in self.topic_configs().items()}
        throttled = {
            entity: {key: value for key, value in configs.items() if "throttled" in key or key == _LOG_DIR_RATE}
            for entity, configs in {**brokers, **topics}.items()
        }
        return {entity: configs for entity, configs in throttled.items() if configs}

    def disk_use(self, topic: str) -> dict[int, int]:
        """The bytes of this topic on the log dirs of each running broker."""
        return {
            broker: sum(row["size"] for rows in dirs.values() for row in rows)
            for broker, dirs in self._log_dirs(topic).items()
        }

    def log_dirs(self, topic: str, *, future: bool = False) -> dict[int, dict[str, dict[int, int]]]:
        """By broker and log dir: the bytes of each partition of this topic there.

        ``future``: of the copies that come from other log dirs of the broker, instead of the replicas.
        """
        numbered = re.compile(rf"{re.escape(topic)}-(\d+)$")
        return {
            broker: {
                path: {
                    int(found[1]): row["size"]
                    for row in rows
                    if row["isFuture"] is future and (found := numbered.match(row["partition"]))
                }
                for path, rows in dirs.items()
            }
            for broker, dirs in self._log_dirs(topic).items()
        }

    def _log_dirs(self, topic: str) -> dict[int, dict[str, list[dict[str, Any]]]]:
        said = self._ask(_LOG_DIRS, "--describe", "--topic-list", topic)
        document = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
        return {
            broker["broker"]: {place["logDir"]: place["partitions"] for place in broker["logDirs"]}
            for broker in document["brokers"]
        }

    def _configs(self, kind: str, *names: str) -> dict[str, dict[str, str]]:
        chosen = ("--entity-name", *names) if names else ()
        entities: dict[str, dict[str, str]] = {}
        for line in self._ask(_CONFIGS, "--describe", "--entity-type", kind, *chosen).splitlines():
            if entity := _ENTITY.match(line):
                current = entities.setdefault(entity["name"] or "default", {})
            elif entry := _ENTRY.match(line):
                current[entry["key"]] = entry["value"]
        return entities

    def _ask(self, tool: str, *arguments: str) -> str:
        running = ",".join(self.cluster.address(broker) for broker in self.cluster.running)
        own = ("--bootstrap-server", running, "--command-config", str(self.cluster.tool_config))
        return self.cluster.run_tool(tool, *own, *arguments)


def _complaints(lines: Iterable[str], expected: int) -> list[str]:
    """The lines about partitions that are not complete; raises if the tool did not report on all partitions."""
    about = [line for line in lines if "partition" in line and not line.startswith("Status of")]
    if len(about) != expected:
        raise RuntimeError(f"--verify spoke of {len(about)} partitions, not {expected}: {about[:5]}")
    return [line for line in about if not line.endswith("is completed.")]


def _ids(text: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in (text or "").split(",") if part)
