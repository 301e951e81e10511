"""kafka-rebalance run: what it prints, its exit codes, and Ctrl-C."""

import json
import signal
import socket
from unittest.mock import patch

import aiohttp
import pytest
from e2e.bench.ports import release_port, reserve_port
from tests.fakes.shared_clusters import Cluster
from tests.fakes.whole_program import run_program

from kafka_rebalance.app import fresh_pages, local_run
from kafka_rebalance.errors import Permanent
from kafka_rebalance.execution import list_state
from kafka_rebalance.kafka import admin
from kafka_rebalance.reconcile.decide import arrival_proof

BEFORE = [[1]] * 4 + [[2]] * 4
MANIFEST = """\
apiVersion: kafkarebalance.dev/v1alpha1
kind: KafkaRebalance
metadata: {name: r}
spec: {kafka: {bootstrapServers: "kafka:9092"}}
"""


class Interrupting(Cluster):
    """Ctrl-C is typed at the first request, ``times`` times."""

    times = 1

    async def alter_reassignments(self, orders):
        answers = await super().alter_reassignments(orders)
        for _ in range(self.times):
            signal.raise_signal(signal.SIGINT)
        self.times = 0
        return answers


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(local_run, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(list_state, "LATE_SECONDS", 0.1)
    for name in ("CALL_SECONDS", "SECOND_READING_SECONDS"):
        monkeypatch.setattr(arrival_proof, name, 0.1)


@pytest.fixture
def call(tmp_path):
    """Calls the program with the manifest; ``options`` follow."""
    path = tmp_path / "r.yaml"
    path.write_text(MANIFEST)

    def run(kafka, *options, text=MANIFEST, records=tmp_path / "records"):
        path.write_text(text)
        with patch.object(admin, "connect", lambda settings, _fence=None: kafka_of(kafka, settings)):
            return run_program("run", str(path), "--records", str(records), *options)

    def kafka_of(kafka, settings):
        run.settings = settings
        return kafka

    return run


class TestExitCodes:
    def test_success_and_rollback(self, call):
        """0; a line for each change of the state, as watch prints."""
        kafka = Cluster((1, 2, 3, 4), t=BEFORE)
        done = call(kafka)
        assert (done.code, done.err) == (0, "")
        assert "Succeeded: 4 of 4 partitions are at their targets" in done.out
        back = call(kafka, "--rollback")
        assert (back.code, back.err) == (0, "")
        assert back.out.endswith("rolled back: replicas and throttles are as before the run\n")
        assert kafka.lists("t") == BEFORE
        assert call(kafka, "--rollback").out == "nothing to roll back\n"

    def test_wrong_usage(self, call):
        done = call(Cluster((1,)), text=MANIFEST.replace("spec:", "spc:"))
        assert done.code == 2
        assert "FILE" in done.err

    def test_refused(self, call, tmp_path):
        """The plan, or the directory."""
        done = call(Cluster((1, 2), t=[[1]]), text=MANIFEST.replace('9092"}', '9092"}, brokers: {include: [7]}'))
        assert done.code == 3
        assert done.err.startswith("refused (UnknownBroker)")
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "notes.txt").touch()
        done = call(Cluster((1,)), records=tmp_path / "other")
        assert done.code == 3
        assert done.err.startswith("refused (RecordsInvalid)")
        assert "notes.txt" in done.err

    def test_failed(self, call):
        """Credentials that the brokers do not accept do not get better by waiting."""

        class Closed(Cluster):
            async def describe_cluster(self):
                raise Permanent("KafkaAuthenticationFailed", "wrong password")

        done = call(Closed((1,)))
        assert (done.code, done.err) == (1, "failed (KafkaAuthenticationFailed): wrong password\n")


class TestCtrlC:
    def test_once(self, call):
        """It ends at a rest point with 130; the same command goes on."""
        kafka = Interrupting((1, 2, 3, 4), t=BEFORE)
        text = MANIFEST.replace('9092"}', '9092"}, execution: {parallelPartitionCount: 1}')
        done = call(kafka, text=text)
        assert done.code == 130
        assert "stopping: steps in flight finish" in done.err
        assert done.out.endswith("stopped at a rest point: run it again to go on\n")
        assert (kafka.flying, kafka.values) == (set(), {})
        assert call(kafka, text=text).code == 0

    def test_twice(self, call):
        """It ends at once, with copies in flight."""
        kafka = Interrupting((1, 2, 3, 4), t=BEFORE)
        kafka.slow, kafka.times = {3, 4}, 2
        done = call(kafka)
        assert done.code == 130
        assert "ending at once" in done.err
        assert kafka.flying
        kafka.arrive()
        assert call(kafka).code == 0
        assert kafka.values == {}


def stored(records):
    """The KafkaRebalances in the directory, as text."""
    return [path.read_text() for path in records.glob("kafkarebalances.*.json")]


class Waiting(Cluster):
    """Ctrl-C is typed when the resource in ``records`` waits for an approval."""

    records = None

    async def describe_partitions(self, *args, **options):
        if self.records and any("AwaitingApproval" in text for text in stored(self.records)):
            self.records = None
            signal.raise_signal(signal.SIGINT)
        return await super().describe_partitions(*args, **options)


class TestApproval:
    def test_between_two_runs(self, call, tmp_path):
        """Nothing moves before the approval; at the next start, the run goes on with the approved plan."""
        kafka = Waiting((1, 2, 3, 4), t=BEFORE)
        kafka.records = tmp_path / "records"
        text = MANIFEST.replace('9092"}', '9092"}, approval: {policy: Manual}')
        assert call(kafka, text=text).code == 130
        assert kafka.lists("t") == BEFORE
        approved = run_program("approve", "r", "--records", str(tmp_path / "records"), "--yes")
        assert (approved.code, approved.err) == (0, "")
        (resource,) = map(json.loads, stored(tmp_path / "records"))
        assert resource["spec"]["approval"]["planHash"] == resource["status"]["plan"]["hash"]
        assert call(kafka, text=text).code == 0
        assert kafka.lists("t") != BEFORE


class TestConnection:
    def test_of_the_resource(self, call):
        call(Cluster((1,), t=[[1]]))
        assert call.settings.bootstrap_servers == "kafka:9092"

    def test_of_a_properties_file(self, call, tmp_path):
        """As for the other commands; it replaces what the resource says."""
        config = tmp_path / "client.properties"
        config.write_text(
            "bootstrap.servers=other:9092\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
            "sasl.username=me\nsasl.password=hunter2\n"
        )
        done = call(Cluster((1,), t=[[1]]), "--command-config", str(config))
        assert done.code == 0
        assert (call.settings.bootstrap_servers, call.settings.username) == ("other:9092", "me")
        assert "hunter2" not in "".join(p.read_text() for p in (tmp_path / "records").iterdir() if p.is_file())


class TestRecords:
    """The commands that read show what the directory has, during a run and after it."""

    @pytest.fixture
    def records(self, call, tmp_path):
        assert call(Cluster((1, 2, 3, 4), t=BEFORE)).code == 0
        return ("--records", str(tmp_path / "records"))

    @pytest.mark.parametrize(
        ("command", "shown"),
        [
            (("status", "r"), "Succeeded"),
            (("watch", "r"), "Succeeded: 4 of 4 partitions are at their targets"),
            (("list",), "Succeeded"),
            (("list", "-o", "name"), "kafkarebalance.kafkarebalance.dev/r"),
            (("history",), "Succeeded"),
            (("diff", "r"), "t-0"),
            (("undo", "r", "--print"), '"partition": 0, "replicas": [1], "original_replicas": [4]'),
        ],
    )
    def test_read(self, records, command, shown):
        done = run_program(*command, *records)
        assert (done.code, done.err) == (0, "")
        assert shown in done.out

    @pytest.mark.parametrize(
        ("command", "said"),
        [
            (("suspend", "r"), "KafkaRebalance default/r is suspended"),
            (("resume", "r"), "KafkaRebalance default/r is already not suspended"),
            (("throttle", "r", "--rate", "2Mi"), "leaders send at most 2Mi bytes per second"),
            (("cancel", "r", "--yes"), "follow it with: kafka-rebalance watch r -n default --records "),
        ],
    )
    def test_changed(self, records, command, said):
        """Without a run, the command changes the directory itself. It warns, because the rebalance has ended."""
        done = run_program(*command, *records)
        warning = "" if command[0] == "cancel" else "warning: KafkaRebalance default/r has ended (Succeeded)"
        assert (done.code, done.err.partition(":")[0]) == (0, warning.partition(":")[0])
        assert done.err.startswith(warning)
        assert said in done.out

    @pytest.mark.parametrize("command", [("approve", "r"), ("freeze", "r"), ("unfreeze", "r")])
    def test_nothing_to_change(self, records, command):
        """The rebalance needs no approval, and a throttle resource is only there while a run works."""
        done = run_program(*command, *records)
        assert done.code == (3 if command[0] == "approve" else 1)
        assert ("policy Automatic" in done.err) or ("KafkaReassignmentThrottle default/r not found" in done.err)

    def test_a_misspelt_directory(self, tmp_path):
        done = run_program("status", "r", "--records", str(tmp_path / "misspelt"))
        assert done.code == 3
        assert "has no records of kafka-rebalance run" in done.err


class TestServe:
    """The report of the run, while it runs; `test_served_reports.py` has the page."""

    @pytest.fixture
    def port(self):
        number = reserve_port()
        yield number
        release_port(number)

    def test_while_steps_are_sent(self, call, port, monkeypatch):
        """The page is served before there is a plan, and then shows its partitions."""
        monkeypatch.setattr(fresh_pages, "_FRESH_SECONDS", -1.0)
        seen = []

        class Looking(Cluster):
            async def alter_reassignments(self, orders):
                answers = await super().alter_reassignments(orders)
                async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/") as answer:
                    seen.append((answer.status, await answer.text()))
                return answers

        one_by_one = MANIFEST.replace("}}\n", "}, execution: {parallelPartitionCount: 1}}\n")
        done = call(Looking((1, 2, 3, 4), t=BEFORE), "--serve", str(port), text=one_by_one)
        assert (done.code, done.err) == (0, f"http://127.0.0.1:{port}/ shows the report until the run ends\n")
        assert {status for status, _ in seen} == {200}
        for _, page in seen:
            assert "<h1>KafkaRebalance default/r</h1>" in page
            assert '<meta http-equiv="refresh" content="5">' in page
        assert "4 of 4 partitions that change" in seen[-1][1]

    def test_the_port_is_taken(self, call, port):
        """No run starts then."""
        kafka = Cluster((1, 2, 3, 4), t=BEFORE)
        with socket.create_server(("127.0.0.1", port)):
            done = call(kafka, "--serve", str(port))
        assert done.code == 1
        assert f"cannot listen on --serve {port}" in done.err
        assert kafka.lists("t") == BEFORE
