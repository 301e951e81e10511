"""The outputs in docs/cli.md of `check-install` and `retire` are those of the program."""

import asyncio
from datetime import UTC, datetime
from unittest.mock import patch

from tests.docs.pages import sample
from tests.fakes.installed_kube import InstalledKube
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.whole_program import Done, run_program
from tests.unit.cli.commands.resource_runs import RUNNING, UID, body, status, world

from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.lease import LEASE_NAME
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.run import Run

WHERE = ("--all-namespaces", "--own-namespace", "kafka-rebalance")
NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def run(kube: KubeInMemory, *arguments: str) -> Done:
    with patch.object(KubeClient, "connect", lambda *_, **__: kube):
        return run_program(*arguments)


def test_check_install():
    kube = InstalledKube()
    renewed = datetime.now(UTC).isoformat()
    spec = {"holderIdentity": "kafka-rebalance-operator-5d8c7b9f4-x2x7k", "renewTime": renewed}
    asyncio.run(kube.create_lease({"metadata": {"name": LEASE_NAME}, "spec": spec}))
    done = run(kube, "check-install", *WHERE)
    assert done.out.splitlines() == sample(" ".join(("check-install", *WHERE)))
    assert done.code == 0


def test_retire():
    """A rebalance is running."""
    kube = world(body({}, status(RUNNING), name="add-brokers"))
    asyncio.run(RunStore(kube).save(Run(UID, "kafka", "add-brokers", "c", "run-1", "h", "p", NOW)))
    options = (*WHERE, "--deployment", "kafka-rebalance-operator")
    done = run(kube, "retire", *options)
    assert (done.code, done.out) == (3, "")
    assert done.err.splitlines() == sample(" ".join(("retire", *options)))
