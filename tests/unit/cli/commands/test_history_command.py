"""kafka-rebalance history: from the records, and without the right to read them from the resources."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.cli.commands.resource_runs import ENDED, HASH, OTHER, RUNNING, body, program, status, world
from tests.unit.cli.commands.status_runs import NOW, UID

from kafka_rebalance.cli.options.resource_lookup import stores
from kafka_rebalance.kube.api_errors import Forbidden
from kafka_rebalance.model.run import Run, RunOutcome

DONE = Run(UID, "kafka", "r", "c", "run-1", "sha256:p", HASH, NOW, NOW + timedelta(hours=2), RunOutcome.SUCCEEDED)
STARTED = replace(DONE, started_at=NOW + timedelta(minutes=30))


def recorded(*runs, bodies=()):
    kube = world(*bodies)

    async def save():
        for run in runs:
            await stores(kube).runs.save(run)

    asyncio.run(save())
    return kube


def rows(kube, *options):
    done = program(kube, "history", "-o", "json", *options)
    assert done.code == 0, done.err
    return [(row["name"], row["outcome"], row["planHash"]) for row in json.loads(done.out)["runs"]]


class TestRecords:
    def test_what_has_ended_the_latest_first(self):
        later = replace(DONE, uid="u-2", name="s", closed_at=NOW + timedelta(hours=3), outcome=RunOutcome.ROLLED_BACK)
        running = replace(DONE, uid="u-3", name="t", closed_at=None, outcome=None)
        kube = recorded(STARTED, later, running, replace(DONE, uid="u-4", namespace="other", name="u"))
        assert rows(kube) == [("s", "RolledBack", HASH), ("r", "Succeeded", HASH)]
        assert [row[0] for row in rows(kube, "-A")] == ["s", "u", "r"]
        assert rows(kube, "r") == [("r", "Succeeded", HASH)]

    def test_the_success_that_a_new_plan_has_not_replaced_yet(self):
        """The run that follows it has sent nothing, and undo leads back from the success."""
        following = replace(STARTED, plan_hash=OTHER, closed_at=None, outcome=None, last_success=STARTED)
        assert rows(recorded(following)) == [("r", "Succeeded", HASH)]

    def test_the_table(self):
        kube = recorded(STARTED)
        header, row = (line.split() for line in program(kube, "history").out.splitlines())
        assert header == ["NAME", "OUTCOME", "ENDED", "TOOK", "UID"]
        assert row == ["r", "Succeeded", "2026-01-01T14:00:00Z", "1h30m", UID]
        assert program(kube, "history", "-A").out.startswith("NAMESPACE")

    def test_none(self):
        done = program(recorded(), "history")
        assert (done.code, done.out, done.err) == (0, "", "no finished run is on record\n")


class TestWithoutRights:
    @pytest.fixture
    def kube(self):
        async def refused(_labels):
            raise Forbidden("configmaps is forbidden")

        kube = recorded(bodies=(body({}, status(ENDED)), body({}, status(RUNNING), name="s")))
        kube.list_config_maps = refused
        return kube

    def test_the_resources_that_have_ended(self, kube):
        assert rows(kube) == [("r", "Succeeded", HASH)]

    def test_it_says_so(self, kube):
        said = "only resources that exist are listed, for their status: configmaps is forbidden\n"
        assert program(kube, "history").err == said
