"""Liveness and readiness of the operator."""

import math

import pytest

from kafka_rebalance.app.health import (
    SILENT_SECONDS,
    STANDBY_SECONDS,
    WATCH_SECONDS,
    ProcessState,
    Stage,
    liveness_failures,
    readiness_failures,
)


def leading(**changes):
    usual = {"is_leader": True, "watching": True, "watch_age": 0.5, "rounds": {"c": 1.0}}
    return ProcessState(Stage.LEADING, **{**usual, **changes})


class TestLive:
    """Liveness fails only for a condition that a restart would fix."""

    def test_runs(self):
        assert liveness_failures(leading()) == []

    @pytest.mark.parametrize("state", [ProcessState(Stage.STANDBY), ProcessState(Stage.STOPPING, watch_age=math.inf)])
    def test_nothing_that_could_hang_runs(self, state):
        """On standby or while stopping, only the event loop runs, and it answers the probe."""
        assert liveness_failures(state) == []

    @pytest.mark.parametrize("away", [{"is_leader": False}, {"watching": False}, {"watch_age": None}, {"rounds": {}}])
    def test_the_api_server_or_kafka_is_away(self, away):
        """A restart would not bring them back, and would lose the state in memory."""
        assert liveness_failures(leading(**away)) == []

    def test_the_watch_is_blocked(self):
        assert liveness_failures(leading(watch_age=WATCH_SECONDS)) == []
        assert liveness_failures(leading(watch_age=WATCH_SECONDS + 1)) == ["the watch has been blocked for 61 s"]

    def test_an_engine_hangs(self):
        """Each such cluster is named by its id; the others are not."""
        rounds = {"b": SILENT_SECONDS + 5, "a": math.inf, "c": SILENT_SECONDS}
        assert liveness_failures(leading(rounds=rounds)) == [
            "the engine of cluster a has ended",
            "no call of the engine of cluster b has ended for 305 s",
        ]

    def test_a_task_that_must_not_end_has_ended(self):
        state = leading(failed_tasks=("the task that connects namespace kafka",))
        assert liveness_failures(state) == ["the task that connects namespace kafka has ended"]


class TestReady:
    """Ready when leading or on standby."""

    def test_leads(self):
        assert readiness_failures(leading()) == []

    def test_waits_for_another(self):
        """Otherwise a rolling update would deadlock: it waits for the new Pod, which waits for the old Pod's Lease."""
        assert readiness_failures(ProcessState(Stage.STANDBY, standby_age=STANDBY_SECONDS)) == []

    @pytest.mark.parametrize("age", [None, STANDBY_SECONDS + 0.1])
    def test_waits_and_does_not_know_for_whom(self, age):
        state = ProcessState(Stage.STANDBY, standby_age=age)
        assert readiness_failures(state) == ["the API server has not said who holds the lease"]

    def test_leads_and_does_not_watch_yet(self):
        assert readiness_failures(leading(watching=False)) == ["not watching yet"]

    def test_leads_without_a_lease_that_is_valid(self):
        assert readiness_failures(leading(is_leader=False)) == ["the lease was not renewed in time"]

    def test_stops(self):
        assert readiness_failures(ProcessState(Stage.STOPPING, is_leader=True, watching=True)) == ["stopping"]

    def test_is_not_ready_when_dead(self):
        assert readiness_failures(leading(watch_age=99.0)) == ["the watch has been blocked for 99 s"]
