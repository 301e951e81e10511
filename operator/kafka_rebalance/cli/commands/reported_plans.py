"""Reports of plans without a run: made now, or read from a file."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, BinaryIO

import click

from kafka_rebalance.cli.commands.plan_command import plan_options
from kafka_rebalance.cli.explain import sentences as words
from kafka_rebalance.cli.files.file_errors import parsed
from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.rate_order import refuse_unordered
from kafka_rebalance.model.cluster_file import parse_cluster
from kafka_rebalance.model.goals import LoadResource, Strategy
from kafka_rebalance.model.json_shapes import decode_object
from kafka_rebalance.model.plan import Certificate, Imbalance, Plan, PlannedPartition, Spread
from kafka_rebalance.model.reassignment_file import parse_reassignment
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.planning import PlanRequest
from kafka_rebalance.planning import plan as make_plan
from kafka_rebalance.planning.explain.accounts import Why
from kafka_rebalance.planning.explain.curve import curve
from kafka_rebalance.planning.explain.explanation import Explanation
from kafka_rebalance.reasons import Reason
from kafka_rebalance.report.load_contents import rates_of
from kafka_rebalance.report.plan_contents import (
    broker_rows,
    copy_flows,
    disks_of,
    partition_rows_of,
    plan_facts_of,
    risks_of,
)
from kafka_rebalance.report.report_contents import BalancePoint, BrokerRow, Fact, Report

_CURVE_POINTS = 9
_CURVE_PARTITIONS = 20_000
"""Each point is a plan of its own."""


def report_of_request(now: datetime, **given: Any) -> Report:
    """Of the plan that `plan` makes with these options, with its explanation."""
    options = plan_options(**given)
    request = options.request
    plan = make_plan(request)
    refuse_unordered(plan)
    explained = Explanation(request, plan)
    lists = {p.tp: p.replicas for p in request.partitions}
    disks = {b: found[LoadResource.DISK] for b, found in request.capacities.items() if LoadResource.DISK in found}
    codes = list(Why)
    leaving: dict[TopicPartition, int] = {}
    for departure in explained.departures:
        leaving.setdefault(departure.tp, codes.index(departure.why))
    rows = broker_rows(plan, request.brokers, lists, options.sizes, request.targets)
    return replace(
        _report_of(plan, rows, options.sizes, disks, now),
        partitions=partition_rows_of(plan, leaving),
        reasons=[words.WHY[code] for code in codes],
        why=words.of_plan(explained),
        curve=_curve(request),
    )


def report_of_file(cluster: BinaryIO, plan_file: BinaryIO, now: datetime) -> Report:
    """The report of a plan file, or of any reassignment file of Kafka. Only a plan file has a certificate."""
    described = parsed("--cluster", cluster, parse_cluster)
    targets, summary = parsed("--plan", plan_file, lambda data: (parse_reassignment(data), _summary(data)))
    known = {p.tp: p for p in described.partitions}
    missing = sorted(tp for tp in targets if tp not in known)
    if missing:
        raise Refused(Reason.UNKNOWN_PARTITION, f"the plan names {missing[0]}, which the cluster file does not have")
    sizes = {p.tp: p.size_bytes for p in described.partitions if p.size_bytes is not None}
    changed = tuple(
        PlannedPartition(tp, known[tp].replicas, target, size_bytes=sizes.get(tp, 0))
        for tp, target in sorted(targets.items())
        if known[tp].replicas != target
    )
    try:
        plan = Plan(
            changed,
            Certificate(int(summary.get("lowerBound", 0)), optimal=bool(summary.get("optimal", False))),
            rack_violations=int(summary.get("rackViolations", 0)),
            before=_spread(summary.get("before")),
            after=_spread(summary.get("after")),
            crowded=tuple(filter(None, map(str, summary.get("warnings") or ()))),
            imbalance=_imbalance(summary.get("imbalance")),
            decommission=tuple(BrokerId(int(broker)) for broker in summary.get("decommission") or ()),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as wrong:
        raise click.BadParameter("summary: it is not that of a plan", param_hint="--plan") from wrong
    rows = broker_rows(plan, described.brokers, {p.tp: p.replicas for p in described.partitions}, sizes)
    report = _report_of(plan, rows, sizes, disks_of(described), now)
    given = str(summary.get("hash", ""))
    if not given or given == plan.hash:
        return report
    return replace(
        report, facts=[*report.facts, Fact("The file was planned for another state of the cluster", given, code=True)]
    )


def _report_of(
    plan: Plan,
    rows: tuple[BrokerRow, ...],
    sizes: Mapping[TopicPartition, int],
    disks: Mapping[BrokerId, int],
    now: datetime,
) -> Report:
    """The report of a plan for a whole cluster. ``rows``: its brokers; ``disks``: sizes in bytes."""
    unknown = sum(p.tp not in sizes for p in plan.partitions)
    return Report(
        title="Plan of a rebalance",
        state="Planned" if plan.partitions else "Nothing to do",
        made_at=now,
        facts=plan_facts_of(plan),
        brokers=rows,
        whole_cluster=True,
        flows=copy_flows(plan.partitions),
        partitions=partition_rows_of(plan, {}),
        risks=risks_of(plan, rows, disks, unknown),
        rates=rates_of(plan.load) if plan.load is not None else {},
    )


def _summary(data: bytes) -> Mapping[str, Any]:
    found = decode_object(data).get("summary") or {}
    if not isinstance(found, dict):
        raise ValueError("summary: it is not an object")
    return found


def _spread(found: Any) -> Spread | None:
    return Spread(int(found["fewest"]), int(found["most"])) if isinstance(found, dict) else None


def _imbalance(found: Any) -> Imbalance | None:
    return Imbalance(int(found["squares"]), int(found["least"])) if isinstance(found, dict) else None


def _curve(request: PlanRequest) -> list[BalancePoint]:
    """The points of `explain --curve`. Empty for plans that cannot have a movement budget, and for large ones."""
    budgeted = request.strategy is Strategy.MINIMAL_MOVEMENT and request.replication_factor is None
    if not budgeted or not request.goals.counts or len(request.partitions) > _CURVE_PARTITIONS:
        return []
    return [BalancePoint(p.moves, p.spread.fewest, p.spread.most, p.data_bytes) for p in curve(request, _CURVE_POINTS)]
