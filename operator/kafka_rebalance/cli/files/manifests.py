"""What `execute` asks for, as Kubernetes objects: a KafkaRebalance, and a ConfigMap where lists are given. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka_rebalance.api.fields import MAX_REGEX, MAX_REGEXES
from kafka_rebalance.api.v1alpha1 import API_VERSION, GROUP
from kafka_rebalance.cli.files.kubernetes_yaml import dump_all
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.reassignment_file import Reassigned, render_reassignment
from kafka_rebalance.model.topology import BrokerId, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason

KEY = "assignment.json"
MAX_BYTES = 900_000
"""Of a ConfigMap's data: the API server takes 1 MiB, all else included."""

WRITTEN_BY_LABEL = f"{GROUP}/written-by"
"""On the ConfigMaps of `execute`, so that they can be found."""
_MAX_KIND = 240
"""Characters of a name of at most 253, without the digest."""
_NOT_TAKEN_OVER = ("kubectl.kubernetes.io", GROUP)
"""Whose keys are about the very object that has them: kubectl's last-applied-configuration, our undo and let-go."""

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExecuteRequest:
    """What the command line says. ``base`` is a KafkaRebalance to begin with; its name is its own."""

    namespace: str | None
    name: str | None
    bootstrap_servers: str
    base: Mapping[str, Any] = field(default_factory=dict)
    throttle: str | None = None

    @property
    def spec(self) -> Mapping[str, Any]:
        """What to begin with."""
        return self.base.get("spec") or {}

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The base's, and nothing where there is none."""
        return self.base.get("metadata") or {}


def of_assignment(wanted: ExecuteRequest, rows: Sequence[Reassigned]) -> list[Manifest]:
    """The lists in a ConfigMap, and the KafkaRebalance that carries them out. Refused (AssignmentTooLarge).

    The ConfigMap's name follows from what is in it. Other lists are another ConfigMap, so none changes under a
    KafkaRebalance, and one that is left from an earlier time holds just what is asked for.
    """
    text = render_reassignment(rows)
    if len(text.encode()) > MAX_BYTES:
        raise Refused(
            Reason.ASSIGNMENT_TOO_LARGE,
            f"the file makes {len(text.encode())} bytes and a ConfigMap holds {MAX_BYTES}: split it by topics",
        )
    lists_name = _name(wanted.name or "reassign", wanted, text)
    metadata = _metadata(wanted, lists_name)
    metadata["labels"] = {**metadata.get("labels", {}), WRITTEN_BY_LABEL: "execute"}
    lists = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True, "data": {KEY: text}}
    assignment = {"configMapRef": {"name": lists_name, "key": KEY}}
    name = wanted.name or lists_name
    return [lists, _rebalance(wanted, name, strategy="Assignment", assignment=assignment, **_factor(rows))]


def _factor(rows: Sequence[Reassigned]) -> dict[str, int]:
    """``replicationFactor``, where the lists change it: it is never changed unless asked. Refused (MixedFactors)."""
    if all(row.original is None or len(row.original) == len(row.replicas) for row in rows):
        return {}
    factors = {len(row.replicas): row.tp for row in rows}
    if len(factors) > 1:
        one, other = sorted(factors)[:2]
        raise Refused(
            Reason.MIXED_FACTORS,
            f"topic-partition {factors[one]} gets {one} replicas and {factors[other]} {other}: one rebalance changes "
            "the replication factor to one number; split the file",
        )
    return {"replicationFactor": factors.popitem()[0]}


def of_brokers(
    wanted: ExecuteRequest, decommission: Iterable[BrokerId], include: Iterable[BrokerId], topics: Iterable[str]
) -> list[Manifest]:
    """The KafkaRebalance that plans with the fewest moves and carries the plan out."""
    brokers = {"decommission": sorted(decommission), "include": sorted(include)}
    spec: dict[str, Any] = {"brokers": {name: ids for name, ids in brokers.items() if ids}}
    # Names of topics have letters, digits, hyphens, underscores and dots: only these mean something else.
    chosen = [topic.replace(".", r"\.") for topic in sorted(topics)]
    if chosen:
        spec["topics"] = {"include": chosen if len(chosen) <= MAX_REGEXES else _joined(chosen)}
    spec = {key: value for key, value in spec.items() if value}
    kind = f"decommission-{'-'.join(map(str, brokers['decommission'][:3]))}" if brokers["decommission"] else "rebalance"
    name = wanted.name or _name(kind, wanted, json.dumps(spec, sort_keys=True))
    return [_rebalance(wanted, name, **spec)]


def _joined(patterns: Iterable[str]) -> list[str]:
    """The same in as few expressions as their greatest length allows."""
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
    """The rows with KIP-236's ``original_replicas``: what each partition has now.

    Refused: UnknownPartition; UnknownBroker, where a list names one that is not live; ReassignmentInProgress;
    OriginalReplicasDiffer, where the file was made for another state than the present one.
    """
    brokers = frozenset(live)
    found = []
    for row in rows:
        state = states.get(row.tp)
        if state is None:
            raise Refused(Reason.UNKNOWN_PARTITION, f"the cluster has no topic-partition {row.tp}")
        if state.in_flight:
            raise Refused(
                Reason.REASSIGNMENT_IN_PROGRESS, f"topic-partition {row.tp} is being reassigned: wait, or cancel it"
            )
        if missing := [b for b in row.replicas if b not in brokers]:
            raise Refused(Reason.UNKNOWN_BROKER, f"topic-partition {row.tp}: broker {missing[0]} is not live")
        if row.original not in {None, state.replicas}:
            raise Refused(
                Reason.ORIGINAL_REPLICAS_DIFFER,
                f"topic-partition {row.tp} has replicas {list(state.replicas)}, its original_replicas in the file are "
                f"{list(row.original or ())}: plan again",
            )
        found.append(Reassigned(row.tp, row.replicas, state.replicas))
    return found


def rollback(current: str) -> str:
    """The present assignment in the form in which Kafka's tool prints it before it begins."""
    return (
        f"Current partition replica assignment\n\n{current}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )


def render(manifests: Sequence[Manifest], output: str) -> str:
    """For kubectl and Git: YAML documents, or a JSON List."""
    if output == "json":
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
    return dump_all(manifests)


def lists_of(rows: Iterable[Reassigned]) -> list[tuple[TopicPartition, Replicas]]:
    """What the partitions have now."""
    return [(row.tp, row.original or ()) for row in rows]


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
    """Labels and annotations of the base are the person's, and its Secrets are in its namespace."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": wanted.namespace or wanted.metadata.get("namespace") or "default",
    }
    for part in ("labels", "annotations"):
        found = wanted.metadata.get(part) or {}
        kept = {key: value for key, value in found.items() if key.partition("/")[0] not in _NOT_TAKEN_OVER}
        if kept:
            metadata[part] = kept
    return metadata


def _name(kind: str, wanted: ExecuteRequest, text: str) -> str:
    """The same for the same order, so that giving it twice does not move twice."""
    digest = hashlib.sha256(f"{wanted.bootstrap_servers}\n{text}".encode()).hexdigest()
    return f"{kind[:_MAX_KIND].rstrip('-.')}-{digest[:8]}"
