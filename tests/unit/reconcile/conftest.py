"""Every status that the operator writes in these tests must follow the state table."""

import os

import pytest
from tests.arch.state_transitions import transitions
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.shared_clusters import SharedClusters
from tests.fakes.state_walk import StateWalk

from kafka_rebalance.reconcile import connection_retries
from kafka_rebalance.reconcile import supervisor as supervising

_REPORT = "REPORT_STATES"
"""Set this variable to list the transitions that the tests have covered, and those that they have not."""

_walked = set()


@pytest.fixture(autouse=True)
def state_walk(monkeypatch):
    """The states of the KafkaRebalances of one test."""
    walk = StateWalk()
    monkeypatch.setattr(KubeInMemory, "patch_status", walk.following(KubeInMemory.patch_status))
    yield walk
    _walked.update(walk.rows)
    assert not walk.refused, "\n".join(walk.refused)


@pytest.fixture
async def world(monkeypatch):
    """An operator whose clusters several owners claim."""
    monkeypatch.setattr(supervising, "_LOOK_SECONDS", 0.02)
    for name in ("FIRST_PAUSE_SECONDS", "LONGEST_PAUSE_SECONDS"):
        monkeypatch.setattr(connection_retries, name, 0.02)
    world = SharedClusters()
    yield world
    for supervisor in world.supervisors:
        await supervisor.stop()


def pytest_terminal_summary(terminalreporter):
    """Only on request, and not with several workers, as each knows only its own tests."""
    if os.environ.get(_REPORT):
        for before, after in transitions():
            seen = "walked    " if (before, after) in _walked else "not walked"
            terminalreporter.write_line(f"{seen} {before or '[*]'} -> {after}")
