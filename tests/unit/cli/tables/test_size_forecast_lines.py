from __future__ import annotations

from kafka_rebalance.cli.tables.size_forecast_lines import known_forecasts, unknown_forecasts
from kafka_rebalance.pipeline.model_file import ForecastSummary, ModelSummary


def model(back: int | None, **forecasts: ForecastSummary) -> ModelSummary:
    """A model of sixty partitions; the oldest sizes are ``back`` days old."""
    lineage = {} if back is None else {"forecastReachesBackDays": back}
    found = {int(name.removeprefix("d")): summary for name, summary in forecasts.items()}
    return ModelSummary(60, 1000, 0.0, {}, {}, {"lineage": lineage}, found)


NONE = ForecastSummary(0, 0, 0)
MANY = ForecastSummary(50, 2048, 1024)


def test_a_history_that_is_too_short_is_said_with_the_numbers() -> None:
    """Of each number of days ahead by itself: two weeks are enough for a week, not for thirty days."""
    found = model(13, d1=MANY, d7=MANY, d30=NONE)
    assert list(known_forecasts(found)) == [
        "in 1 d: 1.0 KiB -> 2.0 KiB (50 of 60 partitions, one replica each)",
        "in 7 d: 1.0 KiB -> 2.0 KiB (50 of 60 partitions, one replica each)",
    ]
    assert list(unknown_forecasts(found)) == [
        "in 30 d: Unknown, because the oldest size is of 13 days ago and 50 are needed"
    ]


def test_without_any_history_too() -> None:
    assert [line.split("and")[-1] for line in unknown_forecasts(model(0))] == [
        " 9 are needed",
        " 11 are needed",
        " 50 are needed",
    ]


def test_too_few_partitions_are_another_reason() -> None:
    (line,) = unknown_forecasts(model(50, d1=MANY, d7=MANY, d30=NONE))
    assert "too few partitions" in line


def test_a_model_of_an_earlier_version_does_not_tell() -> None:
    assert list(unknown_forecasts(model(None))) == []
