"""kafka-rebalance drain: the KafkaRebalance that it makes."""

import json
from unittest.mock import patch

import pytest
import yaml
from tests.fakes.whole_program import run_program
from tests.unit.cli.commands.execute_runs import Kube

from kafka_rebalance.kube.client import KubeClient

SERVERS = ("--bootstrap-servers", "kafka:9092")


def made(*arguments, stdin=""):
    done = run_program("drain", "5,4", *arguments, stdin=stdin)
    assert (done.code, done.err) == (0, "")
    return yaml.safe_load(done.out)


class TestPrinted:
    def test_it_names_the_brokers(self):
        found = made("--connection", "prod", "-n", "kafka", "--throttle", "50Mi")
        assert found["metadata"]["namespace"] == "kafka"
        assert found["metadata"]["name"].startswith("decommission-4-5-")
        assert found["spec"] == {
            "kafka": {"connectionRef": {"name": "prod"}},
            "brokers": {"decommission": [4, 5]},
            "throttle": {"leaderRate": "50Mi", "followerRate": "50Mi"},
        }

    def test_nothing_but_the_drain(self):
        """Evening the other brokers takes more moves."""
        assert made(*SERVERS, "--only")["spec"]["strategy"] == "ForcedMovesOnly"

    def test_a_connection_of_another_namespace(self):
        found = made("--connection", "kafka-platform/prod")
        assert found["spec"]["kafka"] == {"connectionRef": {"name": "prod", "namespace": "kafka-platform"}}

    def test_the_same_as_execute(self):
        """Both are one request, and one object."""
        done = run_program("execute", *SERVERS, "--decommission-broker", "4,5")
        assert made(*SERVERS) == yaml.safe_load(done.out)

    def test_a_base_with_a_connection(self):
        spec = {"kafka": {"connectionRef": {"name": "x"}}, "priority": 7, "brokers": {"include": [1, 2]}}
        body = {"apiVersion": "kafkarebalance.dev/v1alpha1", "kind": "KafkaRebalance", "spec": spec}
        found = made("--rebalance", "-", stdin=json.dumps(body))
        assert found["spec"] == {**spec, "brokers": {"decommission": [4, 5]}}


class TestWarned:
    """With a cluster file, the command warns about the brokers that stay."""

    @pytest.fixture
    def cluster(self, tmp_path):
        rows = [{"topic": "t", "partition": n, "replicas": [n % 2, 2 + n % 2]} for n in range(8)]
        brokers = [{"id": n, "rack": "aabb"[n]} for n in range(4)]
        (tmp_path / "cluster.json").write_text(json.dumps({"brokers": brokers, "partitions": rows}))
        return str(tmp_path / "cluster.json")

    def test_the_last_broker_of_a_rack(self, cluster):
        done = run_program("drain", "3", *SERVERS, "--cluster", cluster)
        assert done.code == 0
        assert done.err == (
            "warning: broker 2 ends with 8 replicas instead of 4: it is the last broker of rack b, and takes over what "
            "the others there had\n"
        )
        assert yaml.safe_load(done.out)["spec"]["brokers"] == {"decommission": [3]}

    def test_plan_and_report_say_it_too(self, cluster, tmp_path):
        done = run_program("plan", "--cluster", cluster, "--decommission", "3", "-o", "json")
        assert "warning: broker 2 ends with 8 replicas" in done.err
        (tmp_path / "plan.json").write_text(done.out)
        page = tmp_path / "report.md"
        for more in (("--decommission", "3"), ("--plan", str(tmp_path / "plan.json"))):
            assert run_program("report", "--cluster", cluster, *more, "-o", str(page)).code == 0
            assert "- Broker 2 ends with 8 replicas instead of 4" in page.read_text()

    def test_no_plan(self, cluster):
        """Nothing is created then."""
        done = run_program("drain", "9", *SERVERS, "--cluster", cluster)
        assert (done.code, done.out) == (3, "")
        assert "UnknownBroker" in done.err


class TestApplied:
    def test_once(self):
        """A repetition after a lost answer finds the same object."""
        kube = Kube()
        arguments = ("drain", "4", "--connection", "prod", "-n", "kafka", "--apply")
        with patch.object(KubeClient, "connect", lambda *_, **__: kube):
            first, second = run_program(*arguments), run_program(*arguments)
        assert (first.code, second.code) == (0, 0)
        assert " created; follow it with: kafka-rebalance watch decommission-4-" in first.out
        assert " already exists with the same spec; follow it with" in second.out
        assert len(kube.created) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("4",), "give one of --connection, --bootstrap-servers and spec.kafka in the file of --rebalance"),
        (("4", *SERVERS, "--connection", "prod"), "give one of --connection"),
        (("4-6", *SERVERS), "'4-6' is not a list of broker ids like 1,2,3"),
        (("4", "--connection", "Prod"), "spec.kafka.connectionRef.name: must be the name of an object"),
        (("4", "--bootstrap-servers", "kafka"), "spec.kafka.bootstrapServers: must be host:port"),
        (("4", *SERVERS, "-n", "Kafka"), "must be the name of a namespace"),
        (("4", *SERVERS, "--throttle", "50MB"), "Invalid value for '--throttle': '50MB' is not a quantity"),
    ],
)
def test_wrong_usage(arguments, says):
    done = run_program("drain", *arguments)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
