from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.duration_model import DurationModel
from kafka_rebalance.model.run_shape import Flow, RunShape
from kafka_rebalance.pipeline.duration_fit import PastRun, learn

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
TRUE = DurationModel("c1", 0, NOON, efficiency=0.85, capacity=90e6, overhead_seconds=3.0, fixed_seconds=12.0)


def runs(count: int, noise: float = 0.0) -> list[PastRun]:
    """As ``TRUE`` says, but for the noise."""
    rng = random.Random(4)
    found = []
    for _ in range(count):
        rate = rng.choice((None, 10_000_000, 50_000_000))
        steps, parallel = rng.randrange(5, 200), rng.choice((1, 5, 50))
        total = 10 ** rng.uniform(9, 11)
        shape = RunShape(
            (Flow(total / 3, rate), Flow(total / 9, rate)), (Flow(total, rate),), steps, min(parallel, steps)
        )
        plain = TRUE.plain_seconds(shape)
        assert plain is not None
        found.append(PastRun(shape, plain * (1 + rng.uniform(-noise, noise)), NOON))
    return found


def test_finds_what_made_the_runs() -> None:
    """Numbers that a person can check."""
    model = learn("c1", runs(40))
    assert model.efficiency == pytest.approx(0.85, rel=0.02)
    assert model.capacity == pytest.approx(90e6, rel=0.02)
    assert model.overhead_seconds == pytest.approx(3.0, rel=0.1)
    assert model.median_error < 0.02


def test_short_runs_have_a_fixed_time() -> None:
    """It takes as long to begin and to end a run of seconds as one of hours: no share of the throttle explains both."""
    rng, found = random.Random(5), []
    for number in range(22):
        rate, parallel = 1_000_000 * (1, 2, 4)[number % 3], (1, 2, 6)[number // 3 % 3]
        shape = RunShape((Flow(6e6, rate),), (Flow(12e6, rate),), 12, parallel)
        plain = TRUE.plain_seconds(shape)
        assert plain is not None
        found.append(PastRun(shape, plain * (1 + rng.uniform(-0.05, 0.05)), NOON))
    model = learn("c1", found)
    assert model.fixed_seconds == pytest.approx(12, rel=0.2)
    assert model.median_error < 0.05


def test_the_interval_is_that_of_the_runs() -> None:
    """Of errors spread evenly over 30 % in both directions, eight of ten are within 24 %."""
    model = learn("c1", runs(120, noise=0.3))
    assert model.low == pytest.approx(0.76, abs=0.07)
    assert model.high == pytest.approx(1.24, abs=0.07)
    assert model.median_error == pytest.approx(0.15, abs=0.05)


def test_too_few_are_refused() -> None:
    """The message says which runs count."""
    with pytest.raises(Refused, match="19 runs can be learnt from, 20 are needed"):
        learn("c1", runs(19))
