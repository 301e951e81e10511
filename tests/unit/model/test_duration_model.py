from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.duration_model import DurationModel, parse_durations
from kafka_rebalance.model.run_shape import Flow, RunShape

MODEL = DurationModel(
    cluster_id="c1",
    runs=40,
    newest=datetime(2026, 3, 4, tzinfo=UTC),
    efficiency=0.8,
    capacity=100.0,
    overhead_seconds=2.0,
    fixed_seconds=7.0,
    low=0.9,
    middle=1.0,
    high=1.5,
    median_error=0.1,
)


def shape(*pipes: Flow, alone: tuple[Flow, ...] = (), steps: int = 10, parallel: int = 5) -> RunShape:
    return RunShape(pipes, alone, steps, parallel)


class TestSeconds:
    @pytest.mark.parametrize(
        ("found", "seconds"),
        [
            (shape(Flow(8000, 50)), 7 + 8000 / 40 + 4),  # 80 % of the throttle
            (shape(Flow(8000, 1000)), 7 + 8000 / 100 + 4),  # the network carries no more
            (shape(Flow(8000, None)), 7 + 8000 / 100 + 4),
            (shape(Flow(8000, 50), Flow(4000, 20)), 7 + 4000 / 16 + 4),  # the busiest pipe
            (shape(Flow(400, 50), alone=(Flow(4000, 50),)), 7 + 4000 / 40 / 5 + 4),  # five at a time fill no pipe
            (shape(steps=0, parallel=1), 0),  # nothing begins
        ],
    )
    def test_formula(self, found: RunShape, seconds: float) -> None:
        """As the module says."""
        assert MODEL.plain_seconds(found) == pytest.approx(seconds)

    def test_what_was_never_seen_is_not_predicted(self) -> None:
        """Runs without a throttle say nothing of one, and the other way round."""
        free = DurationModel("c1", 40, MODEL.newest, None, 100.0, 2.0, 0.0)
        throttled = DurationModel("c1", 40, MODEL.newest, 0.8, None, 2.0, 0.0)
        assert free.interval(shape(Flow(8000, 50))) is None
        assert throttled.interval(shape(Flow(8000, None))) is None
        assert throttled.plain_seconds(shape(Flow(8000, 50))) == pytest.approx(204)

    def test_interval(self) -> None:
        """The errors come from the runs that it was learnt from."""
        assert MODEL.interval(shape(Flow(8000, 50))) == pytest.approx((211 * 0.9, 211 * 1.5))


class TestArtefact:
    def test_is_read_as_written(self) -> None:
        """Every number."""
        assert parse_durations(MODEL.to_json()) == MODEL

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"[]",
            b"{}",
            MODEL.to_json().replace(b'"version": 1', b'"version": 2'),
            MODEL.to_json().replace(b'"high": 1.5', b'"high": "much"'),
            MODEL.to_json().replace(b'"low": 0.9', b'"low": NaN'),
            MODEL.to_json().replace(b"+00:00", b""),
        ],
    )
    def test_anything_else_is_refused(self, data: bytes) -> None:
        """The message says what to do."""
        with pytest.raises(Refused, match="run `kafka-rebalance pipeline history`"):
            parse_durations(data)
