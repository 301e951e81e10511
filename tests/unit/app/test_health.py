"""Liveness and readiness of the operator."""

import math

import pytest

from kafka_rebalance.app.health import (
    ROUND_SECONDS,
    STANDBY_SECONDS,
    WATCH_SECONDS,
    Pulse,
    Stage,
    why_dead,
    why_unready,
)


def leading(**changes):
    usual = {"is_leader": True, "watching": True, "watch_age": 0.5, "rounds": {"c": 1.0}}
    return Pulse(Stage.LEADING, **{**usual, **changes})


class TestAlive:
    """Fails only for what a restart would fix."""

    def test_turns(self):
        assert why_dead(leading()) == []

    @pytest.mark.parametrize("pulse", [Pulse(Stage.STANDBY), Pulse(Stage.STOPPING, watch_age=math.inf)])
    def test_nothing_turns_yet_or_any_more(self, pulse):
        """On standby, or while stopping, nothing but the loop runs, and that answers."""
        assert why_dead(pulse) == []

    @pytest.mark.parametrize("away", [{"is_leader": False}, {"watching": False}, {"watch_age": None}, {"rounds": {}}])
    def test_the_api_server_or_kafka_is_away(self, away):
        """A restart would not bring them back, and would lose what is in memory."""
        assert why_dead(leading(**away)) == []

    def test_the_watch_stands_still(self):
        assert why_dead(leading(watch_age=WATCH_SECONDS)) == []
        assert why_dead(leading(watch_age=WATCH_SECONDS + 1)) == ["the watch has been blocked for 61 s"]

    def test_an_engine_hangs(self):
        """Each such cluster is named by its id, others are not."""
        rounds = {"b": ROUND_SECONDS + 5, "a": math.inf, "c": ROUND_SECONDS}
        assert why_dead(leading(rounds=rounds)) == [
            "the engine of cluster a has ended",
            "the engine of cluster b has been in one round for 605 s",
        ]


class TestReady:
    """Leading or on standby."""

    def test_acts(self):
        assert why_unready(leading()) == []

    def test_waits_for_another(self):
        """Otherwise a rolling update would wait for the new Pod, and that for the old one's Lease, for ever."""
        assert why_unready(Pulse(Stage.STANDBY, standby_age=STANDBY_SECONDS)) == []

    @pytest.mark.parametrize("age", [None, STANDBY_SECONDS + 0.1])
    def test_waits_and_does_not_know_for_whom(self, age):
        pulse = Pulse(Stage.STANDBY, standby_age=age)
        assert why_unready(pulse) == ["the API server has not said who holds the lease"]

    def test_leads_and_does_not_watch_yet(self):
        assert why_unready(leading(watching=False)) == ["not watching yet"]

    def test_leads_without_a_lease_that_is_valid(self):
        assert why_unready(leading(is_leader=False)) == ["the lease was not renewed in time"]

    def test_stops(self):
        assert why_unready(Pulse(Stage.STOPPING, is_leader=True, watching=True)) == ["stopping"]

    def test_is_not_ready_when_dead(self):
        assert why_unready(leading(watch_age=99.0)) == ["the watch has been blocked for 99 s"]
