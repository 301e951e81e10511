"""kafka-rebalance plan: plan offline from a cluster file (design section 10). Reads files, prints, decides nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, BinaryIO

import click

from kafka_rebalance.api.rebalance_spec import GoalsSpec, KafkaRebalanceSpec
from kafka_rebalance.api.topic_patterns import TopicFilter
from kafka_rebalance.cli.commands.steps_command import BrokerList
from kafka_rebalance.cli.files.file_errors import parsed
from kafka_rebalance.cli.files.rebalance_file import read_spec
from kafka_rebalance.cli.tables.console import print_document
from kafka_rebalance.cli.tables.plan_table import print_plan
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.bulk import without_collector
from kafka_rebalance.model.cluster_file import (
    ClusterFile,
    ClusterPartition,
    parse_cluster,
    parse_topics_to_move,
)
from kafka_rebalance.model.goals import Balance, RackAwareness, Strategy
from kafka_rebalance.model.load_artifact import parse_load_model
from kafka_rebalance.model.plan import Plan, PlannedPartition, Spread
from kafka_rebalance.model.reassignment_file import parse_reassignment
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest, eligible_brokers
from kafka_rebalance.planning import plan as make_plan
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.runs.live_planning import planning_goals
from kafka_rebalance.units import parse_quantity


@dataclass(frozen=True, slots=True)
class _Options:
    """What the command line says; None: it does not, so the resource's word or the default counts."""

    brokers: Replicas | None
    decommission: Replicas | None
    rack_awareness: str | None
    strategy: str | None
    balance: str | None
    replication_factor: int | None
    max_replica_moves: int | None
    max_data_to_move: int | None
    minimum_gain: int | None
    pinned: tuple[str, ...]


class _Quantity(click.ParamType[int]):
    """Bytes as a Kubernetes quantity."""

    name = "quantity"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The bytes; a usage error where it is no quantity."""
        try:
            return value if isinstance(value, int) else parse_quantity(value)
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)


@click.command("plan")
@click.option("--cluster", type=click.File("rb"), required=True, help="The cluster as JSON, gzip'd or not; - is stdin.")
@click.option("--rebalance", type=click.File("rb"), help="A KafkaRebalance: its topics, brokers and goals count.")
@click.option("--brokers", "--broker-list", type=BrokerList(), help="Brokers that may hold replicas; else all.")
@click.option("--decommission", type=BrokerList(), help="Brokers that shall hold nothing.")
@click.option("--topics-to-move-json-file", "topics_file", type=click.File("rb"), help="Kafka's file; else all topics.")
@click.option("--strategy", type=click.Choice([s.value for s in Strategy]), help="How targets are chosen.")
@click.option("--balance", type=click.Choice([b.value for b in Balance]), help="Over what replicas are counted.")
@click.option("--rack-awareness", type=click.Choice([r.value for r in RackAwareness]), help="What racks mean.")
@click.option("--replication-factor", type=click.IntRange(1, 32767), help="Replicas of each partition; else as it is.")
@click.option("--assignment-json-file", "assignment", type=click.File("rb"), help="Of --strategy Assignment.")
@click.option("--max-replica-moves", type=click.IntRange(min=0), help="Movement budget: the best plan within it.")
@click.option("--max-data-to-move", type=_Quantity(), help="The same in bytes, like 2Ti.")
@click.option("--minimum-gain", type=click.IntRange(0, 100), help="Percent off the fullest broker; less: no plan.")
@click.option("--pin-topics", multiple=True, help="RE2 expression: these topics stay, and count. May be repeated.")
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
    if output == "table":
        print_plan(made, asked.request, shown, asked.sizes, document["summary"]["planningSeconds"])
    else:
        print_document(document, output)


@dataclass(frozen=True, slots=True)
class PlanOptions:
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
    strategy: str | None,
    balance: str | None,
    rack_awareness: str | None,
    replication_factor: int | None,
    assignment: BinaryIO | None,
    max_replica_moves: int | None,
    max_data_to_move: int | None,
    minimum_gain: int | None,
    pin_topics: tuple[str, ...],
    load_model: BinaryIO | None,
) -> PlanOptions:
    """The request that the options of `plan` and of `explain` describe. A file that is wrong is wrong usage."""
    described = parsed("--cluster", cluster, parse_cluster)
    spec = parsed("--rebalance", rebalance, read_spec) if rebalance else None
    named = parsed("--topics-to-move-json-file", topics_file, parse_topics_to_move) if topics_file else None
    loads = parsed("--load-model", load_model, parse_load_model).partitions if load_model else {}
    selected = _select(described, spec, named)
    _warn(described, selected)
    sizes = {p.tp: p.size_bytes for p in selected if p.size_bytes is not None}
    sizes = {p.tp: loads[p.tp].size_bytes for p in selected if p.tp in loads} | sizes
    budget = (max_replica_moves, max_data_to_move, minimum_gain)
    options = _Options(
        brokers, decommission, rack_awareness, strategy, balance, replication_factor, *budget, pin_topics
    )
    pinned = _pinned({p.tp.topic for p in selected}, spec, options)
    if options.pinned and not pinned:
        click.echo("warning: nothing is pinned: --pin-topics matches no topic", err=True)
    partitions = tuple(
        PartitionInput(p.tp, p.replicas, size_bytes=sizes.get(p.tp, 0), pinned=p.tp.topic in pinned) for p in selected
    )
    lists = parsed("--assignment-json-file", assignment, parse_reassignment) if assignment else None
    request = PlanRequest(
        brokers=described.brokers,
        partitions=partitions,
        targets=_targets(described, spec, options),
        goals=_goals(spec, options),
        strategy=_strategy(spec, options),
        replication_factor=replication_factor or (spec.replication_factor if spec else None),
        assignment=lists or {},
    )
    _check_options(request, given_lists=lists is not None)
    if request.goals.max_data_to_move is not None and (unknown := sorted(p.tp for p in selected if p.tp not in sizes)):
        told = f"the sizes of {len(unknown)} partitions are not known, {unknown[0]} for one"
        raise Refused(Reason.SIZES_UNKNOWN, f"a budget of bytes needs sizes, and {told}: add them, or --load-model")
    return PlanOptions(request, sizes)


def _select(
    described: ClusterFile, spec: KafkaRebalanceSpec | None, named: frozenset[str] | None
) -> list[ClusterPartition]:
    topics = {p.tp.topic for p in described.partitions}
    if named is not None:
        if named - topics:
            raise Refused(Reason.UNKNOWN_TOPIC, f"the cluster has no topic {', '.join(sorted(named - topics))}")
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
    goals = planning_goals(spec.goals if spec else GoalsSpec())
    if options.rack_awareness is not None:
        goals = replace(goals, rack_awareness=RackAwareness(options.rack_awareness))
    if options.balance is not None:
        goals = replace(goals, balance=Balance(options.balance))
    if options.max_replica_moves is not None:
        goals = replace(goals, max_replica_moves=options.max_replica_moves)
    if options.max_data_to_move is not None:
        goals = replace(goals, max_data_to_move=options.max_data_to_move)
    if options.minimum_gain is not None:
        goals = replace(goals, minimum_gain=options.minimum_gain)
    return goals


def _strategy(spec: KafkaRebalanceSpec | None, options: _Options) -> Strategy:
    named = options.strategy or (spec.strategy.value if spec else None)
    return Strategy(named) if named else Strategy.MINIMAL_MOVEMENT


def _pinned(topics: set[str], spec: KafkaRebalanceSpec | None, options: _Options) -> set[str]:
    patterns = options.pinned or (spec.topics.pinned if spec else ())
    try:
        pins = TopicFilter(patterns) if patterns else None
    except ValueError as wrong:
        raise click.BadParameter(str(wrong), param_hint="--pin-topics") from wrong
    return set(pins.select(topics)) if pins is not None else set()


def _check_options(request: PlanRequest, *, given_lists: bool) -> None:
    """What the API server's rules refuse of a resource is wrong usage here."""
    goals, strategy = request.goals, request.strategy
    if given_lists != (strategy is Strategy.ASSIGNMENT):
        raise click.UsageError("--assignment-json-file is needed by --strategy Assignment, and by no other")
    if strategy is Strategy.PREFERRED_LEADERS and request.replication_factor is not None:
        raise click.UsageError("--replication-factor needs copies, and --strategy PreferredLeaders makes none")
    balancing = goals.limited or goals.minimum_gain or goals.balance != Balance.TOTAL
    if strategy is not Strategy.MINIMAL_MOVEMENT and balancing:
        raise click.UsageError(
            "--balance, --max-replica-moves, --max-data-to-move and --minimum-gain are for --strategy MinimalMovement"
        )


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
            "lowerBound": made.certificate.lower_bound,
            "optimal": made.certificate.optimal,
            "leaderMoves": made.leader_moves,
            "partitionsChanged": len(made.partitions),
            "rackViolations": made.rack_violations,
            "dataToMove": made.data_to_move_bytes,
            "sizesUnknown": sum(p.tp not in sizes for p in made.partitions),
            "planningSeconds": round(seconds, 6),
            "hash": made.hash,
            **({"before": _spread(made.before), "after": _spread(made.after)} if made.before and made.after else {}),
            **({"imbalance": asdict(made.imbalance)} if made.imbalance else {}),
            **({"unevenTopics": made.uneven_topics} if made.uneven_topics else {}),
            **({"reason": made.reason} if made.reason else {}),
        },
    }


def _spread(found: Spread) -> dict[str, int]:
    return {"fewest": found.fewest, "most": found.most}
