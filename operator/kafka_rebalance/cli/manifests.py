"""What `execute` asks for, as Kubernetes objects: a KafkaRebalance, and a ConfigMap where lists are given. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from kafka_rebalance.api.v1alpha1 import API_VERSION
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.reassignment_file import Reassigned, render_reassignment
from kafka_rebalance.model.topology import BrokerId, PartitionState, Replicas, TopicPartition

KEY = "assignment.json"
MAX_BYTES = 900_000
"""Of a ConfigMap's data: the API server takes 1 MiB, all else included."""

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line says. ``base`` is the spec of a KafkaRebalance to begin with."""

    namespace: str
    name: str | None
    bootstrap_servers: str
    base: Mapping[str, Any] = field(default_factory=dict)
    throttle: str | None = None


def of_assignment(wanted: Wanted, rows: Sequence[Reassigned]) -> list[Manifest]:
    """The lists in a ConfigMap, and the KafkaRebalance that carries them out. Refused (AssignmentTooLarge)."""
    text = render_reassignment(rows)
    if len(text.encode()) > MAX_BYTES:
        raise Refused(
            "AssignmentTooLarge",
            f"the file makes {len(text.encode())} bytes and a ConfigMap holds {MAX_BYTES}: split it by topics",
        )
    name = wanted.name or _name("reassign", wanted, text)
    lists = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(wanted, name), "data": {KEY: text}}
    assignment = {"configMapRef": {"name": name, "key": KEY}}
    return [lists, _rebalance(wanted, name, strategy="Assignment", assignment=assignment, **_factor(rows))]


def _factor(rows: Sequence[Reassigned]) -> dict[str, int]:
    """``replicationFactor``, where the lists change it: it is never changed unless asked. Refused (MixedFactors)."""
    if all(row.original is None or len(row.original) == len(row.replicas) for row in rows):
        return {}
    factors = {len(row.replicas): row.tp for row in rows}
    if len(factors) > 1:
        one, other = sorted(factors)[:2]
        raise Refused(
            "MixedFactors",
            f"topic-partition {factors[one]} gets {one} replicas and {factors[other]} {other}: one rebalance changes "
            "the replication factor to one number; split the file",
        )
    return {"replicationFactor": factors.popitem()[0]}


def of_brokers(
    wanted: Wanted, decommission: Iterable[BrokerId], include: Iterable[BrokerId], topics: Iterable[str]
) -> list[Manifest]:
    """The KafkaRebalance that plans with the fewest moves and carries the plan out."""
    brokers = {"decommission": sorted(decommission), "include": sorted(include)}
    spec: dict[str, Any] = {"brokers": {name: ids for name, ids in brokers.items() if ids}}
    # Names of topics have letters, digits, hyphens, underscores and dots: only these mean something else.
    chosen = [topic.replace(".", r"\.") for topic in sorted(topics)]
    if chosen:
        spec["topics"] = {"include": chosen}
    spec = {key: value for key, value in spec.items() if value}
    kind = f"decommission-{'-'.join(map(str, brokers['decommission'][:3]))}" if brokers["decommission"] else "rebalance"
    name = wanted.name or _name(kind, wanted, json.dumps(spec, sort_keys=True))
    return [_rebalance(wanted, name, **spec)]


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
            raise Refused("UnknownPartition", f"the cluster has no topic-partition {row.tp}")
        if state.in_flight:
            raise Refused("ReassignmentInProgress", f"topic-partition {row.tp} is being reassigned: wait, or cancel it")
        if missing := [b for b in row.replicas if b not in brokers]:
            raise Refused("UnknownBroker", f"topic-partition {row.tp}: broker {missing[0]} is not live")
        if row.original not in {None, state.replicas}:
            raise Refused(
                "OriginalReplicasDiffer",
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
    return yaml.safe_dump_all(manifests, sort_keys=False, width=2**31)


def read_base(data: bytes) -> dict[str, Any]:
    """The spec of the one KafkaRebalance in a file of YAML documents, as written. ValueError says what is wrong."""
    try:
        documents = [d for d in yaml.safe_load_all(data) if d is not None]
    except yaml.YAMLError as broken:
        raise ValueError(f"not YAML: {broken}") from broken
    specs = [d.get("spec") for d in documents if isinstance(d, dict) and d.get("kind") == "KafkaRebalance"]
    if len(specs) != 1 or not isinstance(specs[0], dict):
        raise ValueError(f"expected one KafkaRebalance with a spec, found {len(specs)}")
    return specs[0]


def lists_of(rows: Iterable[Reassigned]) -> list[tuple[TopicPartition, Replicas]]:
    """What the partitions have now."""
    return [(row.tp, row.original or ()) for row in rows]


def _rebalance(wanted: Wanted, name: str, **spec: Any) -> Manifest:
    throttle = {"throttle": {"leaderRate": wanted.throttle, "followerRate": wanted.throttle}} if wanted.throttle else {}
    kafka = {"kafka": {"bootstrapServers": wanted.bootstrap_servers}}
    return {
        "apiVersion": API_VERSION,
        "kind": "KafkaRebalance",
        "metadata": _metadata(wanted, name),
        "spec": {**kafka, **wanted.base, **spec, **throttle},
    }


def _metadata(wanted: Wanted, name: str) -> dict[str, str]:
    return {"name": name, "namespace": wanted.namespace}


def _name(kind: str, wanted: Wanted, text: str) -> str:
    """The same for the same order, so that giving it twice does not move twice."""
    digest = hashlib.sha256(f"{wanted.bootstrap_servers}\n{text}".encode()).hexdigest()
    return f"{kind}-{digest[:8]}"
