"""The report of a KafkaRebalance: planned, running or finished. Pure.

The effects of a plan are computed once (`PlanContents`), because plans are large and never change. Only the status
changes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from kafka_rebalance.api.resource_status import KafkaRebalanceStatus
from kafka_rebalance.api.v1alpha1 import KafkaRebalance
from kafka_rebalance.model.cluster_file import ClusterFile
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.run_record import RunRecord
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.report.ready_state import ready_reason
from kafka_rebalance.report.load_contents import load_facts_of_status, rates_of
from kafka_rebalance.report.plan_contents import (
    broker_rows,
    copy_flows,
    disks_of,
    partition_rows_of,
    plan_facts_of,
    risks_of,
)
from kafka_rebalance.report.report_contents import BeforeAfter, BrokerRow, CopyFlow, Fact, PartitionRow, Report
from kafka_rebalance.report.run_contents import course_of, moved_back, next_command, run_facts
from kafka_rebalance.units import format_bytes

NO_CLUSTER = ClusterFile((), ())


@dataclass(frozen=True, slots=True)
class PlanContents:
    """The contents of a report that depend only on the plan. ``whole_cluster``: as in `Report`."""

    facts: Sequence[Fact]
    brokers: tuple[BrokerRow, ...]
    whole_cluster: bool
    flows: tuple[CopyFlow, ...]
    partitions: tuple[PartitionRow, ...]
    risks: Sequence[str]
    rates: Mapping[str, Mapping[BrokerId, BeforeAfter]] = field(default_factory=dict)


def contents_of(plan: Plan, described: ClusterFile = NO_CLUSTER) -> PlanContents:
    """``described`` adds the replicas that do not move."""
    sizes = {p.tp: p.size_bytes for p in described.partitions if p.size_bytes is not None}
    lists = {p.tp: p.replicas for p in described.partitions}
    rows = broker_rows(plan, described.brokers, lists, sizes)
    unknown = sum(not p.size_bytes for p in plan.partitions if p.added)
    return PlanContents(
        facts=plan_facts_of(plan),
        brokers=rows,
        whole_cluster=bool(described.partitions),
        flows=copy_flows(plan.partitions),
        partitions=partition_rows_of(plan, {}),
        risks=risks_of(plan, rows, disks_of(described) if lists else {}, unknown),
        rates=rates_of(plan.load) if plan.load is not None else {},
    )


def report_of(
    rebalance: KafkaRebalance,
    plan: PlanContents | None,
    now: datetime,
    *,
    options: str = "",
    record: RunRecord | None = None,
) -> Report:
    """``plan`` None: it is not known, and the report shows the figures of the status. ``record``: the steps.

    ``options`` of commands say where the resource is; by default, in its namespace.
    """
    metadata, status = rebalance.metadata, rebalance.status
    leaving = rebalance.spec.brokers.decommission
    ready = ready_reason(status)
    facts = [Fact("Kafka cluster", status.cluster_id)] if status.cluster_id else []
    return Report(
        title=f"KafkaRebalance {metadata.namespace}/{metadata.name}",
        state=ready[0] if ready is not None else "Not seen by an operator yet",
        made_at=now,
        facts=[*facts, *run_facts(status), *(plan.facts if plan is not None else _plan_of_status(status))],
        brokers=[
            replace(row, target=row.broker not in leaving)
            for row in (plan.brokers if plan is not None else _of_status(status))
        ],
        whole_cluster=plan is not None and plan.whole_cluster,
        flows=plan.flows if plan is not None else (),
        partitions=plan.partitions if plan is not None else None,
        risks=plan.risks if plan is not None else (),
        command=next_command(metadata.name, options or f"-n {metadata.namespace}", status),
        moved_back=moved_back(status),
        course=course_of(status, record),
        rates=plan.rates if plan is not None else {},
    )


def _of_status(status: KafkaRebalanceStatus) -> list[BrokerRow]:
    """The changes of the brokers in the status, at most twenty."""
    rows = status.plan.per_broker if status.plan is not None else ()
    return [
        BrokerRow(
            BrokerId(row.broker),
            None,
            target=True,
            replicas=BeforeAfter(row.replicas_out, row.replicas_in),
            leaders=BeforeAfter(row.leaders_out, row.leaders_in),
            size_bytes=BeforeAfter(row.bytes_out, row.bytes_in),
        )
        for row in sorted(rows, key=lambda row: row.broker)
    ]


def _plan_of_status(status: KafkaRebalanceStatus) -> list[Fact]:
    plan = status.plan
    if plan is None:
        return []
    return [
        Fact("Replica moves", str(plan.replica_moves)),
        Fact("Data to copy", format_bytes(plan.data_to_move)),
        Fact("Partitions that change", str(plan.partitions)),
        *(load_facts_of_status(plan.load) if plan.load is not None else ()),
        Fact("Plan", plan.hash, code=True),
    ]
