"""kafka-rebalance plan: a refusal names the cause, has an exit code, and prints nothing on stdout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.commands.plan_runs import CLUSTER, run, with_partition


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "cluster", "code", "says"),
        [
            (["--brokers", "0"], CLUSTER, 3, "t-0 needs 2 replicas, only 1 eligible brokers"),
            (["--brokers", "0,42"], CLUSTER, 3, "broker 42"),
            (["--decommission", "42"], CLUSTER, 3, "broker 42"),
            (
                [],
                with_partition(replicas=[0, 0]),
                3,
                "partitions[0].replicas of topic-partition t-0 names a broker twice",
            ),
            ([], {**CLUSTER, "partitions": CLUSTER["partitions"][:1] * 2}, 3, "partitions[1]: topic-partition t-0"),
            ([], {**CLUSTER, "brokers": [{"id": 0}, {"id": 0}]}, 3, "broker 0 is listed twice"),
            ([], with_partition(replicas=[0, -1]), 2, "partitions[0].replicas of topic-partition t-0: -1"),
            ([], with_partition(replicas=[0, "1"]), 2, "expected an integer, found '1'"),
            ([], with_partition(replicas=[True]), 2, "expected an integer, found True"),
            ([], with_partition(replicas=[]), 2, "at least one broker id"),
            ([], with_partition(partition=1.5), 2, "partitions[0].partition of topic t"),
            ([], with_partition(size=-1), 2, "partitions[0].size of topic-partition t-0"),
            ([], {"brokers": []}, 2, "'partitions' is missing"),
            ([], {**CLUSTER, "brokers": [{"rack": "a"}]}, 2, "brokers[0]: 'id' is missing"),
            ([], {**CLUSTER, "brokers": [{"id": 0, "rack": 7}]}, 2, "brokers[0].rack of broker 0"),
            ([], [], 2, "expected an object"),
            ([], {**CLUSTER, "brokers": [{"id": 0, "rak": "a"}]}, 2, "brokers[0]: unknown key 'rak'"),
            (["--brokers", "0,2147483648"], CLUSTER, 2, "2147483648 is not between 0 and 2147483647"),
            (["--decommission=-1"], CLUSTER, 2, "-1 is not between 0 and 2147483647"),
            (["--strategy", "Better"], CLUSTER, 2, "MinimalMovement"),
            (["--strategy", "Generate"], CLUSTER, 3, "broker 3 has no rack and others have"),
            (["--strategy", "Assignment"], CLUSTER, 2, "--assignment-json-file is required"),
            (
                ["--strategy", "PreferredLeaders", "--replication-factor", "3"],
                CLUSTER,
                2,
                "--replication-factor is not allowed",
            ),
            (
                ["--strategy", "ForcedMovesOnly", "--minimum-gain", "3"],
                CLUSTER,
                2,
                "require --strategy MinimalMovement",
            ),
            (["--replication-factor", "5"], CLUSTER, 3, "t-0 needs 5 replicas, only 4 eligible brokers"),
            (["--max-data-to-move", "much"], CLUSTER, 2, "--max-data-to-move"),
            (["--pin-topics", "("], CLUSTER, 2, "--pin-topics"),
            (["--balance", "Fair"], CLUSTER, 2, "Total"),
        ],
    )
    def test_it_is_named_and_nothing_is_printed(self, arguments: list[str], cluster: Any, code: int, says: str) -> None:
        """Exit 2: the input is malformed; exit 3: it is well-formed but cannot be planned. stdout stays empty."""
        done = run("--cluster", "-", "-o", "json", *arguments, stdin=json.dumps(cluster).encode())
        assert done.returncode == code, done.stderr.decode()
        assert says in " ".join(done.stderr.decode().split())
        assert done.stdout == b""

    @pytest.mark.parametrize("data", [b"", b"{", b"\x1f\x8bbroken", b"\xff\xfe", b"[" * 100_000])
    def test_what_is_no_json_is_said_so(self, data: bytes) -> None:
        """Any invalid bytes lead to a message, not to a stack trace."""
        done = run("--cluster", "-", stdin=data)
        assert done.returncode == 2
        assert b"Traceback" not in done.stderr
        assert b"--cluster" in done.stderr

    def test_an_empty_file_is_said_to_be_empty(self) -> None:
        """A failed command before the pipe has this result."""
        assert b"the file is empty" in run("--cluster", "-", stdin=b"").stderr

    def test_topics_that_do_not_exist_are_named(self, tmp_path: Path) -> None:
        """A typo in Kafka's topics file must not result in an empty plan."""
        topics = tmp_path / "topics.json"
        topics.write_text(json.dumps({"topics": [{"topic": "nope"}], "version": 1}))
        done = run("--cluster", "-", "--topics-to-move-json-file", str(topics), stdin=json.dumps(CLUSTER).encode())
        assert (done.returncode, done.stdout) == (3, b"")
        assert b"nope" in done.stderr
