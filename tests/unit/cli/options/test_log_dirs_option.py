"""plan and explain with --log-dirs: what Kafka's tool gets, and what is refused."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafka_rebalance.cli.commands.explain_command import explain
from kafka_rebalance.cli.commands.plan_command import plan

MIB = 2**20


def cluster(*partitions: tuple[list[int], list[str], int], topics: str = "") -> dict[str, Any]:
    """Brokers 0 and 1 with log dirs /a and /b; partition i has these replicas, log dirs and MiB, in topic t or i's."""
    dirs = [{"path": path, "size": "1Gi"} for path in ("/a", "/b")]
    return {
        "brokers": [{"id": 0, "logDirs": dirs}, {"id": 1, "logDirs": dirs}],
        "partitions": [
            {"topic": topics[i] if topics else "t", "partition": i, "replicas": on, "log_dirs": at, "size": size * MIB}
            for i, (on, at, size) in enumerate(partitions)
        ],
    }


UNEVEN = cluster(([0], ["/a"], 10), ([0], ["/a"], 10), ([1], ["/a"], 10), ([1], ["/b"], 10))


def ran(*arguments: str, given: dict[str, Any] = UNEVEN, command: Any = plan) -> Result:
    return CliRunner().invoke(command, ["--cluster", "-", *arguments], input=json.dumps(given), catch_exceptions=False)


def planned(*arguments: str, given: dict[str, Any] = UNEVEN) -> dict[str, Any]:
    done = ran("-o", "json", *arguments, given=given)
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def rows(document: dict[str, Any]) -> dict[int, tuple[list[int], list[str]]]:
    return {p["partition"]: (p["replicas"], p.get("log_dirs", [])) for p in document["partitions"]}


class TestPlan:
    def test_a_partition_that_only_changes_its_log_dir_is_listed(self) -> None:
        """As Kafka's tool reads it, with the same replicas. The plan's hash is about replicas alone."""
        document = planned("--log-dirs", "10%")
        assert rows(document) == {0: ([0], ["/b"])}
        found = document["summary"]["logDirs"]
        assert (found["moves"], found["placed"], found["dataToMove"]) == (1, 0, 10 * MIB)
        assert found["dataLowerBound"] == 9 * MIB
        assert document["summary"]["hash"] == planned()["summary"]["hash"]
        assert "logDirs" not in planned()["summary"]

    def test_new_replicas_are_placed(self) -> None:
        """The replica of the broker that leaves comes to the emptier log dir; any other place is left to Kafka."""
        given = cluster(([0], ["/a"], 10), ([1], ["/a"], 10))
        document = planned("--log-dirs", "10%", "--decommission", "1", given=given)
        assert rows(document) == {1: ([0], ["/b"])}
        found = document["summary"]["logDirs"]
        assert (found["moves"], found["placed"], found["dataToMove"]) == (0, 1, 0)

    def test_a_log_dir_is_drained(self) -> None:
        document = planned("--log-dirs", "100%", "--drain-log-dir", "1:/b", "--drain-log-dir", "0:/a")
        assert rows(document) == {0: ([0], ["/b"]), 1: ([0], ["/b"]), 3: ([1], ["/a"])}

    def test_replicas_that_stay_are_any(self) -> None:
        given = cluster(([0, 1], ["/a", "/a"], 10), ([1, 0], ["/b", "/a"], 10))
        assert rows(planned("--log-dirs", "10%", given=given)) == {0: ([0, 1], ["/b", "any"])}

    def test_only_selected_topics_move(self) -> None:
        """The others count: /a has 20 MiB that stay."""
        given = cluster(([0], ["/a"], 20), ([0], ["/a"], 10), ([0], ["/b"], 10), topics="xyy")
        assert rows(planned("--log-dirs", "1%", "--pin-topics", "x", "--brokers", "0", given=given)) == {
            1: ([0], ["/b"])
        }

    def test_the_table_names_the_log_dirs(self) -> None:
        text = ran("--log-dirs", "10%").stdout
        assert "1 replica moves between log dirs of a broker: 10.0 MiB to copy (at least 9.0 MiB have to)" in text
        assert "20.0 MiB -> 10.0 MiB" in text

    def test_explain_says_it_too(self) -> None:
        text = ran("--log-dirs", "10%", command=explain).stdout
        assert "1 replica moves between log dirs of a broker" in text


class TestRefused:
    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["--log-dirs", "10"], "like 10%"),
            (["--log-dirs", "0%"], "like 10%"),
            (["--drain-log-dir", "0:/a"], "--drain-log-dir requires --log-dirs"),
            (["--log-dirs", "10%", "--drain-log-dir", "/a"], "like 3:/data/2"),
            (["--log-dirs", "10%", "--drain-log-dir", "0:/c"], "broker 0 has no log dir /c; it has: /a, /b"),
            (["--log-dirs", "10%", "--drain-log-dir", "0:/a", "--drain-log-dir", "0:/b"], "use --decommission"),
        ],
    )
    def test_wrong_usage(self, arguments: list[str], says: str) -> None:
        done = ran(*arguments)
        assert done.exit_code == 2
        assert says in done.stderr

    def test_a_cluster_file_without_log_dirs(self) -> None:
        given = {"brokers": [{"id": 0}], "partitions": [{"topic": "t", "partition": 0, "replicas": [0]}]}
        done = ran("--log-dirs", "10%", given=given)
        assert done.exit_code == 2
        assert "requires logDirs of brokers in the cluster file, as snapshot writes them" in done.stderr
