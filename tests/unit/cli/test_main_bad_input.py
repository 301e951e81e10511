"""Mistakes on the command line and in files: each message names the option and the field, and says what to write."""

import json
from pathlib import Path

import pytest
import yaml
from tests.fakes.whole_program import run_program
from tests.kube.bad_rebalances import BAD_REBALANCES
from tests.kube.spec_parts import BadInput

CLUSTER = {
    "brokers": [{"id": 0}, {"id": 1}],
    "partitions": [{"topic": "t", "partition": 0, "replicas": [0]}, {"topic": "__t", "partition": 0, "replicas": [1]}],
}
KAFKA = {"bootstrapServers": "kafka:9092"}
PLAN = ("plan", "--cluster", "-")
VERIFY = ("verify", "--reassignment-json-file", "-")
CONNECTED = [VERIFY, ("snapshot", "-o", "x.json"), ("doctor",), ("execute", "--decommission-broker", "1")]
HOST_PORT = "must be host:port, or up to 20 separated by commas without spaces, like kafka-1:9092,kafka-2:9092"


def rebalance(directory: Path, **spec: object) -> tuple[str, ...]:
    """The option for a file with this KafkaRebalance."""
    body = {"apiVersion": "kafkarebalance.dev/v1alpha1", "kind": "KafkaRebalance", "spec": {"kafka": KAFKA, **spec}}
    file = directory / "rebalance.yaml"
    file.write_text(yaml.safe_dump(body))
    return ("--rebalance", str(file))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("plna",), "No such command 'plna'. Did you mean 'plan'?"),
        (("pipeline", "smaple"), "No such command 'smaple'. Did you mean 'sample'?"),
        ((*PLAN, "--broker", "1"), "No such option '--broker'. (Did you mean one of: '--broker-list', '--brokers'?)"),
        ((*PLAN, "--brokers", "0-3"), "'--brokers' / '--broker-list': '0-3' is not a list of broker ids like 1,2,3"),
        ((*PLAN, "--max-data-to-move", "5GB"), "'--max-data-to-move': '5GB' is not a quantity like 50Mi or 1048576: "),
        ((*PLAN, "--max-replica-moves", "10%"), "'--max-replica-moves': '10%' is not a valid integer"),
        ((*PLAN, "--strategy", "minimal"), "'--strategy': 'minimal' is not one of 'MinimalMovement', "),
        ((*PLAN, "--pin-topics", "*"), "--pin-topics: is not a valid RE2 regular expression"),
        (("steps", "--current", "1 2", "--target", "1"), "'--current': '1 2' is not a list of broker ids like 1,2,3"),
        (("steps", "--current", "1,2,1", "--target", "1"), "'--current': '1,2,1' names a broker twice: 1"),
        (("steps", "--current", "1,2", "--target", "1", "--isr", "1,3"), "--isr: brokers that are not in --current: 3"),
        ((*PLAN, "--load", "Disk", "--load", "Disk"), "--load names a resource twice: Disk"),
        (("operator", "--lease-duration", "30"), "'--lease-duration': '30' is not a duration like 15m, 1h30m or 2d"),
        (("operator", "--namespace", "Kafka"), "'--namespace': 'Kafka' is not a valid namespace name"),
    ],
)
def test_options(arguments: tuple[str, ...], says: str) -> None:
    done = run_program(*arguments, stdin=json.dumps(CLUSTER))
    assert (done.code, done.out) == (2, "")
    assert says in done.err


@pytest.mark.parametrize("command", CONNECTED, ids=lambda command: command[0])
@pytest.mark.parametrize("servers", ["kafka", "kafka:9092 other:9092", "http://kafka:9092"])
def test_an_address_without_a_port(command: tuple[str, ...], servers: str, tmp_path: Path) -> None:
    """In the option and in the file of properties; no connection is attempted."""
    properties = tmp_path / "client.properties"
    properties.write_text(f"bootstrap.servers={servers}\n")
    for option in (("--bootstrap-servers", servers), ("--command-config", str(properties))):
        done = run_program(*command, *option, stdin=json.dumps({"version": 1, "partitions": []}))
        assert (done.code, done.out) == (2, "")
        named = "--bootstrap-servers" if option[1] == servers else "bootstrap.servers in the file of --command-config"
        assert f"Invalid value for {named}: {HOST_PORT}, found '{servers}'" in done.err


@pytest.mark.parametrize("bad", BAD_REBALANCES)
def test_a_rebalance_in_a_file(bad: BadInput, tmp_path: Path) -> None:
    done = run_program(*PLAN, *rebalance(tmp_path, **bad.spec), stdin=json.dumps(CLUSTER))
    assert (done.code, done.out) == (2, "")
    assert f"Invalid value for --rebalance: {bad.model}" in done.err


@pytest.mark.parametrize(
    ("cluster", "says"),
    [
        ({**CLUSTER, "broker": []}, "$: unknown key 'broker'; known are brokers, partitions, summary, version"),
        ({"brokers": []}, "$: 'partitions' is missing"),
        ({**CLUSTER, "brokers": [0, 1]}, "brokers[0]: expected an object, found 0"),
        ({**CLUSTER, "brokers": [{"id": "0"}]}, "brokers[0].id: expected an integer, found '0'"),
        (
            {**CLUSTER, "brokers": [{"id": 0, "Rack": "a"}]},
            "brokers[0]: unknown key 'Rack'; known are capacity, id, logDirs, rack",
        ),
        (
            {**CLUSTER, "partitions": [{"topic": "t", "partition": 0, "replicas": "0,1"}]},
            "partitions[0].replicas of topic-partition t-0: expected a list, found '0,1'",
        ),
        (
            {**CLUSTER, "partitions": [{"topic": "t", "partition": 0, "replicas": [0], "size": "1Gi"}]},
            "partitions[0].size of topic-partition t-0: expected an integer, found '1Gi'",
        ),
    ],
)
def test_a_cluster_file(cluster: object, says: str) -> None:
    done = run_program(*PLAN, stdin=json.dumps(cluster))
    assert (done.code, done.out) == (2, "")
    assert f"Invalid value for --cluster: {says}" in done.err


class TestWarnings:
    """Valid, and probably a mistake: a line on stderr, and the result as asked for."""

    @pytest.mark.parametrize(
        ("spec", "says"),
        [
            ({"throttle": {"followerRate": 50}}, "spec.throttle.followerRate: 50 B/s is very low: 1 GiB takes 248d"),
            ({"topics": {"exclude": ["__*"]}}, "spec.topics.exclude[0]: '__*' matches no topic; it is an RE2 expr"),
            ({"topics": {"exclude": ["x", "t"]}}, "spec.topics.exclude[0]: 'x' matches no topic\n"),
            ({"topics": {"pinned": ["T"]}}, "spec.topics.pinned[0]: 'T' matches no topic\n"),
        ],
    )
    def test_plan(self, spec: dict[str, object], says: str, tmp_path: Path) -> None:
        done = run_program(*PLAN, *rebalance(tmp_path, **spec), stdin=json.dumps(CLUSTER))
        assert done.code == 0
        assert f"warning: {says}" in done.err
        assert done.err.count("\n") == 1

    def test_a_good_spec_gets_none(self, tmp_path: Path) -> None:
        good = {
            "approval": {"policy": "Manual", "planHash": f"sha256:{'0' * 64}"},
            "throttle": {"leaderRate": "100Ki"},
            "topics": {"include": ["t", "__.*"], "exclude": ["__t"]},
        }
        assert run_program(*PLAN, *rebalance(tmp_path, **good), stdin=json.dumps(CLUSTER)).err == ""

    def test_a_throttle_in_bytes_per_second(self) -> None:
        made = run_program("execute", "--decommission-broker", "1", "--bootstrap-servers", "a:1", "--throttle", "50")
        assert made.code == 0
        assert made.err.startswith("warning: --throttle 50: 50 B/s is very low: 1 GiB takes 248d13h. Rates are in ")
        assert made.err.count("warning") == 1


@pytest.mark.parametrize(
    "command",
    [("status", "r"), ("watch", "r"), ("undo", "r"), ("list",), ("approve", "r"), ("freeze",)],
    ids=lambda command: command[0],
)
def test_a_kubeconfig_that_does_not_exist(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/no:{tmp_path}/nope")
    done = run_program(*command)
    assert (done.code, done.out) == (1, "")
    assert f"{tmp_path}/no:{tmp_path}/nope cannot be used: there is no such file. Set KUBECONFIG to" in done.err
