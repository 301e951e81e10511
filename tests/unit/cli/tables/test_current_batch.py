"""kafka-rebalance status --batch: KIP-435's complete current batch."""

import asyncio
import json
from dataclasses import replace

import pytest
import yaml
from tests.fakes.kube_in_memory import KubeInMemory
from tests.unit.cli.commands.status_runs import NOW, UID, Kafka, open_run_of, partition, resource, run, tp

from kafka_rebalance.api.conditions import ConditionType, set_condition
from kafka_rebalance.api.resource_status import KafkaRebalanceStatus
from kafka_rebalance.api.v1alpha1 import REBALANCES, parse_rebalance
from kafka_rebalance.cli.options.resource_lookup import stores
from kafka_rebalance.cli.tables.batch_table import print_batch
from kafka_rebalance.cli.tables.current_batch import Batch, batch_of, direction_of, response
from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin, RunOutcome
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, replicas_of

PASSWORD = "correct horse battery staple"


def errand(number, origin, target, *, planned_from=None, topic="t", size=1000):
    was = planned_from if planned_from is not None else origin
    return PartitionMove(tp(number, topic), "", replicas_of(*origin), replicas_of(*was), replicas_of(*target), size)


def cluster(*partitions, brokers=range(10)):
    live = {BrokerId(b): Broker(BrokerId(b)) for b in brokers}
    return ClusterState("c", live, {state.tp: state for state in partitions})


def found(errands, *partitions, direction=Direction.FORWARD, brokers=range(10)):
    return batch_of(errands, cluster(*partitions, brokers=brokers), direction, 1)


class TestBatch:
    """KIP-435: ongoing reassignments are all partitions not at their final target; the batch is what moves now."""

    def test_the_kips_own_example(self):
        """(0,1,2,3,4) -> (5,6,7,8,9): the first step adds 5 in front. The copy does not count as assigned yet."""
        seen = found([errand(0, range(5), range(5, 10))], partition(0, [5, 0, 1, 2, 3, 4], adding=[5]))
        assert response(seen) == {
            "throttleTimeMs": 0,
            "errorCode": 0,
            "errorMessage": None,
            "topics": [
                {
                    "name": "t",
                    "partitions": [
                        {"partitionId": 0, "currentBrokers": [0, 1, 2, 3, 4], "targetBrokers": [5, 6, 7, 8, 9]}
                    ],
                }
            ],
            "currentTopicReassignmentBatch": [
                {
                    "name": "t",
                    "partitions": [
                        {"partitionId": 0, "currentBrokers": [0, 1, 2, 3, 4], "targetBrokers": [5, 0, 1, 2, 3, 4]}
                    ],
                }
            ],
        }

    def test_what_kafka_removes_is_not_in_the_steps_list(self):
        """A step's list is the one that Kafka is moving the partition to."""
        seen = found([errand(0, [1, 2], [3, 2])], partition(0, [3, 1, 2], adding=[3], removing=[1]))
        assert seen.current[0].step == (3, 2)

    def test_what_waits_is_ongoing_and_what_is_done_is_neither(self):
        errands = [errand(n, [1, 2], [3, 2]) for n in range(3)]
        seen = found(errands, partition(0, [1, 2]), partition(1, [3, 1, 2], adding=[3]), partition(2, [3, 2]))
        assert [row.tp.partition for row in seen.ongoing] == [0, 1]
        assert [row.tp.partition for row in seen.current] == [1]
        assert seen.planned == 3

    def test_a_partition_that_only_lacks_its_leader_is_at_its_target(self):
        """An election is not a reassignment."""
        assert found([errand(0, [1, 2], [2, 1])], partition(0, [2, 1], leader=1)).ongoing == ()

    def test_topics_are_grouped_and_sorted(self):
        errands = [errand(n, [1], [2], topic=topic) for n, topic in ((1, "b"), (0, "b"), (0, "a"))]
        states = [partition(n, [2, 1], adding=[2], topic=topic) for n, topic in ((1, "b"), (0, "b"), (0, "a"))]
        topics = response(found(errands, *states))["currentTopicReassignmentBatch"]
        shape = [(topic["name"], [row["partitionId"] for row in topic["partitions"]]) for topic in topics]
        assert shape == [("a", [0]), ("b", [0, 1])]

    def test_in_a_rollback_the_targets_are_the_origins(self):
        """The origins of the run, even after a plan was superseded half way; a partition that is back is done."""
        errands = [errand(0, [1, 2], [3, 2], planned_from=[4, 2]), errand(1, [1, 2], [3, 2])]
        states = [partition(0, [4, 2, 1], adding=[1]), partition(1, [1, 2])]
        seen = found(errands, *states, direction=Direction.ROLLBACK)
        assert [(row.tp.partition, row.target, row.step) for row in seen.ongoing] == [(0, (1, 2), (4, 2, 1))]

    def test_a_rollback_waits_for_a_broker_that_may_be_restarting(self):
        """A single reading does not show how long a broker has been down, so the partition is not given up here."""
        seen = found([errand(0, [1, 2], [3, 2])], partition(0, [3, 2]), direction=Direction.ROLLBACK, brokers=[2, 3])
        assert [row.target for row in seen.ongoing] == [(1, 2)]

    def test_a_revert_leaves_what_is_complete(self):
        errands = [errand(n, [1, 2], [3, 2]) for n in range(2)]
        states = [partition(0, [3, 2]), partition(1, [3, 1, 2], adding=[3])]
        seen = found(errands, *states, direction=Direction.REVERT)
        assert [(row.tp.partition, row.target) for row in seen.ongoing] == [(1, (1, 2))]

    def test_what_is_left_alone_is_not_listed(self):
        """Drifted or re-created partitions no longer belong to the plan."""
        of_old_topic = replace(errand(1, [1, 2], [3, 2]), topic_id="old")
        drifted, recreated = partition(0, [7, 8]), partition(1, [1, 2], topic_id="new")
        assert found([errand(0, [1, 2], [3, 2]), of_old_topic], drifted, recreated).ongoing == ()

    def test_somebody_elses_reassignment_is_told_apart(self):
        seen = found([errand(0, [1, 2], [3, 2])], partition(0, [7, 1, 2], adding=[7]))
        assert (seen.ongoing, seen.foreign) == ((), (tp(0),))

    def test_a_partition_that_no_broker_told_about_is_not_called_done(self):
        seen = found([errand(0, [1, 2], [3, 2])])
        assert (seen.ongoing, seen.unreported) == ((), (tp(0),))


class TestHeading:
    """The direction of the run, derived from the resource and its run."""

    @pytest.mark.parametrize(
        ("metadata", "spec", "run", "direction"),
        [
            ({}, {}, {}, Direction.FORWARD),
            ({}, {}, {"undo": True}, Direction.ROLLBACK),
            ({}, {"brokers": {"include": [1]}}, {}, Direction.REVERT),
            ({}, {"brokers": {"include": [1]}}, {"undo": True}, Direction.REVERT),
            ({"deletionTimestamp": "2026-01-01T12:00:00Z"}, {}, {}, Direction.ROLLBACK),
            ({"deletionTimestamp": "2026-01-01T12:00:00Z"}, {"deletionPolicy": "Revert"}, {}, Direction.REVERT),
            ({"deletionTimestamp": "2026-01-01T12:00:00Z"}, {"deletionPolicy": "Abandon"}, {}, Direction.FORWARD),
        ],
        ids=["running", "undo", "superseded", "undo superseded", "deleted", "revert", "abandon"],
    )
    def test_direction(self, metadata, spec, run, direction):
        body = resource(metadata=metadata, spec=spec)
        assert direction_of(parse_rebalance(body), replace(open_run_of(resource()), **run)) is direction


MANY = 25
"""Partitions in flight, more than a status lists."""


def running(*, body=None, run_of=open_run_of, outcome=None):
    """A resource whose run has all its partitions in flight, its records, and its cluster."""
    kube = KubeInMemory()
    body = body or resource()
    kube.resources[REBALANCES, "kafka", "r"] = body
    plan = Plan(
        tuple(PlannedPartition(tp(n), replicas_of(1, 2), replicas_of(3, 2), size_bytes=1000) for n in range(MANY)),
        Certificate(MANY, optimal=True),
    )
    ended = {"closed_at": NOW, "outcome": outcome} if outcome else {}

    async def save():
        records = stores(kube)
        await records.plans.save(UID, plan.hash, "cluster-1", plan, NOW)
        await records.origins.append(UID, "run-1", [Origin(p.tp, p.topic_id, p.current) for p in plan.partitions])
        await records.runs.save(run_of(body, plan.hash, **ended))

    asyncio.run(save())
    kube.writes.clear()
    return kube, Kafka({tp(n): partition(n, [3, 1, 2], adding=[3]) for n in range(MANY)})


class TestBatchCommand:
    """The stored plan compared with Kafka's present listing."""

    def test_every_partition_in_flight_is_there(self):
        """A status has 20 rows; this output has all of them, in both arrays, and nothing is written."""
        kube, kafka = running()
        done = run(kube, "r", "-n", "kafka", "--batch", "-o", "json", kafka=kafka)
        assert (done.code, done.err) == (0, "")
        document = json.loads(done.out)
        for array, target in (("topics", [3, 2]), ("currentTopicReassignmentBatch", [3, 1, 2])):
            (topic,) = document[array]
            assert topic["partitions"] == [
                {"partitionId": n, "currentBrokers": [1, 2], "targetBrokers": target} for n in range(MANY)
            ]
        assert kube.writes == []
        assert kube.closed
        assert kafka.closed

    def test_yaml_says_the_same(self):
        kube, kafka = running()
        as_json = run(kube, "r", "-n", "kafka", "--batch", "-o", "json", kafka=kafka)
        as_yaml = run(kube, "r", "-n", "kafka", "--batch", "-o", "yaml", kafka=kafka)
        assert yaml.safe_load(as_yaml.out) == json.loads(as_json.out)

    def test_the_table_has_the_bytes_left(self):
        kube, kafka = running()
        done = run(kube, "r", "-n", "kafka", "--batch", kafka=kafka)
        lines = [line.split() for line in done.out.splitlines()]
        assert ["t-24", "1,2", "3,1,2", "3,2", "3", "600", "B"] in lines
        assert "25 partitions in flight; 25 of 25 partitions of the plan are not at their targets" in done.out

    @pytest.mark.parametrize("outcome", [RunOutcome.SUCCEEDED, RunOutcome.UNDONE, None])
    def test_without_an_open_run_the_batch_is_empty(self, outcome):
        """Kafka is not contacted at all."""
        kube, _ = running(outcome=outcome) if outcome else (KubeInMemory(), None)
        kube.resources[REBALANCES, "kafka", "r"] = resource()
        done = run(kube, "r", "-n", "kafka", "--batch", "-o", "json")
        assert (done.code, done.err) == (0, "")
        document = json.loads(done.out)
        assert (document["topics"], document["currentTopicReassignmentBatch"]) == ([], [])
        assert run(kube, "r", "-n", "kafka", "--batch").out == "no run is open: nothing is in flight\n"

    def test_kafka_out_of_reach(self):
        """Exit 1 with the request, the reason and the alternative without Kafka; stdout has nothing like a batch."""
        kube, kafka = running()
        kafka.failure = Transient("KafkaUnreachable", "No answer from Kafka at kafka:9092 to describe the cluster")
        done = run(kube, "r", "-n", "kafka", "--batch", "-o", "json", kafka=kafka)
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("failed (KafkaUnreachable): No answer from Kafka at kafka:9092")
        assert "without --batch only the resource is read" in done.err
        assert kafka.closed

    def test_another_cluster_at_the_same_address(self):
        """A port that is forwarded to another cluster must not answer for the cluster of the plan."""
        kube, kafka = running()
        kafka.cluster_id = "cluster-2"
        done = run(kube, "r", "-n", "kafka", "--batch", kafka=kafka)
        assert (done.code, done.out) == (1, "")
        assert "cluster-2" in done.err
        assert "cluster-1" in done.err

    def test_a_running_resource_without_records_is_not_called_empty(self):
        """Most likely the operator keeps its records in another namespace."""
        moving = set_condition((), ConditionType.REBALANCING, True, "Rebalancing", "", generation=1, now=NOW)
        status = KafkaRebalanceStatus(observed_generation=1, conditions=moving)
        kube = KubeInMemory()
        kube.resources[REBALANCES, "kafka", "r"] = resource(status=status.as_patch()["status"])
        done = run(kube, "r", "-n", "kafka", "--batch", "--operator-namespace", "elsewhere")
        assert (done.code, done.out) == (1, "")
        assert "namespace elsewhere has no record of it" in done.err

    def test_credentials_are_used_and_never_printed(self):
        """The connection is the resource's own; no output contains the content of a Secret, also after an error."""
        sasl = {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": "login"}}
        body = resource(spec={"kafka": {"bootstrapServers": "kafka:9092", "sasl": sasl}})
        kube, kafka = running(body=body)
        kube.secrets["kafka", "login"] = {"username": b"admin", "password": PASSWORD.encode()}
        done = run(kube, "r", "-n", "kafka", "--batch", kafka=kafka)
        assert done.code == 0
        assert kafka.settings[0].password == PASSWORD
        del kube.secrets["kafka", "login"]["username"]
        failed = run(kube, "r", "-n", "kafka", "--batch", kafka=kafka)
        assert failed.code == 1
        assert "Secret kafka/login has no key 'username' and no key 'sasl.jaas.config'" in failed.err
        assert PASSWORD not in done.out + done.err + failed.out + failed.err

    @pytest.mark.parametrize("option", [[], ["--batch"]])
    def test_a_missing_resource_fails(self, option):
        done = run(KubeInMemory(), "r", "-n", "kafka", *option)
        assert (done.code, done.out) == (1, "")
        assert done.err == "failed (NotFound): KafkaRebalance kafka/r not found\n"


class TestBatchTable:
    def test_a_broker_that_did_not_tell_sizes(self, capsys):
        """No figure is better than a wrong one."""
        seen = found([errand(0, [1, 2], [3, 4])], partition(0, [3, 4, 1, 2], adding=[3, 4]))
        print_batch(seen, {(tp(0), BrokerId(3)): 400})
        assert capsys.readouterr().out.splitlines()[1].split()[-2:] == ["3,4", "-"]

    def test_what_others_do_and_what_nobody_told(self, capsys):
        seen = Batch(planned=9, foreign=(tp(0),), unreported=tuple(tp(n) for n in range(1, 8)))
        print_batch(seen, {})
        assert capsys.readouterr().out.splitlines() == [
            "0 partitions in flight; 0 of 9 partitions of the plan are not at their targets",
            "being reassigned by another tool: 1 partition: t-0",
            "not reported by any broker: 7 partitions: t-1, t-2, t-3, t-4, t-5, …",
        ]
