"""Brokers that refuse to change their cordon are asked again after a growing pause, and fill no log."""

from datetime import timedelta

import pytest
from tests.fakes.stopped_clock import StoppedClock

from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.act.refused_cordons import RefusedCordons

FOUR, FIVE, SIX = BrokerId(4), BrokerId(5), BrokerId(6)


@pytest.fixture
def clock():
    return StoppedClock()


@pytest.fixture
def refused(clock):
    return RefusedCordons(clock.monotonic)


class TestPause:
    def test_a_broker_that_has_not_refused_does_not_wait(self, refused):
        """Nor does another kind of change."""
        refused.answered("Set", {FOUR}, ())
        assert refused.due("Set", {FOUR, FIVE}) == {FIVE}
        assert refused.due("Delete", {FOUR, FIVE}) == {FOUR, FIVE}

    def test_all_that_have_refused_wait_together(self, refused, clock):
        """If each had a pause of its own, many brokers that refuse one after the other would be asked all the time."""
        refused.answered("Set", {FOUR}, ())
        clock.at += timedelta(seconds=0.5)
        refused.answered("Set", {FIVE}, ())
        clock.at += timedelta(seconds=1)
        assert refused.due("Set", {FOUR, FIVE}) == set()
        clock.at += timedelta(seconds=1)
        assert refused.due("Set", {FOUR, FIVE}) == {FOUR, FIVE}

    def test_it_ends_when_all_have_accepted(self, refused):
        refused.answered("Set", {FOUR, FIVE}, ())
        refused.answered("Set", (), {FOUR})
        assert refused.due("Set", {FOUR, FIVE}) == {FOUR}
        refused.answered("Set", (), {FIVE})
        assert refused.due("Set", {FOUR, FIVE}) == {FOUR, FIVE}


class TestNews:
    def test_one_line_for_all_brokers(self, refused):
        answers = {BrokerId(b): "INVALID_CONFIG: no" for b in range(1, 51)} | {FOUR: None}
        assert refused.news("Set of x", answers) == "Set of x on brokers 1, 2, 3 and 46 more: INVALID_CONFIG: no"

    def test_a_long_answer_is_cut(self, refused):
        assert len(refused.news("Set of x", {FOUR: "x" * 100_000})) < 400

    def test_what_was_said_last_is_not_said_again(self, refused):
        assert refused.news("Set of x", {FOUR: "no"})
        assert not refused.news("Set of x", {FOUR: None})
        assert not refused.news("Set of x", {FOUR: "no"})
        assert refused.news("Delete of x", {FOUR: "no"})
        assert refused.news("Delete of x", {FOUR: "never"})
