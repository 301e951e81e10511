"""Runs the commands that change a resource: the whole program with an API server in memory."""

from unittest.mock import patch

from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.whole_program import run_program
from tests.unit.cli.commands.status_runs import NOW, UID

from kafka_rebalance.api.conditions import ConditionType, ReadySummary, set_condition, summarise
from kafka_rebalance.api.resource_status import BrokerPlanRow, KafkaRebalanceStatus, PlanStatus
from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.reasons import Reason

HASH, OTHER = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
KAFKA = {"bootstrapServers": "kafka:9092"}
WAITING = (ReadySummary.IN_PROGRESS, Reason.AWAITING_APPROVAL)
RUNNING = (ReadySummary.IN_PROGRESS, Reason.REBALANCING)
ENDED = (ReadySummary.DONE, Reason.SUCCEEDED)


def plan(plan_hash=HASH, **more):
    figures = {"partitions": 2, "replica_moves": 2, "lower_bound": 2, "optimal": True, "leader_moves": 1}
    row = BrokerPlanRow(
        broker=3, replicas_in=2, replicas_out=0, bytes_in=2048, bytes_out=0, leaders_in=1, leaders_out=0
    )
    rows = {"per_broker": (row,), "per_broker_count": 1}
    return PlanStatus(hash=plan_hash, data_to_move=2048, **{**figures, **rows, **more})


def status(state=RUNNING, made=None, *, generation=1, **more):
    conditions = summarise((), *state, "as told", generation=generation, now=NOW)
    moving = state is RUNNING
    kind = ConditionType.REBALANCING
    conditions = set_condition(conditions, kind, moving, state[1], "", generation=generation, now=NOW)
    return KafkaRebalanceStatus(
        observed_generation=generation, conditions=conditions, plan=made or plan(), **more
    ).as_patch()["status"]


def body(spec=None, reported=None, *, name="r", namespace="kafka", kind="KafkaRebalance", **metadata):
    about = {"name": name, "namespace": namespace, "uid": UID, "creationTimestamp": "2026-01-01T11:00:00Z", **metadata}
    head = {"apiVersion": "kafkarebalance.dev/v1alpha1", "kind": kind, "metadata": about}
    return {**head, "spec": {"kafka": KAFKA, **(spec or {})}, "status": reported or {}}


def world(*bodies):
    """An API server with these resources."""
    kube = KubeInMemory()
    for found in bodies:
        kube.create(REBALANCES if found["kind"] == "KafkaRebalance" else REASSIGNMENT_THROTTLES, found)
    return kube


def program(kube, *arguments, answer=""):
    """Run the whole program, exit codes included; resources are in namespace kafka unless ``-n`` or ``-A`` is given."""
    where = () if {"-n", "-A"} & set(arguments) else ("-n", "kafka")

    def connect(namespace=None, **_):
        kube.namespace = namespace or kube.namespace
        return kube

    with patch.object(KubeClient, "connect", connect):
        return run_program(*arguments, *where, stdin=answer)


def spec_of(kube, plural=REBALANCES, name="r"):
    return kube.resources[plural, "kafka", name]["spec"]
