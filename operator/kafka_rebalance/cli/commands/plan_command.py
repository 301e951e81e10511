"""kafka-rebalance plan: plans offline from a cluster file. Parses the input and prints the result."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, BinaryIO

import click

from kafka_rebalance.api.connection import KafkaSource
from kafka_rebalance.api.fields import compile_re2
from kafka_rebalance.api.planning_goals import planning_goals
from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.api.spec_warnings import rebalance_warnings, unmatched_patterns
from kafka_rebalance.api.topic_patterns import TopicFilter
from kafka_rebalance.cli.commands.steps_command import BROKER_LIST
from kafka_rebalance.cli.files.file_errors import parsed
from kafka_rebalance.cli.files.load_model_file import read_load_model
from kafka_rebalance.cli.files.rebalance_file import read_spec
from kafka_rebalance.cli.options.load_goal_option import load_goal
from kafka_rebalance.cli.options.log_dirs_option import LogDirOptions, drained_log_dir, log_dir_band, log_dir_options
from kafka_rebalance.cli.options.parsed_value import ParsedValue, duration
from kafka_rebalance.cli.tables.console import print_document
from kafka_rebalance.cli.tables.load_table import load_document
from kafka_rebalance.cli.tables.log_dir_table import log_dir_document, log_dirs_row, places_of
from kafka_rebalance.cli.tables.plan_table import print_plan
from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.rate_order import refuse_unordered
from kafka_rebalance.model.bulk import without_collector
from kafka_rebalance.model.cluster_file import ClusterFile, ClusterPartition, parse_cluster, parse_topics_to_move
from kafka_rebalance.model.goals import Balance, LoadGoal, RackAwareness, Strategy
from kafka_rebalance.model.load import PartitionLoad
from kafka_rebalance.model.plan import Plan, PlannedPartition
from kafka_rebalance.model.reassignment_file import parse_reassignment
from kafka_rebalance.model.repeated import repeated
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition, replicas_of
from kafka_rebalance.planning import PartitionInput, PlanRequest, eligible_brokers
from kafka_rebalance.planning import plan as make_plan
from kafka_rebalance.planning.log_dirs import DirPlan
from kafka_rebalance.planning.problem.goal_loads import with_loads
from kafka_rebalance.printable_text import printable
from kafka_rebalance.reasons import Reason
from kafka_rebalance.units import parse_quantity

OF_OUTPUT = frozenset(("everything", "output", "durations", "finish_within"))
"""Options that say what is printed of a plan; all others define it."""
_NO_SPEC = KafkaRebalanceSpec(kafka=KafkaSource(bootstrap_servers="unused:9092"))
"""Without --rebalance, its defaults apply."""


@click.command("plan")
@click.option(
    "--cluster",
    type=click.File("rb"),
    required=True,
    help="Cluster file (JSON, may be gzipped) from snapshot; - is stdin.",
)
@click.option("--rebalance", type=click.File("rb"), help="KafkaRebalance file with topics, brokers and goals.")
@click.option("--brokers", "--broker-list", type=BROKER_LIST, help="Brokers that may hold replicas. [default: all]")
@click.option("--decommission", type=BROKER_LIST, help="Brokers to drain.")
@click.option(
    "--topics-to-move-json-file",
    "topics_file",
    type=click.File("rb"),
    help="Topics to rebalance, in Kafka's format. [default: all]",
)
@click.option("--strategy", type=click.Choice([s.value for s in Strategy]), help="How targets are chosen.")
@click.option(
    "--balance",
    type=click.Choice([b.value for b in Balance]),
    help="What is balanced: replicas in total, per topic, or both.",
)
@click.option(
    "--rack-awareness",
    type=click.Choice([r.value for r in RackAwareness]),
    help="How strictly replicas are spread over racks.",
)
@click.option(
    "--replication-factor", type=click.IntRange(1, 32767), help="New replication factor. [default: unchanged]"
)
@click.option(
    "--assignment-json-file", "assignment", type=click.File("rb"), help="Target assignment for --strategy Assignment."
)
@click.option(
    "--load",
    type=ParsedValue("resource", load_goal),
    multiple=True,
    help="Resource whose use is balanced, for example Disk or BytesIn,band=5%. May be repeated, in order of priority.",
)
@click.option(
    "--counts/--no-counts", default=None, help="With --no-counts, only --load is balanced, and replica counts are free."
)
@click.option(
    "--max-replica-moves", type=click.IntRange(min=0), help="Movement budget: maximum number of replica moves."
)
@click.option(
    "--max-data-to-move",
    type=ParsedValue("quantity", parse_quantity),
    help="Movement budget in bytes, for example 2Ti.",
)
@click.option("--minimum-gain", type=click.IntRange(0, 100), help="Minimum reduction of the fullest broker in percent.")
@click.option("--pin-topics", multiple=True, help="RE2 expression for topics that must not move. May be repeated.")
@click.option(
    "--log-dirs",
    "log_dir_band",
    type=ParsedValue("percentage", log_dir_band),
    help="Band of the log dirs of each broker by bytes, for example 10%.",
)
@click.option(
    "--drain-log-dir",
    "drained_log_dirs",
    type=ParsedValue("broker:path", drained_log_dir),
    multiple=True,
    help="Log dir to be emptied, for example 3:/data/2. May be repeated.",
)
@click.option("--load-model", metavar="FILE", help="Load model, a file or s3:// URI, with rates and missing sizes.")
@click.option("--durations", metavar="FILE", help="Duration model, a file or s3:// URI: prints the ETA of the plan.")
@click.option(
    "--finish-within",
    type=duration(minimum=1),
    help="With --durations: prints the lowest throttle with which the plan ends in this time, for example 8h.",
)
@click.option("--all", "everything", is_flag=True, help="Print unchanged partitions too.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
@without_collector()
def plan(*, everything: bool, output: str, durations: str | None, finish_within: int | None, **given: Any) -> None:
    """Plan the fewest replica moves that balance a cluster, and print Kafka's reassignment JSON.

    Options override the resource of --rebalance.
    """
    if finish_within is not None and durations is None:
        raise click.UsageError("--finish-within requires --durations, which `pipeline history` makes")
    options = plan_options(**given)
    found = planned(options, everything=everything)
    summary = found.document["summary"]
    sentences: list[str] = []
    if durations is not None:
        from kafka_rebalance.cli.options.duration_options import duration_sentences, expected_duration

        summary |= expected_duration(found.made, options.sizes, options.spec, durations, finish_within)
        sentences = list(duration_sentences(summary))
    if output == "table":
        seconds = summary["planningSeconds"]
        print_plan(found.made, options.request, found.shown, options.sizes, seconds, found.dir_plans)
        for sentence in sentences:
            click.echo(sentence)
    else:
        print_document(found.document, output)


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """The request from files and options. ``sizes`` (bytes) lacks partitions of unknown size."""

    request: PlanRequest
    sizes: Mapping[TopicPartition, int]
    spec: KafkaRebalanceSpec
    log_dirs: LogDirOptions | None = None

    def log_dir_plans(self, made: Plan) -> tuple[DirPlan, ...]:
        """What moves between log dirs with this plan; nothing without --log-dirs and goals.logDirs."""
        return self.log_dirs.plans(self.request, made, self.sizes) if self.log_dirs is not None else ()


def plan_options(
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
    load: tuple[LoadGoal, ...],
    counts: bool | None,
    max_replica_moves: int | None,
    max_data_to_move: int | None,
    minimum_gain: int | None,
    pin_topics: tuple[str, ...],
    log_dir_band: int | None,
    drained_log_dirs: tuple[tuple[BrokerId, str], ...],
    load_model: str | None,
) -> PlanOptions:
    """The request from the options of `plan` and `explain`. An invalid file is wrong usage."""
    described = parsed("--cluster", cluster, parse_cluster)
    spec = parsed("--rebalance", rebalance, read_spec) if rebalance else _NO_SPEC
    named = parsed("--topics-to-move-json-file", topics_file, parse_topics_to_move) if topics_file else None
    model = read_load_model(load_model) if load_model else None
    loads: Mapping[TopicPartition, PartitionLoad] = model.partitions if model is not None else {}
    selected = _select(described, spec, named)
    _warn(described, selected, spec if named is None else None)
    sizes = {p.tp: p.size_bytes for p in selected if p.size_bytes is not None}
    sizes = {p.tp: loads[p.tp].size_bytes for p in selected if p.tp in loads} | sizes
    pinned = _pinned({p.tp.topic for p in selected}, pin_topics or spec.topics.pinned)
    if pin_topics and not pinned:
        click.echo("warning: no topic is pinned: --pin-topics matches none", err=True)
    partitions = tuple(
        PartitionInput(p.tp, p.replicas, size_bytes=sizes.get(p.tp, 0), pinned=p.tp.topic in pinned) for p in selected
    )
    lists = parsed("--assignment-json-file", assignment, parse_reassignment) if assignment else None
    goals = {
        "rack_awareness": RackAwareness(rack_awareness) if rack_awareness else None,
        "balance": Balance(balance) if balance else None,
        "load": load or None,
        "counts": counts,
        "max_replica_moves": max_replica_moves,
        "max_data_to_move": max_data_to_move,
        "minimum_gain": minimum_gain,
    }
    given: dict[str, Any] = {name: value for name, value in goals.items() if value is not None}
    chosen = replace(planning_goals(spec.goals), **given)
    leaving = _leaving(spec, brokers, decommission)
    request = PlanRequest(
        brokers=described.brokers,
        partitions=with_loads(partitions, chosen.load, model),
        targets=_targets(described, spec, brokers, leaving),
        goals=chosen,
        strategy=Strategy(strategy) if strategy else spec.strategy,
        replication_factor=replication_factor or spec.replication_factor,
        assignment=lists or {},
        capacities={broker: capacity.by_resource() for broker, capacity in described.capacities.items()},
        decommission=frozenset(leaving),
    )
    _check_options(request, given_lists=lists is not None, leaving=leaving)
    if request.goals.max_data_to_move is not None and (unknown := sorted(p.tp for p in selected if p.tp not in sizes)):
        missing = f"the sizes of {len(unknown)} partitions are unknown, for example {unknown[0]}"
        needed = "a movement budget in bytes requires sizes"
        raise Refused(Reason.SIZES_UNKNOWN, f"{needed}, and {missing}: add them, or use --load-model")
    log_dirs = log_dir_options(described, spec.goals.log_dirs, log_dir_band, drained_log_dirs)
    for warning in log_dirs.warnings(request) if log_dirs is not None else ():
        click.echo(printable(f"warning: {warning}"), err=True)
    if request.strategy is Strategy.LOG_DIRS and log_dirs is None:
        raise click.UsageError("--strategy LogDirs requires --log-dirs, or goals.logDirs in the file of --rebalance")
    return PlanOptions(request, sizes, spec, log_dirs)


@dataclass(frozen=True, slots=True)
class MadePlan:
    """The plan, the partitions to show, what moves between log dirs, and all as the document that ``plan -o json``
    prints."""

    made: Plan
    shown: Sequence[PlannedPartition]
    dir_plans: Sequence[DirPlan]
    document: dict[str, Any]


def planned(options: PlanOptions, *, everything: bool) -> MadePlan:
    """Make the plan."""
    started = time.perf_counter()
    made = make_plan(options.request)
    refuse_unordered(made)
    dir_plans = options.log_dir_plans(made)
    for warning in made.crowded:
        click.echo(printable(f"warning: {warning}"), err=True)
    shown = _shown(made, options.request, dir_plans, everything=everything)
    document = _document(made, shown, options.sizes, time.perf_counter() - started, dir_plans)
    return MadePlan(made, shown, dir_plans, document)


def _select(described: ClusterFile, spec: KafkaRebalanceSpec, named: frozenset[str] | None) -> list[ClusterPartition]:
    topics = {p.tp.topic for p in described.partitions}
    if named is not None and named - topics:
        raise Refused(Reason.UNKNOWN_TOPIC, f"the cluster has no topic {', '.join(sorted(named - topics))}")
    chosen = named if named is not None else set(TopicFilter.of(spec.topics).select(topics))
    return [p for p in described.partitions if p.tp.topic in chosen]


def _warn(described: ClusterFile, selected: list[ClusterPartition], spec: KafkaRebalanceSpec | None) -> None:
    """Warn on stderr about input that is valid but probably a mistake."""
    if spec is not None:
        texts = [text for _, text in rebalance_warnings(spec)]
        for text in (*texts, *unmatched_patterns(spec.topics, {p.tp.topic for p in described.partitions})):
            click.echo(printable(f"warning: {text}"), err=True)
    if not selected:
        topics = len({p.tp.topic for p in described.partitions})
        why = f"has {topics} topics, and none of them is selected" if topics else "holds none"
        click.echo(f"warning: no partition is selected: the cluster file {why}", err=True)
    known = {b.id for b in described.brokers}
    for b in sorted({b for p in selected for b in p.replicas} - known):
        click.echo(f"warning: broker {b} holds replicas but is not in brokers[]: treated as removed", err=True)


def _leaving(spec: KafkaRebalanceSpec, brokers: Replicas | None, decommission: Replicas | None) -> Replicas:
    """The brokers to be drained."""
    if decommission is not None:
        return decommission
    return tuple(b for b in replicas_of(*spec.brokers.decommission) if b not in (brokers or ()))


def _targets(
    described: ClusterFile, spec: KafkaRebalanceSpec, brokers: Replicas | None, leaving: Replicas
) -> frozenset[BrokerId]:
    include = replicas_of(*spec.brokers.include) if brokers is None else brokers
    holding = {b for p in described.partitions for b in p.replicas}
    return eligible_brokers(described.brokers, include, leaving, holding)


def _pinned(topics: set[str], patterns: Sequence[str]) -> set[str]:
    try:
        for pattern in patterns:
            compile_re2(pattern)
    except ValueError as wrong:
        raise click.BadParameter(str(wrong), param_hint="--pin-topics") from wrong
    return set(TopicFilter(patterns).select(topics)) if patterns else set()


def _check_options(request: PlanRequest, *, given_lists: bool, leaving: Replicas) -> None:
    """Check the rules over several fields, which the CRD has as CEL rules."""
    goals, strategy = request.goals, request.strategy
    if given_lists != (strategy is Strategy.ASSIGNMENT):
        raise click.UsageError(
            "--assignment-json-file is required with --strategy Assignment and not allowed with others"
        )
    if strategy is Strategy.PREFERRED_LEADERS and request.replication_factor is not None:
        raise click.UsageError(
            "--replication-factor is not allowed with --strategy PreferredLeaders, which copies nothing"
        )
    if strategy is Strategy.LOG_DIRS and request.replication_factor is not None:
        raise click.UsageError("--replication-factor is not allowed with --strategy LogDirs, which leaves lists alone")
    if strategy is Strategy.LOG_DIRS and leaving:
        raise click.UsageError("--decommission is not allowed with --strategy LogDirs, which leaves lists alone")
    if (twice := repeated(goal.resource for goal in goals.load)) is not None:
        raise click.UsageError(f"--load names a resource twice: {twice}")
    if not goals.counts and (not goals.load or goals.minimum_gain or goals.balance != Balance.TOTAL):
        raise click.UsageError(
            "--no-counts requires --load, and is not allowed with --minimum-gain or a --balance other than Total"
        )
    balancing = goals.limited or goals.minimum_gain or goals.balance != Balance.TOTAL or goals.load
    if strategy is not Strategy.MINIMAL_MOVEMENT and balancing:
        raise click.UsageError(
            "--balance, --load, --max-replica-moves, --max-data-to-move and --minimum-gain require "
            "--strategy MinimalMovement"
        )


def _shown(
    made: Plan, request: PlanRequest, dir_plans: Sequence[DirPlan], *, everything: bool
) -> list[PlannedPartition]:
    """The changed partitions, those with a replica that only changes its log dir, or all; sorted."""
    moved = {move.tp for found in dir_plans for move in found.moves}
    others = (p for p in request.partitions if everything or p.tp in moved)
    unchanged = {p.tp: PlannedPartition(p.tp, p.replicas, p.replicas) for p in others}
    return sorted((unchanged | {p.tp: p for p in made.partitions}).values())


def _document(
    made: Plan,
    shown: list[PlannedPartition],
    sizes: Mapping[TopicPartition, int],
    seconds: float,
    dir_plans: Sequence[DirPlan],
) -> dict[str, Any]:
    """Kafka's reassignment file, version 1, with our summary."""
    places = places_of(dir_plans)
    return {
        "version": 1,
        "partitions": [
            {"topic": p.tp.topic, "partition": p.tp.partition, "replicas": list(p.target), **log_dirs_row(p, places)}
            for p in shown
        ],
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
            **({"decommission": list(made.decommission)} if made.decommission else {}),
            **({"before": asdict(made.before), "after": asdict(made.after)} if made.before and made.after else {}),
            **({"imbalance": asdict(made.imbalance)} if made.imbalance else {}),
            **({"load": load_document(made.load)} if made.load else {}),
            **({"logDirs": log_dir_document(dir_plans)} if dir_plans else {}),
            **({"unevenTopics": made.uneven_topics} if made.uneven_topics else {}),
            **({"reason": made.reason} if made.reason else {}),
            **({"warnings": list(made.crowded)} if made.crowded else {}),
        },
    }
