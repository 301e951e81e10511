"""kafka-rebalance status --load-model: rates measured after a run beside those that its plan predicted."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.load_models import render_parquet
from tests.unit.cli.commands.status_runs import NOW, UID, Kafka, open_run_of, partition, resource, run, tp

from kafka_rebalance.api.resource_status import LoadStatus, PlanStatus, ResourceLoadRow
from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.kube.store import PlanStore, RunStore
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.load_outcome import LoadOutcome, ResourceBalance
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import RunOutcome
from kafka_rebalance.model.topology import replicas_of

RATES = ("LeaderBytesIn", "BytesIn")
PLAN = Plan(
    (PlannedPartition(tp(0), replicas_of(1, 2), replicas_of(2, 1)),),
    Certificate(0, optimal=True),
    load=LoadOutcome(
        tuple(
            ResourceBalance(LoadResource(name), 10, 250.0, 104.0, 1, 0, (60, 60, 60), (90, 45, 45), (62, 59, 59))
            for name in ("Disk", *RATES)
        ),
        0,
        0,
        replicas_of(1, 2, 3),
    ),
)
ENDED = NOW + timedelta(minutes=1)


def goals(*names, **more):
    return {"goals": {"load": {"resources": [{"name": name, **more} for name in names]}}}


SPEC = goals("Disk") | {"topics": {"include": ["t"]}}
SPEC["goals"]["load"]["resources"] += goals(*RATES)["goals"]["load"]["resources"]


def body(spec=None):
    rows = tuple(
        ResourceLoadRow(resource=name, peak_before=250, peak_after=104, outside_before=1, outside_after=0)
        for name in ("Disk", *RATES)
    )
    plan = PlanStatus(
        hash=PLAN.hash,
        partitions=1,
        replica_moves=0,
        lower_bound=0,
        optimal=True,
        leader_moves=1,
        data_to_move=0,
        load=LoadStatus(resources=rows, data_lower_bound=0, gap="1.00"),
    )
    return resource(spec=spec or SPEC, status={"plan": plan.model_dump(mode="json", by_alias=True)})


def kafka():
    """Broker 2 leads both partitions, of 30 and 20 bytes per second, and is the first replica of none."""
    partitions = {tp(0): partition(0, [1, 2], leader=2), tp(1): partition(1, [3, 2], leader=2)}
    return Kafka(partitions | {tp(0, "other"): partition(0, [3], topic="other")})


def stored(made=None, spec=None, **more):
    """An API server with the resource, its run and its plan."""
    kube, about = KubeInMemory(), body(spec)
    kube.resources[REBALANCES, "kafka", "r"] = about
    ended = open_run_of(body(), plan_hash=PLAN.hash, closed_at=ENDED, outcome=RunOutcome.SUCCEEDED, started_at=NOW)
    ended = replace(ended, **more)
    asyncio.run(RunStore(kube).save(ended))
    if made is not False:
        asyncio.run(PlanStore(kube).save(UID, PLAN.hash, "cluster-1", PLAN, NOW))
    return kube


def model(path, start=ENDED, covered=1800.0, cluster_id="cluster-1"):
    loads = {
        at: PartitionLoad(9, rate, rate, rate, covered, bytes_in_p50=rate, bytes_in_p99=rate)
        for at, rate in ((tp(0), 30.0), (tp(1), 20.0), (tp(0, "other"), 500.0))
    }
    found = LoadModel("LoadModel", start + timedelta(minutes=30), loads, cluster_id, start, 30)
    place = path / "load-model.parquet"
    place.write_bytes(render_parquet(found))
    return str(place)


class TestMeasured:
    def test_rates_by_where_replicas_and_leaders_are(self, tmp_path):
        """Leaders: 50 of 50 bytes where 17 are due, 300 %. Replicas: 50 of 100 where 33 are due, 150 %."""
        kube = stored()
        done = run(kube, "r", "-n", "kafka", "--load-model", model(tmp_path), "-o", "json", kafka=kafka())
        assert done.code == 0, done.err
        rows = json.loads(done.out)["plan"]["load"]["resources"]
        assert [(row["resource"], row["peakMeasured"]) for row in rows] == [
            ("Disk", None),
            ("LeaderBytesIn", 300),
            ("BytesIn", 150),
        ]
        table = run(kube, "r", "-n", "kafka", "--load-model", model(tmp_path), kafka=kafka()).out
        assert "fullest broker 250% -> 104% of its share (300% measured afterwards)" in table


class TestRefused:
    @pytest.mark.parametrize(
        ("about", "said"),
        [
            ({"start": ENDED - timedelta(seconds=1)}, "before the end of the run"),
            ({"cluster_id": "other"}, "belongs to cluster other, the run to cluster-1"),
            ({"covered": 60.0}, "2 of 2 partitions (100 %)"),
        ],
    )
    def test_a_model_of_another_time(self, tmp_path, about, said):
        """It is not shown at all: an invented figure would be worse than none."""
        done = run(stored(), "r", "-n", "kafka", "--load-model", model(tmp_path, **about), kafka=kafka())
        assert (done.code, done.out) == (3, "")
        assert said in done.err

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            ({"outcome": None, "closed_at": None}, "has not succeeded"),
            ({"outcome": RunOutcome.UNDONE}, "has not succeeded"),
            ({"plan_hash": "sha256:0"}, "has not succeeded"),
            ({"spec": goals("BytesIn")}, "was changed after it succeeded"),
            ({"made": False}, "has expired"),
        ],
    )
    def test_a_run_that_cannot_be_compared(self, tmp_path, more, said):
        done = run(stored(**more), "r", "-n", "kafka", "--load-model", model(tmp_path), kafka=kafka())
        assert (done.code, done.out) == (3, "")
        assert said in done.err

    def test_not_with_batch(self, tmp_path):
        done = run(stored(), "r", "-n", "kafka", "--batch", "--load-model", model(tmp_path))
        assert done.code == 2
