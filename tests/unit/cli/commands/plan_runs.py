"""Runs `kafka-rebalance plan` for its tests: the whole program on small clusters."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.fakes.whole_program import run_program

CLUSTER = {
    "brokers": [{"id": 0, "rack": "a"}, {"id": 1, "rack": "b"}, {"id": 2, "rack": "c"}, {"id": 3}],
    "partitions": [
        {"topic": "t", "partition": 0, "replicas": [0, 1], "size": 1000},
        {"topic": "t", "partition": 1, "replicas": [0, 1]},
        {"topic": "u", "partition": 5, "replicas": [1, 0], "size": 10},
        {"topic": "u", "partition": 7, "replicas": [1, 0], "size": 10},
    ],
}
SETTLED = {
    "brokers": [{"id": 0}, {"id": 1}],
    "partitions": [
        {"topic": "u", "partition": 8, "replicas": [1, 0]},
        {"topic": "u", "partition": 9, "replicas": [0, 1]},
    ],
}
RESOURCE = {
    "apiVersion": "kafkarebalance.dev/v1alpha1",
    "kind": "KafkaRebalance",
    "metadata": {"name": "spread"},
    "spec": {
        "kafka": {"bootstrapServers": "kafka:9092"},
        "topics": {"include": ["t"]},
        "brokers": {"decommission": [1]},
    },
}


@dataclass(frozen=True)
class Done:
    """The exit code and the output of the program."""

    returncode: int
    stdout: bytes
    stderr: bytes


def run(*arguments: str, stdin: bytes = b"") -> Done:
    """Run the whole program, exit codes included."""
    done = run_program("plan", *arguments, stdin=stdin)
    return Done(done.code, done.out.encode(), done.err.encode())


def planned(*arguments: str, cluster: Any = CLUSTER) -> dict[str, Any]:
    done = run("--cluster", "-", "-o", "json", *arguments, stdin=json.dumps(cluster).encode())
    assert done.returncode == 0, done.stderr.decode()
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


def table(*arguments: str, cluster: Any = CLUSTER) -> str:
    done = run("--cluster", "-", *arguments, stdin=json.dumps(cluster).encode())
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def lists(document: dict[str, Any]) -> dict[str, list[int]]:
    return {f"{p['topic']}-{p['partition']}": p["replicas"] for p in document["partitions"]}


def without_sizes() -> Any:
    bare = [{k: v for k, v in p.items() if k != "size"} for p in CLUSTER["partitions"]]
    return {**CLUSTER, "partitions": bare}


def with_partition(**changes: Any) -> Any:
    return {**CLUSTER, "partitions": [{**CLUSTER["partitions"][0], **changes}]}
