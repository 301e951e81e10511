"""kafka-rebalance plan: plan offline from a cluster file (design section 10). Reads files, prints, decides nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import click
import yaml

from kafka_rebalance.api.rebalance import Balance, KafkaRebalanceSpec, Strategy
from kafka_rebalance.api.topics import TopicFilter
from kafka_rebalance.api.v1alpha1 import parse_rebalance
from kafka_rebalance.cli.bulk import without_collector
from kafka_rebalance.cli.files import parsed
from kafka_rebalance.cli.plan_table import print_plan
from kafka_rebalance.cli.steps import BrokerList
from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.windows import check
from kafka_rebalance.model.cluster_file import (
    ClusterFile,
    ClusterPartition,
    parse_cluster,
    parse_topics_to_move,
)
from kafka_rebalance.model.load_artifact import parse_load_model
from kafka_rebalance.model.plan import Plan, PlannedPartition
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest, RackAwareness, eligible_brokers
from kafka_rebalance.planning import plan as make_plan


@dataclass(frozen=True, slots=True)
class _Options:
    """What the command line says; None: it does not, so the resource's word or the default counts."""

    brokers: Replicas | None
    decommission: Replicas | None
    topics: frozenset[str] | None
    rack_awareness: str | None


@click.command("plan")
@click.option("--cluster", type=click.File("rb"), required=True, help="The cluster as JSON, gzip'd or not; - is stdin.")
@click.option("--rebalance", type=click.File("rb"), help="A KafkaRebalance: its topics, brokers and goals count.")
@click.option("--brokers", "--broker-list", type=BrokerList(), help="Brokers that may hold replicas; else all.")
@click.option("--decommission", type=BrokerList(), help="Brokers that shall hold nothing.")
@click.option("--topics-to-move-json-file", "topics_file", type=click.File("rb"), help="Kafka's file; else all topics.")
@click.option("--strategy", type=click.Choice([s.value for s in Strategy]), help="How targets are chosen.")
@click.option("--balance", type=click.Choice([b.value for b in Balance]), help="Over what replicas are counted.")
@click.option("--rack-awareness", type=click.Choice([r.value for r in RackAwareness]), help="What racks mean.")
@click.option("--load-model", type=click.File("rb"), help="Sizes for partitions that the cluster file has none for.")
@click.option("--all", "everything", is_flag=True, help="Print unchanged partitions as well.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
@without_collector()
def plan(*, everything: bool, output: str, **given: Any) -> None:
    """Plan the fewest replica moves that balance the cluster; Kafka's reassignment JSON out.

    Options given here win over the resource in --rebalance.
    """
    asked = asked_for(**given)
    started = time.perf_counter()
    made = make_plan(asked.request)
    shown = _shown(made, asked.request.partitions if everything else ())
    document = _document(made, shown, asked.sizes, time.perf_counter() - started)
    if output == "json":
        click.echo(json.dumps(document))
    elif output == "yaml":
        click.echo(yaml.safe_dump(document, sort_keys=False), nl=False)
    else:
        print_plan(made, asked.request, shown, asked.sizes, document["summary"]["planningSeconds"])


@dataclass(frozen=True, slots=True)
class Asked:
    """What the files and options ask for. ``sizes`` in bytes lacks the partitions whose size nobody knows."""

    request: PlanRequest
    sizes: Mapping[TopicPartition, int]


def asked_for(
    *,
    cluster: BinaryIO,
    rebalance: BinaryIO | None,
    brokers: Replicas | None,
    decommission: Replicas | None,
    topics_file: BinaryIO | None,
    strategy: str | None,  # noqa: ARG001 - there is one; click refuses any other by name
    balance: str | None,  # noqa: ARG001
    rack_awareness: str | None,
    load_model: BinaryIO | None,
) -> Asked:
    """The request that the options of `plan` and of `explain` describe. A file that is wrong is wrong usage."""
    described = parsed("--cluster", cluster, parse_cluster)
    spec = parsed("--rebalance", rebalance, _read_spec) if rebalance else None
    named = parsed("--topics-to-move-json-file", topics_file, parse_topics_to_move) if topics_file else None
    loads = parsed("--load-model", load_model, parse_load_model).partitions if load_model else {}
    selected = _select(described, spec, named)
    _warn(described, selected)
    sizes = {p.tp: p.size_bytes for p in selected if p.size_bytes is not None}
    sizes = {p.tp: loads[p.tp].size_bytes for p in selected if p.tp in loads} | sizes
    partitions = tuple(PartitionInput(p.tp, p.replicas, size_bytes=sizes.get(p.tp, 0)) for p in selected)
    options = _Options(brokers, decommission, named, rack_awareness)
    request = PlanRequest(
        brokers=described.brokers,
        partitions=partitions,
        targets=_targets(described, spec, options),
        goals=_goals(spec, options),
    )
    return Asked(request, sizes)


def _read_spec(data: bytes) -> KafkaRebalanceSpec:
    try:
        documents = [d for d in yaml.safe_load_all(data) if d is not None]
    except yaml.YAMLError as broken:
        raise ValueError(f"not YAML: {broken}") from broken
    kinds = [str(d.get("kind", "an object without a kind")) if isinstance(d, dict) else "text" for d in documents]
    found = [d for d, kind in zip(documents, kinds, strict=True) if kind == "KafkaRebalance"]
    if len(found) != 1:
        raise ValueError(f"expected one KafkaRebalance, found {', '.join(kinds) or 'nothing'}")
    # A file need not say what only the API server knows.
    metadata = {"name": "", "namespace": "", "uid": "", **(found[0].get("metadata") or {})}
    try:
        spec = parse_rebalance({**found[0], "metadata": metadata, "status": None}).spec
    except Refused as invalid:
        raise ValueError(invalid.message) from invalid
    for at, window in enumerate(spec.execution.windows):
        try:
            check(window.as_rule())
        except ValueError as wrong:
            raise ValueError(f"spec.execution.windows[{at}]: {wrong}") from wrong
    return spec


def _select(
    described: ClusterFile, spec: KafkaRebalanceSpec | None, named: frozenset[str] | None
) -> list[ClusterPartition]:
    topics = {p.tp.topic for p in described.partitions}
    if named is not None:
        if named - topics:
            raise Refused("UnknownTopic", f"the cluster has no topic {', '.join(sorted(named - topics))}")
        topics = set(named)
    elif spec is not None:
        topics = set(TopicFilter.of(spec.topics).select(topics))
    return [p for p in described.partitions if p.tp.topic in topics]


def _warn(described: ClusterFile, selected: list[ClusterPartition]) -> None:
    """What is allowed and still most likely a mistake; on stderr, because stdout is the plan."""
    if not selected:
        topics = len({p.tp.topic for p in described.partitions})
        why = f"has {topics} topics, none of them is asked for" if topics else "holds none"
        click.echo(f"warning: no partition is selected: the cluster file {why}", err=True)
    known = {b.id for b in described.brokers}
    for b in sorted({b for p in selected for b in p.replicas} - known):
        click.echo(f"warning: broker {b} holds replicas but is not in brokers[]: treated as gone", err=True)


def _targets(described: ClusterFile, spec: KafkaRebalanceSpec | None, options: _Options) -> frozenset[BrokerId]:
    include = set(options.brokers or ())
    decommission = set(options.decommission or ())
    if spec is not None and options.brokers is None:
        include = {BrokerId(b) for b in spec.brokers.include}
    if spec is not None and options.decommission is None:
        decommission = {BrokerId(b) for b in spec.brokers.decommission} - set(options.brokers or ())
    holding = {b for p in described.partitions for b in p.replicas}
    return eligible_brokers(described.brokers, include, decommission, holding)


def _goals(spec: KafkaRebalanceSpec | None, options: _Options) -> Goals:
    racks = options.rack_awareness
    if spec is None:
        return Goals(RackAwareness(racks or RackAwareness.ENFORCED))
    goals = spec.goals
    return Goals(RackAwareness(racks or goals.rack_awareness.value), goals.leaders, goals.follower_order)


def _shown(made: Plan, partitions: tuple[PartitionInput, ...]) -> list[PlannedPartition]:
    """The changed partitions, and of ``partitions`` those that stay as they are, sorted."""
    unchanged = {p.tp: PlannedPartition(p.tp, p.replicas, p.replicas) for p in partitions}
    return sorted((unchanged | {p.tp: p for p in made.partitions}).values())


def _document(
    made: Plan, shown: list[PlannedPartition], sizes: Mapping[TopicPartition, int], seconds: float
) -> dict[str, Any]:
    """Kafka's reassignment file, version 1, with our summary beside it."""
    return {
        "version": 1,
        "partitions": [{"topic": p.tp.topic, "partition": p.tp.partition, "replicas": list(p.target)} for p in shown],
        "summary": {
            "replicaMoves": made.replica_moves,
            "lowerBound": made.lower_bound,
            "optimal": made.optimal,
            "leaderMoves": made.leader_moves,
            "partitionsChanged": len(made.partitions),
            "rackViolations": made.rack_violations,
            "dataToMove": made.data_to_move_bytes,
            "sizesUnknown": sum(p.tp not in sizes for p in made.partitions),
            "planningSeconds": round(seconds, 6),
            "hash": made.hash,
        },
    }
