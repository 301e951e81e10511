"""Runs `kafka-rebalance execute` for its tests: the whole program with an API server and a Kafka in memory."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import yaml
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.whole_program import run_program
from tests.unit.cli.commands.test_verify_command import Cluster, state

from kafka_rebalance.cli.commands import execute_command as execute
from kafka_rebalance.cli.options import resource_lookup as resource
from kafka_rebalance.kube.api_errors import Conflict

FILE = {
    "version": 1,
    "partitions": [
        {"topic": "t", "partition": 1, "replicas": [1, 2]},
        {"topic": "t", "partition": 0, "replicas": [2, 3]},
    ],
}
CURRENT = (
    '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["/disk-1","/disk-2"]},'
    '{"topic":"t","partition":1,"replicas":[3,2],"log_dirs":["any","any"]}]}'
)
ROLLBACK = (
    f"Current partition replica assignment\n\n{CURRENT}\n\n"
    "Save this to use as the --reassignment-json-file option during rollback\n\n"
)


class Kube(KubeInMemory):
    """Stores created objects by path. ``failing`` is raised instead of a request for a kind, ``after`` after it.

    ``no_dry_runs`` is raised instead of every dry run.
    """

    def __init__(self) -> None:
        super().__init__()
        self.created: dict[str, Any] = {}
        self.failing: dict[str, Exception] = {}
        self.after: dict[str, Exception] = {}
        self.no_dry_runs: Exception | None = None

    async def get(self, plural: str, namespace: str, name: str) -> Any:
        return self.created.get(f"/apis/kafkarebalance.dev/v1alpha1/namespaces/{namespace}/{plural}/{name}")

    async def request(self, method: str, path: str, body: Any = None, *, content_type: str = "") -> Any:
        if method == "GET":
            return self.created[path]
        assert method == "POST", "nothing that is there is changed or deleted"
        where, _, options = path.partition("?")
        assert "fieldValidation=Strict" in options
        if self.no_dry_runs is not None and "dryRun=All" in options:
            raise self.no_dry_runs
        if body["kind"] in self.failing:
            raise self.failing[body["kind"]]
        where = f"{where}/{body['metadata']['name']}"
        if where in self.created:
            raise Conflict("exists")
        if "dryRun=All" not in options:
            self.created[where] = {**body, "metadata": {**body["metadata"], "uid": "u-1", "generation": 1}}
            if body["kind"] in self.after:
                raise self.after[body["kind"]]
        return body


class World:
    """One run of the program."""

    def __init__(self) -> None:
        self.cluster = Cluster(state(0, 1, 2), state(1, 3, 2))
        self.kube = Kube()

    def run(self, *arguments: str, file: Any = FILE, servers: str = "kafka:9092") -> tuple[Any, str, str]:
        with (
            patch.object(execute, "connect", lambda _: self.cluster),
            patch.object(resource.KubeClient, "connect", lambda *_, **__: self.kube),
        ):
            return run_program("execute", "--bootstrap-servers", servers, *arguments, stdin=json.dumps(file))

    def printed(self, *arguments: str) -> list[dict[str, Any]]:
        code, out, err = self.run(*arguments)
        assert code == 0, err
        return list(yaml.safe_load_all(out))


FROM_FILE = ("--reassignment-json-file", "-")
