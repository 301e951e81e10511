"""kafka-rebalance plan: plan offline from a cluster file (design section 10). Reads files, prints, decides nothing."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any, BinaryIO

import click
import yaml

from kafka_rebalance.api.rebalance import Balance, KafkaRebalanceSpec, Strategy
from kafka_rebalance.api.topics import TopicFilter
from kafka_rebalance.api.v1alpha1 import parse_rebalance
from kafka_rebalance.cli.steps import BrokerList
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.cluster_file import ClusterFile, ClusterPartition, parse_cluster, parse_topics_to_move
from kafka_rebalance.model.load_artifact import parse_load_model
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.topology import BrokerId, Replicas
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest, RackAwareness, eligible_brokers
from kafka_rebalance.planning import plan as make_plan
from kafka_rebalance.units import format_bytes


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
def plan(
    cluster: BinaryIO,
    rebalance: BinaryIO | None,
    brokers: Replicas | None,
    decommission: Replicas | None,
    topics_file: BinaryIO | None,
    strategy: str | None,  # noqa: ARG001 - there is one; click refuses any other by name
    balance: str | None,  # noqa: ARG001
    rack_awareness: str | None,
    load_model: BinaryIO | None,
    everything: bool,
    output: str,
) -> None:
    """Plan the fewest replica moves that balance the cluster; Kafka's reassignment JSON out.

    Options given here win over the resource in --rebalance.
    """
    described = _parse("--cluster", lambda: parse_cluster(cluster.read()))
    spec = _parse("--rebalance", lambda: _read_spec(rebalance.read())) if rebalance else None
    named = (
        _parse("--topics-to-move-json-file", lambda: parse_topics_to_move(topics_file.read())) if topics_file else None
    )
    sizes = parse_load_model(load_model.read()).size_bytes if load_model else lambda _: 0
    selected = _select(described, spec, named)
    partitions = tuple(
        PartitionInput(p.tp, p.replicas, size_bytes=sizes(p.tp) if p.size_bytes is None else p.size_bytes)
        for p in selected
    )
    options = _Options(brokers, decommission, named, rack_awareness)
    request = PlanRequest(
        brokers=described.brokers,
        partitions=partitions,
        targets=_targets(described, spec, options),
        goals=_goals(spec, options),
    )
    started = time.perf_counter()
    made = make_plan(request)
    document = _document(made, partitions if everything else None, time.perf_counter() - started)
    if output == "json":
        click.echo(json.dumps(document))
    elif output == "yaml":
        click.echo(yaml.safe_dump(document, sort_keys=False), nl=False)
    else:
        _print_table(made, request, document["summary"])


def _parse(option: str, read: Any) -> Any:
    """A malformed file is wrong usage: say which option's file, and where in it."""
    try:
        return read()
    except ValueError as wrong:
        raise click.BadParameter(str(wrong), param_hint=option) from wrong


def _read_spec(data: bytes) -> KafkaRebalanceSpec:
    try:
        found = [d for d in yaml.safe_load_all(data) if isinstance(d, dict) and d.get("kind") == "KafkaRebalance"]
    except yaml.YAMLError as broken:
        raise ValueError(f"not YAML: {broken}") from broken
    if len(found) != 1:
        raise ValueError(f"expected one KafkaRebalance, found {len(found)}")
    # A file need not say what only the API server knows.
    metadata = {"name": "", "namespace": "", "uid": "", **(found[0].get("metadata") or {})}
    try:
        return parse_rebalance({**found[0], "metadata": metadata, "status": None}).spec
    except Refused as invalid:
        raise ValueError(invalid.message) from invalid


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


def _document(made: Plan, everything: tuple[PartitionInput, ...] | None, seconds: float) -> dict[str, Any]:
    """Kafka's reassignment file, version 1, with our summary beside it."""
    lists = {p.tp: p.replicas for p in everything or ()} | {p.tp: p.target for p in made.partitions}
    return {
        "version": 1,
        "partitions": [
            {"topic": tp.topic, "partition": tp.partition, "replicas": list(lists[tp])} for tp in sorted(lists)
        ],
        "summary": {
            "replicaMoves": made.replica_moves,
            "lowerBound": made.lower_bound,
            "optimal": made.optimal,
            "leaderMoves": made.leader_moves,
            "partitionsChanged": len(made.partitions),
            "rackViolations": made.rack_violations,
            "dataToMove": made.data_to_move_bytes,
            "planningSeconds": round(seconds, 6),
            "hash": made.hash,
        },
    }


def _print_table(made: Plan, request: PlanRequest, summary: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if made.partitions:
        changes = Table("TOPIC-PARTITION", "CURRENT", "TARGET", "NEW COPIES", box=None)
        for p in made.partitions:
            changes.add_row(str(p.tp), _ids(p.current), _ids(p.target), _ids(p.added))
        console.print(changes, "")
    targets = {p.tp: p.target for p in made.partitions}
    before = [p.replicas for p in request.partitions]
    after = [targets.get(p.tp, p.replicas) for p in request.partitions]
    counts = [Counter(b for row in rows for b in row) for rows in (before, after)]
    leaders = [Counter(row[0] for row in rows) for rows in (before, after)]
    brokers = Table("BROKER", "RACK", "REPLICAS", "LEADERS", box=None)
    racks = {b.id: b.rack for b in request.brokers}
    for b in sorted(racks.keys() | counts[0].keys()):
        replicas, leading = (f"{old[b]} -> {new[b]}" for old, new in (counts, leaders))
        brokers.add_row(str(b), racks.get(b) or "-", replicas, leading)
    proved = "proved the fewest" if made.optimal else f"at least {made.lower_bound} are needed"
    console.print(brokers, "")
    console.print(f"{made.replica_moves} replica moves ({proved}), {format_bytes(made.data_to_move_bytes)} to copy")
    console.print(f"{made.leader_moves} preferred leaders change, {made.rack_violations} rack violations remain")
    console.print(f"planned in {summary['planningSeconds']:.2f} s, {made.hash}", soft_wrap=True)


def _ids(replicas: Replicas) -> str:
    return ",".join(str(b) for b in replicas)
