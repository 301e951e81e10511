"""kafka-rebalance watch: what it prints, and how it ends."""

from unittest.mock import patch

import pytest
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.whole_program import run_program
from tests.unit.cli.commands.status_runs import NOW, resource

from kafka_rebalance.api.conditions import ReadySummary, summarise
from kafka_rebalance.api.resource_status import KafkaRebalanceStatus
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.reasons import Reason


class Readings(KubeInMemory):
    """An API server that returns one version of the resource per read; at the end the resource is gone."""

    def __init__(self, *bodies):
        super().__init__()
        self._bodies = list(bodies)

    async def get(self, plural, namespace, name):
        return self._bodies.pop(0) if self._bodies else None


def at(verdict, reason, message):
    conditions = summarise((), verdict, reason, message, generation=1, now=NOW)
    return resource(status=KafkaRebalanceStatus(observed_generation=1, conditions=conditions).as_patch()["status"])


WAITING = at(ReadySummary.IN_PROGRESS, Reason.SUSPENDED, "spec.execution.suspend is set; no new step is started")
MOVING = at(ReadySummary.IN_PROGRESS, Reason.REBALANCING, "moving replicas in small steps")
DONE = at(ReadySummary.DONE, Reason.SUCCEEDED, "3 of 3 partitions are at their targets")
STUCK = at(ReadySummary.STUCK, Reason.THROTTLE_TOO_LOW, "broker 4 takes 1.0 KiB/s at most")


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch):
    monkeypatch.setattr("kafka_rebalance.cli.commands.watch_command._EVERY_SECONDS", 0)


def watch(*bodies, options=()):
    with patch.object(KubeClient, "connect", lambda *_, **__: Readings(*bodies)):
        return run_program("watch", "r", "-n", "kafka", *options)


class TestTheEnd:
    """0 after success, 4 after a stall, 1 if the API server does not answer."""

    def test_one_that_was_never_there_is_no_good_end(self):
        """Otherwise a script would mistake a misspelt name for a completed rebalance."""
        done = watch()
        assert done.code == 1
        assert done.err == "failed (NotFound): KafkaRebalance kafka/r not found\n"
        assert done.out == ""

    def test_one_that_goes_while_it_is_watched_is(self):
        done = watch(MOVING)
        assert done.code == 0
        assert done.out.endswith("\nkafka/r is deleted\n")

    def test_success_is(self):
        assert watch(MOVING, DONE, MOVING).code == 0

    def test_an_undo_in_part_is_an_end(self):
        """Nothing more happens to the resource."""
        left = at(ReadySummary.STUCK, Reason.ROLLED_BACK_PARTIALLY, "1 partition is left as it is: t-0 (Drifted)")
        done = watch(MOVING, left, MOVING)
        assert done.code == 4
        assert done.err == "undone in part (RolledBackPartially): 1 partition is left as it is: t-0 (Drifted)\n"

    def test_a_stall_is_none_where_it_is_asked_for(self):
        done = watch(STUCK, options=("--exit-on-stall",))
        assert done.code == 4
        assert done.err == "stalled (ThrottleTooLow): broker 4 takes 1.0 KiB/s at most\n"


class TestLines:
    """The output to a pipe or a log."""

    def test_a_state_is_told_with_its_message(self):
        """It says what the rebalance waits for, and what the user has to do."""
        told = watch(WAITING, DONE).out.splitlines()
        assert "Suspended: spec.execution.suspend is set; no new step is started" in told
        assert "Succeeded: 3 of 3 partitions are at their targets" in told

    def test_a_state_without_figures_is_one_line(self):
        """The message says the state already."""
        assert watch(WAITING, DONE).out.splitlines() == [
            "Suspended: spec.execution.suspend is set; no new step is started",
            "Succeeded: 3 of 3 partitions are at their targets",
        ]

    def test_one_that_no_operator_has_seen(self):
        """It has neither figures nor a message."""
        assert watch(resource(status={}), DONE).out.splitlines()[0] == "Pending"

    def test_what_has_not_changed_is_not_told_again(self):
        assert watch(MOVING, MOVING, MOVING, DONE).out.count("moving replicas in small steps") == 1
