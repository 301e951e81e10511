"""Calls to Kafka are counted, and changes are in the audit log: what, on which cluster, for which resource, outcome."""

import io
import json
import logging
import threading
from dataclasses import replace

import pytest
from structlog.contextvars import bound_contextvars
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.app import observed_admin
from kafka_rebalance.app.observed_admin import observed
from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.kafka.ports import AlterCode, ConfigChange, ConfigOp
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of
from kafka_rebalance.telemetry.audit_log import AUDIT
from kafka_rebalance.telemetry.exposition import process_registry
from kafka_rebalance.telemetry.kafka_call_metrics import KafkaCallMetrics
from kafka_rebalance.telemetry.logs import configure_logging

T0 = TopicPartition("t", 0)


@pytest.fixture
def lines(monkeypatch):
    """The JSON lines of the log so far, at debug level."""
    written, root = io.StringIO(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    monkeypatch.setattr("sys.stderr", written)
    configure_logging("debug", as_json=True)
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    root.handlers[:], root.level = handlers, level


def clusters(registry):
    """The ids that time series of calls have."""
    found = {sample.labels.get("kafka_cluster_id") for family in registry.collect() for sample in family.samples}
    return found - {None, ""}


def audit(lines):
    return [line for line in lines() if line["logger"] == AUDIT]


class Closable(KafkaInMemory):
    """May claim another id at each call."""

    claimed = "c"

    async def describe_cluster(self):
        return replace(await super().describe_cluster(), cluster_id=self.claimed)

    async def close(self):
        pass


class TestKafkaCalls:
    @pytest.fixture
    def registry(self):
        return process_registry()

    @pytest.fixture
    async def admin(self, registry):
        kafka = Closable([1, 2, 3], t=[[1, 2], [1, 2]])
        admin = observed(kafka, KafkaCallMetrics(registry))
        admin.kafka = kafka
        return admin

    @staticmethod
    def counted(registry, name):
        """By call and outcome or answer. The cluster is known since it was described."""
        return {
            (s.labels["call"], s.labels.get("outcome") or s.labels.get("answer")): s.value
            for family in registry.collect()
            for s in family.samples
            if s.name == f"kafka_rebalance_{name}"
        }

    async def test_outcomes(self, registry, admin):
        """Answered, not answered, and refused; errors pass unchanged."""
        await admin.describe_cluster()
        await admin.describe_partitions()

        async def fail():
            raise error

        for error in (Transient("KafkaUnreachable", "no"), Permanent("KafkaAuthorizationFailed", "no")):
            admin.kafka.list_reassignments = fail
            with pytest.raises(type(error)) as raised:
                await admin.list_reassignments()
            assert raised.value is error
        assert self.counted(registry, "kafka_calls_total") == {
            ("describe_cluster", "ok"): 1,
            ("describe_partitions", "ok"): 1,
            ("list_reassignments", "no_answer"): 1,
            ("list_reassignments", "refused"): 1,
        }

    async def test_changes(self, registry, admin):
        """Each change by Kafka's answer, not only each call."""
        await admin.describe_cluster()
        orders = {TopicPartition("t", 0): replicas_of(1, 3), TopicPartition("gone", 0): replicas_of(1, 3)}
        await admin.alter_reassignments(orders)
        await admin.elect_preferred([TopicPartition("t", 1)])
        await admin.alter_broker_configs({1: [ConfigChange("leader.replication.throttled.rate", ConfigOp.SET, "5")]})
        counted = self.counted(registry, "kafka_changes_total")
        assert counted["alter_reassignments", "OK"] == 1
        assert counted["alter_reassignments", "UnknownTopicOrPartition"] == 1
        assert counted["alter_broker_configs", "Ok"] == 1
        assert sum(value for (call, _), value in counted.items() if call == "elect_preferred") == 1

    async def test_a_cluster_ends_with_its_last_client(self, registry):
        """Any server may claim any number of ids, and each would cost memory and time series."""
        metrics = KafkaCallMetrics(registry)
        first, second = (observed(Closable([1], t=[[1]]), metrics) for _ in range(2))
        for admin in (first, second):
            await admin.describe_cluster()
            await admin.elect_preferred([T0])
        await first.close()
        assert clusters(registry) == {"c"}
        await second.close()
        await second.close()
        assert not clusters(registry)

    async def test_a_client_has_one_cluster(self, registry, admin):
        """The engine does not use a client whose servers claim another id."""
        for cluster_id in ("c", "d", "e"):
            admin.kafka.claimed = cluster_id
            assert (await admin.describe_cluster()).cluster_id == cluster_id
        assert clusters(registry) == {"c"}
        await admin.close()
        assert not clusters(registry)

    async def test_a_call_that_ends_after_its_client(self, registry, admin):
        await admin.describe_cluster()
        await admin.close()
        await admin.describe_partitions()
        assert not clusters(registry)


class TestAudit:
    """One line for each change."""

    @pytest.fixture
    async def admin(self):
        kafka = KafkaInMemory([1, 2, 3], t=[[1, 2], [1, 2]])
        admin = observed(kafka, KafkaCallMetrics(process_registry()))
        await admin.describe_cluster()
        admin.kafka = kafka
        return admin

    async def test_reassignments(self, admin, lines):
        """Each partition with its step and Kafka's answer."""
        await admin.alter_reassignments({T0: replicas_of(1, 3), TopicPartition("t", 1): None})
        first, second = audit(lines)
        assert first["message"] == "alter_reassignments t-0: OK"
        assert {name: first[name] for name in ("call", "cluster", "topic", "partition", "step", "answer")} == {
            "call": "alter_reassignments",
            "cluster": "c",
            "topic": "t",
            "partition": 0,
            "step": [1, 3],
            "answer": "OK",
        }
        assert (second["step"], second["answer"]) == ("cancel", "NoReassignmentInProgress")

    async def test_configs(self, admin, lines):
        """Each broker or topic with the operations; long lists are cut."""
        rate = ConfigChange("leader.replication.throttled.rate", ConfigOp.SET, "5")
        items = ConfigChange("leader.replication.throttled.replicas", ConfigOp.APPEND, ",".join(["0:1"] * 1000))
        await admin.alter_broker_configs({BrokerId(1): [rate]})
        await admin.alter_topic_configs({"t": [items]})
        broker, topic = audit(lines)
        assert (broker["broker"], broker["answer"]) == (1, "Ok")
        assert broker["configs"] == "Set leader.replication.throttled.rate 5"
        assert topic["topic"] == "t"
        assert topic["configs"].startswith("Append leader.replication.throttled.replicas 0:1,0:1")
        assert topic["configs"].endswith(" characters)")
        assert len(topic["configs"]) < 400

    async def test_no_answer(self, admin, lines):
        """The change may have been carried out: the line says why that is not known."""

        async def lost(_orders):
            raise Transient("KafkaUnreachable", "no")

        admin.kafka.alter_reassignments = lost
        with pytest.raises(Transient):
            await admin.alter_reassignments({T0: replicas_of(1, 3)})
        (line,) = audit(lines)
        assert line["answer"] == "KafkaUnreachable"

    async def test_many_that_are_refused(self, admin, lines):
        """They change nothing. A server may refuse any number of them in each round, and fill the log."""
        there = {T0: replicas_of(1, 3)}
        await admin.alter_reassignments({TopicPartition("gone", n): replicas_of(1, 3) for n in range(1000)} | there)
        found = audit(lines)
        assert [line["answer"] for line in found] == ["UnknownTopicOrPartition"] * 100 + ["OK", "Refused"]
        assert found[-1]["message"] == "alter_reassignments 900 more: Refused"

    @pytest.mark.parametrize(
        ("answer", "others"),
        [("INVALID_CONFIG: no", "Refused"), ("REQUEST_TIMED_OUT: late", "Unknown"), ("_TRANSPORT: gone", "Unknown")],
    )
    async def test_many_changes_of_configs_that_are_not_accepted(self, admin, lines, answer, others):
        """The broker may have made those of which its answer is not known. Each answer may be another text."""

        async def alter_topic_configs(changes):
            return {topic: f"{answer} {topic}" for topic in changes}

        admin.kafka.alter_topic_configs = alter_topic_configs
        items = ConfigChange("leader.replication.throttled.replicas", ConfigOp.APPEND, "0:1")
        await admin.alter_topic_configs({f"t{number}": [items] for number in range(300)})
        assert len(found := audit(lines)) == 101
        assert found[-1]["message"] == f"alter_topic_configs 200 more: {others}"

    @pytest.mark.parametrize("answer", [AlterCode.UNKNOWN, None], ids=["unknown", "none"])
    async def test_many_of_which_it_is_not_known_whether_they_were_made(self, admin, lines, answer):
        """A server may give each order an error code that Kafka does not have, or leave it out, in each round."""

        async def alter_reassignments(orders):
            return dict.fromkeys(orders, answer) if answer is not None else {}

        admin.kafka.alter_reassignments = alter_reassignments
        await admin.alter_reassignments({TopicPartition("t", n): replicas_of(1, 3) for n in range(300)})
        said = answer or "no answer"
        assert [line["answer"] for line in audit(lines)] == [said] * 101
        assert audit(lines)[-1]["message"] == f"alter_reassignments 200 more: {said}"

    async def test_each_that_is_accepted_has_a_line(self, admin, lines):
        """A text is no acceptance, whatever it says: that is how refused changes of configs are answered."""
        admin.kafka.create("u", [[1, 2]] * 150, "id-u")
        await admin.alter_reassignments({TopicPartition("u", n): replicas_of(1, 3) for n in range(150)})
        assert len(audit(lines)) == 150

        async def alter_topic_configs(changes):
            return dict.fromkeys(changes, "OK")

        admin.kafka.alter_topic_configs = alter_topic_configs
        items = ConfigChange("leader.replication.throttled.replicas", ConfigOp.APPEND, "0:1")
        await admin.alter_topic_configs({f"t{number}": [items] for number in range(300)})
        assert len(audit(lines)) == 150 + 101

    async def test_a_long_answer_is_cut(self, admin, lines):
        async def alter_topic_configs(changes):
            return dict.fromkeys(changes, "INVALID_CONFIG: " + "x" * 100_000)

        admin.kafka.alter_topic_configs = alter_topic_configs
        await admin.alter_topic_configs({"t": [ConfigChange("x", ConfigOp.DELETE)]})
        (line,) = audit(lines)
        assert line["answer"].endswith("… (100016 characters)")
        assert len(line["answer"]) + len(line["message"]) < 1000

    async def test_many_lines_are_written_in_a_thread(self, admin, lines, monkeypatch):
        """100,000 of them would block the event loop for seconds. They have the fields of the call all the same."""
        threads, write = set(), observed_admin.audited
        monkeypatch.setattr(
            observed_admin, "audited", lambda *row: threads.add(threading.current_thread()) or write(*row)
        )
        admin.kafka.create("u", [[1, 2]] * 300, "id-u")
        with bound_contextvars(resource="kafka/r"):
            await admin.alter_reassignments({TopicPartition("u", n): replicas_of(1, 3) for n in range(300)})
        assert {line["resource"] for line in audit(lines)} == {"kafka/r"}
        assert len(audit(lines)) == 300
        assert threading.main_thread() not in threads

    async def test_reads_are_not_in_it(self, admin, lines):
        await admin.describe_partitions()
        assert audit(lines) == []


class TestOfARun:
    async def test_every_change_names_its_resource(self, lines):
        """From the first rate to the last: resource, generation and plan; restoring is the cluster's own."""
        op = OperatorInMemory(KafkaInMemory([1, 2, 3], t=[[1, 2], [1, 2]]))
        kafka, op.kafka = op.kafka, observed(op.kafka, KafkaCallMetrics(process_registry()))
        op.kafka.info = kafka.info
        op.restart()
        kafka.slow = {3}
        await op.kafka.describe_cluster()
        op.assign(("t", 0, [1, 3]), ("t", 1, [2, 1]), throttle={"leaderRate": 50, "followerRate": 50})
        await op.until_true(lambda: kafka.flying)
        moving = audit(lines)
        kafka.arrive()
        await op.until_closed()
        calls = {line["call"] for line in moving}
        assert calls == {"alter_broker_configs", "alter_topic_configs", "alter_reassignments", "elect_preferred"}
        for line in moving:
            assert line["cluster"] == "c"
            if line["call"] in {"alter_reassignments", "elect_preferred"}:
                assert (line["resource"], line["generation"]) == ("kafka/r", 1)
                assert line["plan"] == op.run.plan_hash
            else:
                assert "kafka/r" in line["resource"]
        orders = [f"{line['topic']}-{line['partition']}" for line in moving if line["call"] == "alter_reassignments"]
        assert orders == [partition for partition, *_ in kafka.altered][: len(orders)]
        restored = audit(lines)[len(moving) :]
        assert {line["call"] for line in restored} >= {"alter_broker_configs", "alter_topic_configs"}

    async def test_a_problem_names_its_resource(self, lines):
        """Warnings have the fields too."""
        op = OperatorInMemory(KafkaInMemory([1, 2], t=[[1, 2]]))
        op.assign(("t", 0, [1, 9]))
        await op.until("UnknownBroker", "IneligibleBroker", "InsufficientBrokers")
        (warning,) = {line["message"]: line for line in lines() if line["level"] == "warning"}.values()
        assert (warning["cluster"], warning["resource"], warning["generation"]) == ("c", "kafka/r", 1)
