"""kafka-rebalance doctor: which replication throttles no reassignment needs any more, and which it removes."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from tests.fakes.configs_in_memory import Records
from tests.fakes.kafka_in_memory import KafkaInMemory

from kafka_rebalance.cli.commands import doctor_command as doctor
from kafka_rebalance.cli.commands.leftover_throttles import leftover_throttles
from kafka_rebalance.errors import Permanent
from kafka_rebalance.execution.ledger import Before, Ledger, RateRecord
from kafka_rebalance.execution.ledger_json import ledger_to_json
from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST, FOLLOWER_RATE, LEADER_LIST, LEADER_RATE
from kafka_rebalance.kube import ledger_store
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

LEFT = {(BrokerId(1), LEADER_RATE): "1000", (BrokerId(3), FOLLOWER_RATE): "1000", ("t", LEADER_LIST): "0:1,0:2"}


def cluster(**values):
    kafka = KafkaInMemory([1, 2, 3, 4], t=[[1, 2]], u=[[2, 3]])
    kafka.values = {**LEFT, **values}
    kafka.close = nothing
    return kafka


async def nothing():
    pass


async def examine(kafka, ledger=None, *, clear=False):
    async def read():
        return ledger or Ledger()

    findings = await leftover_throttles(kafka, read, clear=clear)
    return {(f.row["WHERE"], f.fields["config"]): f.row.get("OUTCOME") for f in findings}


class TestFinding:
    async def test_what_another_tool_has_left(self):
        """Rates of brokers and lists of topics. Looking changes nothing."""
        kafka = cluster()
        found = await examine(kafka)
        assert list(found) == [("broker 1", LEADER_RATE), ("broker 3", FOLLOWER_RATE), ("topic t", LEADER_LIST)]
        assert set(found.values()) == {None}
        assert kafka.values == LEFT

    async def test_a_reassignment_needs_its_brokers_and_its_topic(self):
        """A reassignment needs the throttles of all its replicas, even if another tool started it."""
        kafka = cluster()
        kafka.slow = {4}
        kafka._alter(TopicPartition("t", 0), replicas_of(1, 4))
        assert list(await examine(kafka)) == [("broker 3", FOLLOWER_RATE)]

    async def test_what_the_operator_has_set_is_its_own(self):
        """By its ledger; the rates of the brokers in its lists too."""
        rates = {BrokerId(3): {FOLLOWER_RATE: RateRecord(Before(None, dynamic=False))}}
        lists = Ledger(rates, {"t": {LEADER_LIST: Before(None, dynamic=False)}})
        assert await examine(cluster(), lists) == {}

    async def test_a_wildcard_was_set_by_a_person(self):
        """It stays, and so do the rates of the brokers that hold the topic."""
        kafka = cluster()
        kafka.values["u", FOLLOWER_LIST] = "*"
        assert list(await examine(kafka)) == [("broker 1", LEADER_RATE), ("topic t", LEADER_LIST)]

    async def test_only_what_is_set_on_the_broker_itself(self):
        """A rate of its file or a default of all brokers is no leftover."""
        kafka = KafkaInMemory([1, 2], t=[[1, 2]])
        kafka.files = {(BrokerId(1), LEADER_RATE): "5"}
        assert await examine(kafka) == {}


class TestClearing:
    async def test_all_of_it_goes(self):
        """And nothing else."""
        kafka = cluster()
        kafka.values["u", FOLLOWER_LIST] = "*"
        kafka.values[BrokerId(2), LEADER_RATE] = "7"
        del kafka.values[BrokerId(3), FOLLOWER_RATE]
        assert set((await examine(kafka, clear=True)).values()) == {"removed"}
        assert kafka.values == {("u", FOLLOWER_LIST): "*", (BrokerId(2), LEADER_RATE): "7"}

    async def test_a_refusal_is_told(self):
        """The others are removed."""
        kafka = cluster()
        kafka.refusing, kafka.refusal = {1}, "CLUSTER_AUTHORIZATION_FAILED: no"
        found = await examine(kafka, clear=True)
        assert found["broker 1", LEADER_RATE] == "not removed: CLUSTER_AUTHORIZATION_FAILED: no"
        assert kafka.values == {(BrokerId(1), LEADER_RATE): "1000"}

    async def test_what_is_in_use_by_then_stays(self):
        """A reassignment began between the two looks."""
        kafka, listed = cluster(), []
        kafka.slow = {4}

        async def list_then_begin():
            found = await KafkaInMemory.list_reassignments(kafka)
            if not listed:
                kafka._alter(TopicPartition("t", 0), replicas_of(1, 4))
            listed.append(found)
            return found

        kafka.list_reassignments = list_then_begin
        found = await examine(kafka, clear=True)
        assert found["topic t", LEADER_LIST] == "not removed: in use by now"
        assert ("t", LEADER_LIST) in kafka.values
        assert (BrokerId(1), LEADER_RATE) in kafka.values
        assert (BrokerId(3), FOLLOWER_RATE) not in kafka.values


class TestCommand:
    @pytest.fixture
    def kafka(self, monkeypatch):
        kafka, self.records = cluster(), Records()

        @asynccontextmanager
        async def connected(namespace, server):
            yield SimpleNamespace(namespace=namespace or "kafka-rebalance")

        monkeypatch.setattr(doctor, "connect", lambda _settings: kafka)
        monkeypatch.setattr(doctor, "connected", connected)
        monkeypatch.setattr(ledger_store, "LedgerStore", lambda _kube: self.records)
        return kafka

    def run(self, *options):
        return CliRunner().invoke(doctor.doctor, ["--bootstrap-servers", "kafka:9092", *options])

    def test_without_the_option_throttles_are_not_looked_at(self, kafka):
        """They may be there on purpose."""
        assert self.run().exit_code == 0
        assert kafka.values == LEFT

    @pytest.mark.parametrize(("option", "code"), [("--throttles", 4), ("--clear-throttles", 0)])
    def test_without_an_operator(self, kafka, option, code):
        """No record is asked for; exit code 0 if nothing is left."""
        done = self.run(option, "--no-operator")
        assert done.exit_code == code
        assert "LeftoverThrottle (3" in done.stdout
        assert bool(kafka.values) is bool(code)

    def test_a_missing_ledger_is_not_taken_for_an_empty_one(self, kafka):
        """It may be in another namespace: nothing is removed."""
        done = self.run("--clear-throttles")
        assert isinstance(done.exception, Permanent)
        assert done.exception.reason == "ThrottleLedgerMissing"
        assert all(word in done.exception.message for word in ("--operator-namespace", "--no-operator"))
        assert kafka.values == LEFT

    def test_the_ledger_is_respected(self, kafka):
        """What it claims stays."""
        lists = Ledger({}, {"t": {LEADER_LIST: Before(None, dynamic=False)}})
        self.records.kept = ledger_to_json(lists)
        done = self.run("--clear-throttles")
        assert done.exit_code == 0
        assert done.stderr.startswith("not checked: 1 throttle config that the operator has set")
        assert kafka.values == {(BrokerId(1), LEADER_RATE): "1000", ("t", LEADER_LIST): "0:1,0:2"}

    def test_a_damaged_one_is_refused(self, kafka):
        """Nothing is guessed; the message says what to do."""
        self.records.kept = {"version": 9}
        refused = self.run("--clear-throttles").exception
        assert refused.reason == "ThrottleLedgerDamaged"
        assert "restore it, or delete it after" in refused.message
        assert kafka.values == LEFT

    def test_one_line_when_nothing_is_left(self, kafka):
        """It says what was looked at."""
        kafka.values.clear()
        done = self.run("--throttles", "--no-operator")
        assert done.stderr == ""
        assert (
            done.stdout
            == "no problems found: no reassignment is stuck, no permission is missing, and no throttle is left behind\n"
        )
