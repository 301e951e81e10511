"""The Kubernetes objects of `execute`: a KafkaRebalance, and a ConfigMap for a given assignment. Pure."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka_rebalance.api.fields import MAX_REGEX, MAX_REGEXES
from kafka_rebalance.api.v1alpha1 import API_VERSION, GROUP
from kafka_rebalance.cli.files.kubernetes_yaml import dump_all
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.reassignment_file import Reassigned, render_reassignment
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason

KEY = "assignment.json"
MAX_BYTES = 900_000
"""Limit of the data of a ConfigMap: the API server accepts 1 MiB for the whole object."""

WRITTEN_BY_LABEL = f"{GROUP}/written-by"
"""Label of the ConfigMaps that `execute` creates."""
_MAX_KIND = 240
"""Characters of a name of at most 253, without the digest."""
_NOT_TAKEN_OVER = ("kubectl.kubernetes.io", GROUP)
"""Prefixes of labels and annotations that belong to one object: last-applied-configuration, undo, let-go."""

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExecuteRequest:
    """The options of the command line. ``base`` is the KafkaRebalance of --rebalance; its name is not used."""

    namespace: str | None
    name: str | None
    bootstrap_servers: str
    base: Mapping[str, Any] = field(default_factory=dict)
    throttle: str | None = None
    default_namespace: str = "default"

    @property
    def spec(self) -> Mapping[str, Any]:
        """The spec of the base; empty without one."""
        return self.base.get("spec") or {}

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the base; empty without one."""
        return self.base.get("metadata") or {}


def of_assignment(wanted: ExecuteRequest, rows: Sequence[Reassigned]) -> list[Manifest]:
    """A ConfigMap with the assignment, and the KafkaRebalance that executes it. Refused (AssignmentTooLarge).

    The name of the ConfigMap is derived from its content. Another assignment is another ConfigMap, so none changes
    while a KafkaRebalance uses it, and one from an earlier attempt has the right content.
    """
    text = render_reassignment(rows)
    if len(text.encode()) > MAX_BYTES:
        raise Refused(
            Reason.ASSIGNMENT_TOO_LARGE,
            f"the assignment has {len(text.encode())} bytes, a ConfigMap holds at most {MAX_BYTES}: split it by topics",
        )
    lists_name = _name(wanted.name or "reassign", wanted, text)
    metadata = _metadata(wanted, lists_name)
    metadata["labels"] = {**metadata.get("labels", {}), WRITTEN_BY_LABEL: "execute"}
    lists = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True, "data": {KEY: text}}
    assignment = {"configMapRef": {"name": lists_name, "key": KEY}}
    name = wanted.name or lists_name
    return [lists, _rebalance(wanted, name, strategy="Assignment", assignment=assignment, **_factor(rows))]


def _factor(rows: Sequence[Reassigned]) -> dict[str, int]:
    """``replicationFactor``, if the assignment changes it: the spec must say so. Refused (MixedFactors)."""
    if all(row.original is None or len(row.original) == len(row.replicas) for row in rows):
        return {}
    factors = {len(row.replicas): row.tp for row in rows}
    if len(factors) > 1:
        one, other = sorted(factors)[:2]
        raise Refused(
            Reason.MIXED_FACTORS,
            f"topic-partition {factors[one]} gets {one} replicas and {factors[other]} {other}: a rebalance has only "
            "one replication factor; split the file",
        )
    return {"replicationFactor": factors.popitem()[0]}


def of_brokers(
    wanted: ExecuteRequest, decommission: Iterable[BrokerId], include: Iterable[BrokerId], topics: Iterable[str]
) -> list[Manifest]:
    """The KafkaRebalance that plans with the fewest moves."""
    brokers = {"decommission": sorted(decommission), "include": sorted(include)}
    spec: dict[str, Any] = {"brokers": {name: ids for name, ids in brokers.items() if ids}}
    # A name in a file of others may be an expression that matches all topics.
    chosen = [re.sub(r"([^A-Za-z0-9_-])", r"\\\1", topic) for topic in sorted(topics)]
    if chosen:
        spec["topics"] = {"include": chosen if len(chosen) <= MAX_REGEXES else _joined(chosen)}
    spec = {key: value for key, value in spec.items() if value}
    kind = f"decommission-{'-'.join(map(str, brokers['decommission'][:3]))}" if brokers["decommission"] else "rebalance"
    name = wanted.name or _name(kind, wanted, json.dumps(spec, sort_keys=True))
    return [_rebalance(wanted, name, **spec)]


def _joined(patterns: Iterable[str]) -> list[str]:
    """The patterns joined into as few expressions as the maximum length allows."""
    joined: list[str] = []
    for pattern in patterns:
        if joined and len(joined[-1]) + 1 + len(pattern) <= MAX_REGEX:
            joined[-1] += f"|{pattern}"
        else:
            joined.append(pattern)
    return joined


def with_originals(
    rows: Iterable[Reassigned], states: Mapping[TopicPartition, PartitionState], live: Iterable[BrokerId]
) -> list[Reassigned]:
    """The rows with KIP-236's ``original_replicas``: the current replicas of each partition.

    Refused: UnknownPartition; UnknownBroker, for a broker that is not live; ReassignmentInProgress;
    OriginalReplicasDiffer, if the file was made for another state of the cluster.
    """
    brokers = frozenset(live)
    found = []
    for row in rows:
        state = states.get(row.tp)
        if state is None:
            raise Refused(Reason.UNKNOWN_PARTITION, f"topic-partition {row.tp} does not exist")
        if state.in_flight:
            raise Refused(
                Reason.REASSIGNMENT_IN_PROGRESS, f"topic-partition {row.tp} is being reassigned: wait, or cancel it"
            )
        if missing := [b for b in row.replicas if b not in brokers]:
            raise Refused(Reason.UNKNOWN_BROKER, f"topic-partition {row.tp}: broker {missing[0]} is not live")
        if row.original not in {None, state.replicas}:
            raise Refused(
                Reason.ORIGINAL_REPLICAS_DIFFER,
                f"topic-partition {row.tp} has replicas {list(state.replicas)}, but original_replicas in the file is "
                f"{list(row.original or ())}: make a new plan",
            )
        found.append(Reassigned(row.tp, row.replicas, state.replicas))
    return found


def rollback(current: str) -> str:
    """The current assignment, as Kafka's tool prints it before it starts."""
    return (
        f"Current partition replica assignment\n\n{current}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )


def render(manifests: Sequence[Manifest], output: str) -> str:
    """YAML documents, or a JSON List."""
    if output == "json":
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
    return dump_all(manifests)


def _rebalance(wanted: ExecuteRequest, name: str, **spec: Any) -> Manifest:
    throttle = {"throttle": {"leaderRate": wanted.throttle, "followerRate": wanted.throttle}} if wanted.throttle else {}
    kafka = {"kafka": {"bootstrapServers": wanted.bootstrap_servers}}
    return {
        "apiVersion": API_VERSION,
        "kind": "KafkaRebalance",
        "metadata": _metadata(wanted, name),
        "spec": {**kafka, **wanted.spec, **spec, **throttle},
    }


def _metadata(wanted: ExecuteRequest, name: str) -> dict[str, Any]:
    """Name and namespace, and the labels and annotations of the base."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": wanted.namespace or wanted.metadata.get("namespace") or wanted.default_namespace,
    }
    for part in ("labels", "annotations"):
        found = wanted.metadata.get(part) or {}
        kept = {key: value for key, value in found.items() if key.partition("/")[0] not in _NOT_TAKEN_OVER}
        if kept:
            metadata[part] = kept
    return metadata


def _name(kind: str, wanted: ExecuteRequest, text: str) -> str:
    """The same name for the same request, so that a repetition does not create another one."""
    digest = hashlib.sha256(f"{wanted.bootstrap_servers}\n{text}".encode()).hexdigest()
    return f"{kind[:_MAX_KIND].rstrip('-.')}-{digest[:8]}"
