"""kafka-rebalance diff: brokers from the status, partitions from the stored plan."""

import asyncio
import json

import pytest
from tests.unit.cli.commands.resource_runs import HASH, WAITING, body, plan, program, status, world
from tests.unit.cli.commands.status_runs import NOW, UID, tp

from kafka_rebalance.cli.options.resource_lookup import stores
from kafka_rebalance.kube.api_errors import Forbidden
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.topology import replicas_of

PLAN = Plan(
    (
        PlannedPartition(tp(1), replicas_of(1, 2), replicas_of(3, 2), size_bytes=1024),
        PlannedPartition(tp(0), replicas_of(1, 2), replicas_of(2, 1), size_bytes=1024),
        PlannedPartition(tp(2), replicas_of(1, 2), replicas_of(1, 2)),
    ),
    Certificate(1, optimal=True),
)


@pytest.fixture
def kube():
    kube = world(body({}, status(WAITING, plan(PLAN.hash))))
    asyncio.run(stores(kube).plans.save(UID, PLAN.hash, "c", PLAN, NOW))
    return kube


class TestReadable:
    def test_the_table(self, kube):
        """Partitions that the plan leaves as they are do not appear."""
        done = program(kube, "diff", "r")
        assert (done.code, done.err) == (0, "")
        lines = [" ".join(line.split()) for line in done.out.splitlines()]
        assert lines[1] == PLAN.hash
        assert "3 2 0 2.0 KiB 0 B 1 0" in lines
        assert lines[-3:] == [
            "TOPIC-PARTITION CURRENT TARGET NEW REPLICAS TO COPY",
            "t-0 1,2 2,1 - -",
            "t-1 1,2 3,2 3 1.0 KiB",
        ]

    def test_json(self, kube):
        found = json.loads(program(kube, "diff", "r", "-o", "json").out)
        assert found["hash"] == PLAN.hash
        assert found["perBroker"][0]["broker"] == 3
        assert found["changes"][1] == {
            "topic": "t",
            "partition": 1,
            "current": [1, 2],
            "target": [3, 2],
            "sizeBytes": 1024,
        }


class TestNotReadable:
    def test_without_the_right_to_the_records(self, kube):
        """A user who may read the resource can review the plan."""

        async def refused(_name):
            raise Forbidden("configmaps is forbidden")

        kube.get_config_map = refused
        done = program(kube, "diff", "r")
        assert (done.code, done.err) == (0, "partitions are not shown: configmaps is forbidden\n")
        assert "TOPIC-PARTITION" not in done.out
        assert "changes" not in json.loads(program(kube, "diff", "r", "-o", "json").out)

    def test_in_another_namespace(self):
        done = program(world(body({}, status(WAITING))), "diff", "r")
        assert done.code == 0
        assert done.err.startswith(f"partitions are not shown: namespace kafka-rebalance has no plan {HASH}: name ")

    def test_without_a_plan(self):
        done = program(world(body()), "diff", "r")
        assert (done.code, done.out) == (3, "")
        assert done.err == "refused (NoPlan): kafka/r has no plan yet: kafka-rebalance status says why\n"
