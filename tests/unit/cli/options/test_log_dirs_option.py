"""plan and explain with --log-dirs or goals.logDirs: what Kafka's tool gets, what is shown, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.fakes.whole_program import run_program

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


def refused(*arguments: str, given: dict[str, Any] = UNEVEN, command: Any = plan) -> str:
    """What the program says on stderr when it ends with exit code 3; it prints nothing else."""
    done = run_program(command.name, "--cluster", "-", *arguments, stdin=json.dumps(given).encode())
    assert (done.code, done.out) == (3, "")
    return done.err.removesuffix("\n")


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

    def test_brokers_that_may_hold_no_replicas_are_left_alone(self) -> None:
        """As the operator leaves them alone, unless a log dir of theirs is drained."""
        given = cluster(([0], ["/a"], 10), ([0], ["/b"], 10), ([1], ["/a"], 10), ([1], ["/a"], 10), topics="xxyy")
        arguments = ("--pin-topics", "none", "--strategy", "LogDirs", "--brokers", "0", "--log-dirs", "10%")
        assert rows(planned(*arguments, given=given)) == {}
        drained = planned(*arguments, "--drain-log-dir", "1:/a", given=given)
        assert rows(drained) == {2: ([1], ["/b"]), 3: ([1], ["/b"])}


Resource = Callable[..., str]


@pytest.fixture
def resource(tmp_path: Path) -> Resource:
    """Writes a KafkaRebalance with this goals.logDirs, and returns the name of the file."""

    def write(log_dirs: dict[str, Any], **spec: Any) -> str:
        goals = {"kafka": {"bootstrapServers": "kafka:9092"}, "goals": {"logDirs": log_dirs}, **spec}
        document = {"apiVersion": "kafkarebalance.dev/v1alpha1", "kind": "KafkaRebalance", "spec": goals}
        found = tmp_path / "rebalance.yaml"
        found.write_text(json.dumps(document), encoding="utf-8")
        return str(found)

    return write


DRAIN = {"drain": [{"broker": 1, "path": "/b"}]}


class TestResource:
    """goals.logDirs in the file of --rebalance."""

    @pytest.mark.parametrize("strategy", ["MinimalMovement", "LogDirs"])
    def test_its_band_and_its_drained_log_dirs_apply(self, resource: Resource, strategy: str) -> None:
        document = planned("--rebalance", resource(DRAIN, strategy=strategy))
        assert rows(document) == {0: ([0], ["/b"]), 3: ([1], ["/a"])}
        found = document["summary"]["logDirs"]
        assert (found["moves"], found["dataToMove"]) == (2, 20 * MIB)

    def test_an_option_overrides_its_field_only(self, resource: Resource) -> None:
        """--log-dirs keeps the log dirs to be drained, and --drain-log-dir the band."""
        assert rows(planned("--rebalance", resource(DRAIN), "--log-dirs", "100%")) == {3: ([1], ["/a"])}
        wide = resource({"band": "100%", **DRAIN})
        assert rows(planned("--rebalance", wide, "--drain-log-dir", "0:/a")) == {0: ([0], ["/b"]), 1: ([0], ["/b"])}

    def test_the_table_shows_moves_and_bytes(self, resource: Resource) -> None:
        text = ran("--rebalance", resource(DRAIN, strategy="LogDirs")).stdout
        lines = [line.split() for line in text.splitlines()]
        assert ["TOPIC-PARTITION", "CURRENT", "TARGET", "NEW", "REPLICAS", "LOG", "DIRS"] in lines
        assert ["t-0", "0", "0", "-", "0:", "/a", "->", "/b"] in lines
        assert ["t-3", "1", "1", "-", "1:", "/b", "->", "/a"] in lines
        assert "2 replicas move between log dirs of a broker: 20.0 MiB to copy" in text
        assert "0 replica moves between brokers (proved minimal), 0 B to copy" in text
        assert "nothing to move" not in text

    def test_the_table_shows_where_new_replicas_are_placed(self) -> None:
        given = cluster(([0], ["/a"], 10), ([1], ["/a"], 10))
        text = ran("--log-dirs", "10%", "--decommission", "1", given=given).stdout
        assert ["t-1", "1", "0", "0", "0:", "/b"] in [line.split() for line in text.splitlines()]

    def test_where_all_are_even_nothing_moves(self, resource: Resource) -> None:
        given = cluster(([0], ["/a"], 10), ([1], ["/a"], 10), ([0], ["/b"], 10), ([1], ["/b"], 10))
        text = ran("--rebalance", resource({}), given=given).stdout
        assert "balanced already: nothing to move" in text
        assert "0 replicas move between log dirs of a broker: 0 B to copy" in text
        assert "LOG DIRS" not in text


class TestExplain:
    def test_the_plan(self, resource: Resource) -> None:
        file = resource(DRAIN, strategy="LogDirs")
        text = ran("--rebalance", file, command=explain).stdout
        assert "No replica moves to another broker." in text
        assert "Nothing moves" not in text
        assert "2 replicas move between log dirs of a broker: 20.0 MiB to copy" in text
        assert ["1", "/b", "10.0", "MiB", "->", "0", "B", "drained"] in [line.split() for line in text.splitlines()]
        document = json.loads(ran("--rebalance", file, "-o", "json", command=explain).stdout)
        assert (document["logDirs"]["moves"], document["logDirs"]["dataToMove"]) == (2, 20 * MIB)

    def test_a_plan_that_moves_nothing_says_so(self, resource: Resource) -> None:
        given = cluster(([0], ["/a"], 10), ([1], ["/b"], 10), ([0], ["/b"], 10), ([1], ["/a"], 10))
        text = ran("--rebalance", resource({}, strategy="LogDirs"), given=given, command=explain).stdout
        assert "Nothing moves: the plan is empty." in text

    def test_a_broker(self, resource: Resource) -> None:
        """What moves between its log dirs, and nothing of other brokers."""
        file = resource(DRAIN, strategy="LogDirs")
        text = ran("--rebalance", file, "--broker", "1", command=explain).stdout
        assert "1 replica moves between log dirs of a broker: 10.0 MiB to copy (at least 10.0 MiB have to)" in text
        assert ["1", "/a", "10.0", "MiB", "->", "20.0", "MiB", "22.0", "MiB"] in [x.split() for x in text.splitlines()]
        document = json.loads(ran("--rebalance", file, "--broker", "1", "-o", "json", command=explain).stdout)
        assert [row["id"] for row in document["logDirs"]["brokers"]] == [1]
        assert document["logDirs"]["dataToMove"] == 10 * MIB

    @pytest.mark.parametrize(
        ("partition", "says"),
        [
            ("t-0", "The replica on broker 0 moves from log dir /a to /b (10.0 MiB): /a is above its band."),
            ("t-3", "The replica on broker 1 moves from log dir /b to /a (10.0 MiB): /b is drained."),
            ("t-2", "Its replicas stay in their log dirs."),
        ],
    )
    def test_a_partition(self, resource: Resource, partition: str, says: str) -> None:
        file = resource(DRAIN, strategy="LogDirs")
        assert says in ran("--rebalance", file, "--partition", partition, command=explain).stdout

    def test_the_moves_of_a_partition_as_json(self, resource: Resource) -> None:
        arguments = ("--rebalance", resource(DRAIN), "--partition", "t-3", "-o", "json")
        document = json.loads(ran(*arguments, command=explain).stdout)
        assert document["logDirs"] == [{"broker": 1, "before": "/b", "after": "/a", "bytes": 10 * MIB}]

    def test_a_new_replica_is_placed(self) -> None:
        given = cluster(([0], ["/a"], 10), ([1], ["/a"], 10))
        arguments = ("--log-dirs", "10%", "--decommission", "1", "--partition", "t-1")
        text = ran(*arguments, given=given, command=explain).stdout
        assert "The new replica on broker 0 is placed in log dir /b." in text

    def test_an_exchange(self) -> None:
        """Neither log dir is within its band by a move alone."""
        given = cluster(([0], ["/a"], 6), ([0], ["/a"], 6), ([0], ["/b"], 4), ([0], ["/b"], 4))
        moved = {
            p: ran("--log-dirs", "1%", "--brokers", "0", "--partition", f"t-{p}", given=given, command=explain)
            for p in range(4)
        }
        said = "".join(done.stdout for done in moved.values())
        assert "/b to /a (4.0 MiB): exchanged for a replica of /a, which is above its band." in said


class TestRefused:
    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["--log-dirs", "10"], "like 10%"),
            (["--log-dirs", "0%"], "like 10%"),
            (["--drain-log-dir", "0:/a"], "--drain-log-dir requires --log-dirs"),
            (["--log-dirs", "10%", "--drain-log-dir", "/a"], "like 3:/data/2"),
            (
                ["--log-dirs", "10%", "--strategy", "LogDirs", "--decommission", "1"],
                "--decommission is not allowed with --strategy LogDirs",
            ),
        ],
    )
    def test_wrong_usage(self, arguments: list[str], says: str) -> None:
        done = ran(*arguments)
        assert done.exit_code == 2
        assert says in done.stderr

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (
                ["--log-dirs", "10%", "--drain-log-dir", "0:/c"],
                "--drain-log-dir: broker 0 has no log dir /c; it has: /a, /b",
            ),
            (
                ["--log-dirs", "10%", "--drain-log-dir", "7:/a"],
                "--drain-log-dir: broker 7 has no log dir /a; it has: none in the cluster file",
            ),
            (
                ["--log-dirs", "10%", "--drain-log-dir", "0:/a", "--drain-log-dir", "0:/b"],
                "--drain-log-dir: broker 0 has no other log dir; to empty a broker, use --decommission",
            ),
        ],
    )
    def test_a_log_dir_that_cannot_be_drained(self, arguments: list[str], says: str) -> None:
        assert refused(*arguments).partition("): ")[2] == says

    def test_a_resource_is_named_by_its_field(self, resource: Resource) -> None:
        rows_of = [{"broker": 1, "path": "/b"}, {"broker": 1, "path": "/c"}]
        file = resource({"drain": rows_of})
        assert refused("--rebalance", file) == (
            "refused (UnknownLogDir): spec.goals.logDirs.drain[1]: broker 1 has no log dir /c; it has: /a, /b"
        )

    @pytest.mark.parametrize("command", [plan, explain])
    def test_a_cluster_file_without_log_dirs(self, resource: Resource, command: Any) -> None:
        """The command cannot know where the replicas are, and names what asks for it."""
        given = {"brokers": [{"id": 0}], "partitions": [{"topic": "t", "partition": 0, "replicas": [0]}]}
        says = (
            "the cluster file has no logDirs of brokers, so where their replicas are is not known: `snapshot` writes "
            "logDirs of the brokers with more than one"
        )
        asks = {"--log-dirs": ("--log-dirs", "10%"), "spec.goals.logDirs": ("--rebalance", resource({}))}
        for name, arguments in asks.items():
            done = refused(*arguments, given=given, command=command)
            assert done == f"refused (LogDirsUnknown): {name}: {says}"

    def test_partitions_without_log_dirs(self) -> None:
        given = cluster(([0], ["/a"], 10), ([1], ["/a"], 10))
        for row in given["partitions"]:
            del row["log_dirs"]
        assert refused("--log-dirs", "10%", given=given) == (
            "refused (LogDirsUnknown): --log-dirs: the cluster file has no log dir of any replica (log_dirs)"
        )

    def test_sizes_that_are_not_known(self) -> None:
        given = cluster(([0], ["/a"], 10), ([0], ["/a"], 10))
        del given["partitions"][1]["size"]
        assert refused("--log-dirs", "10%", given=given) == (
            "refused (SizesUnknown): --log-dirs: log dirs are balanced by bytes, and the sizes of 1 partitions are "
            "unknown, for example t-1: add them, or use --load-model"
        )


class TestWarnings:
    def test_replicas_whose_log_dir_is_not_known(self) -> None:
        """They neither move nor count, which would otherwise not be seen. One in a log dir that is not listed, too."""
        given = cluster(([0], ["/a"], 10), ([0], ["any"], 10), ([1], ["/c"], 10))
        done = ran("--log-dirs", "10%", given=given)
        assert done.exit_code == 0
        assert done.stderr == (
            "warning: the cluster file has no log dir of 2 replicas, for example t-1 on broker 0: they stay and do not "
            "count\n"
        )

    def test_brokers_without_log_dirs(self) -> None:
        given = cluster(([0], ["/a"], 10), ([0], ["/b"], 10), ([1], ["/a"], 10), ([1], ["/b"], 10))
        given["brokers"].append({"id": 2})
        done = ran("--log-dirs", "10%", "--strategy", "LogDirs", given=given)
        assert done.exit_code == 0
        assert done.stderr == (
            "warning: the cluster file has no logDirs of broker 2: it is left alone, as a broker with one log dir\n"
        )
