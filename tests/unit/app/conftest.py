"""Rebalances from a file without Kubernetes, with short waits."""

import pytest
from tests.fakes.shared_clusters import Cluster
from tests.unit.app.local_terminal import BEFORE, Terminal

from kafka_rebalance.app import local_run
from kafka_rebalance.execution import list_state, rate_state
from kafka_rebalance.reconcile.decide import arrival_proof, requeue


@pytest.fixture
def short_waits(monkeypatch):
    for name in ("BUSY_SECONDS", "SENT_SECONDS", "RESTING_SECONDS", "UNSETTLED_SECONDS", "QUEUE_SECONDS"):
        monkeypatch.setattr(requeue, name, 0.01)
    for rule in (list_state, rate_state):
        monkeypatch.setattr(rule, "LATE_SECONDS", 0.1)
    for name in ("CALL_SECONDS", "SECOND_READING_SECONDS"):
        monkeypatch.setattr(arrival_proof, name, 0.1)
    monkeypatch.setattr(local_run, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(local_run, "_RESTORE_LOOKS", 100)


@pytest.fixture
def kafka():
    return Cluster((1, 2, 3, 4), t=BEFORE)


@pytest.fixture
def terminal(kafka, tmp_path, short_waits):
    return Terminal(kafka, tmp_path / "records")
