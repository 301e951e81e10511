"""What `status` asks Kafka: the whole batch, and what rates a run has led to. Only reads.

A module of its own, because the clients and the planner take longer to import than everything else that `status` needs.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import click

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.planning_goals import planning_goals
from kafka_rebalance.api.v1alpha1 import KafkaRebalance, parse_rebalance, planning_hash
from kafka_rebalance.cli.options.resource_lookup import ResourceScope, find, reading, stores
from kafka_rebalance.cli.tables.current_batch import Batch, batch_of, direction_of
from kafka_rebalance.cli.tables.measured_rates import rate_peaks, refuse_earlier
from kafka_rebalance.errors import Permanent, RebalanceError, Refused
from kafka_rebalance.execution.partition_status import Direction
from kafka_rebalance.execution.progress import ReplicaBytes
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaReader
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.model.topology import ClusterState
from kafka_rebalance.planning.problem.goal_loads import needs_rates
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.observe.connections import connection_of, resolve
from kafka_rebalance.reconcile.state.record import LoadedRun, load_open_run
from kafka_rebalance.reconcile.state.selection import select


async def measured(kube: KubeObjects, rebalance: KafkaRebalance, model: LoadModel) -> Mapping[LoadResource, int]:
    """The highest use of a broker by resource. Refused where it cannot be compared with the status."""
    metadata, spec = rebalance.metadata, rebalance.spec
    name, records = f"{metadata.namespace}/{metadata.name}", stores(kube)
    run, plan = await records.runs.load(metadata.uid), rebalance.status.plan
    if run is None or run.outcome is not RunOutcome.SUCCEEDED or plan is None or plan.hash != run.plan_hash:
        raise Refused(Reason.NOT_SUCCEEDED, f"{name} has not succeeded: rates are compared after the end of a run")
    if run.planning_hash != planning_hash(spec):
        raise Refused(Reason.NOT_SUCCEEDED, f"the spec of {name} was changed after it succeeded")
    stored = await records.plans.load(run.uid, run.plan_hash)
    if stored is None:
        raise Refused(Reason.STORED_PLAN_MISSING, f"the stored plan of {name} has expired: nothing to compare with")
    goals = planning_goals(spec.goals).load
    if stored.plan.load is None or not needs_rates(goals):
        raise click.UsageError(f"{name} balances no rates: spec.goals.load has no resource but Disk")
    refuse_earlier(model, run)
    async with _kafka_of(kube, rebalance, run) as (admin, _):
        partitions = (await admin.describe_partitions()).or_raise()
    return rate_peaks(stored.plan.load, goals, select(spec, partitions), model)


async def read_batch(scope: ResourceScope, name: str, *, sizes: bool) -> tuple[Batch, ReplicaBytes]:
    """All partitions in flight; with ``sizes`` also the bytes of the replicas being added."""
    async with reading(scope) as kube:
        rebalance = parse_rebalance(await find(kube, scope.namespace, name))
        opened = await _open_run(kube, rebalance)
        if opened is None:
            return Batch(), {}
        try:
            return await _ask_kafka(kube, rebalance, opened, sizes=sizes)
        except RebalanceError as error:
            raise Permanent(
                error.reason,
                f"{error.message} (--batch connects to Kafka from here, with spec.kafka; without --batch only the "
                "resource is read)",
            ) from error


async def _open_run(kube: KubeObjects, rebalance: KafkaRebalance) -> LoadedRun | None:
    records = stores(kube)
    metadata = rebalance.metadata
    run = await records.runs.load(metadata.uid)
    if run is not None:
        return await load_open_run(records, run) if run.open else None
    moving = find_condition(rebalance.status.conditions, ConditionType.REBALANCING)
    if moving is not None and moving.status == "True":
        raise Permanent(
            Reason.RUN_NOT_FOUND,
            f"{metadata.namespace}/{metadata.name} is running, but namespace {kube.namespace} has no record of it: "
            "use --operator-namespace",
        )
    return None


async def _ask_kafka(
    kube: KubeObjects, rebalance: KafkaRebalance, opened: LoadedRun, *, sizes: bool
) -> tuple[Batch, ReplicaBytes]:
    async with _kafka_of(kube, rebalance, opened.run) as (admin, info):
        direction = direction_of(rebalance, opened.run)
        moves = opened.in_direction(opened.origins, back=direction is not Direction.FORWARD).moves
        partitions = (await admin.describe_partitions({move.tp.topic for move in moves})).or_raise()
        cluster = ClusterState(info.cluster_id, info.brokers, partitions)
        replicas = rebalance.spec.execution.parallel_replica_count
        batch = batch_of(moves, cluster, direction, replicas)
        return batch, await _on_disk(admin, batch) if sizes else {}


@asynccontextmanager
async def _kafka_of(
    kube: KubeObjects, rebalance: KafkaRebalance, run: Run
) -> AsyncIterator[tuple[KafkaReader, ClusterInfo]]:
    """A connection to the cluster of the run, and the cluster."""
    kafka, namespace = await connection_of(rebalance.spec.kafka, rebalance.metadata.namespace, kube)
    admin = connect((await resolve(kafka, namespace, kube)).settings)
    try:
        info = await admin.describe_cluster()
        if info.cluster_id != run.cluster_id:
            raise Permanent(
                Reason.OTHER_CLUSTER,
                f"{kafka.bootstrap_servers} connects to cluster {info.cluster_id} from here, but the "
                f"plan is for {run.cluster_id}",
            )
        yield admin, info
    finally:
        await admin.close()


async def _on_disk(admin: KafkaReader, batch: Batch) -> ReplicaBytes:
    """Bytes of the replicas being added; brokers that do not answer are absent."""
    copying = {broker for row in batch.current for broker in row.adding}
    log_dirs = await admin.log_dirs(copying) if copying else {}
    return {
        (tp, broker): size
        for broker, dirs in log_dirs.items()
        for log_dir in dirs
        for tp, size in log_dir.replica_bytes.items()
    }
