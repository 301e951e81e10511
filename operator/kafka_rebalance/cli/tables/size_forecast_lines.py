"""Says what a load model forecasts of sizes, and of each forecast that it lacks why. Pure."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafka_rebalance.units import format_bytes

if TYPE_CHECKING:
    from kafka_rebalance.pipeline.model_file import ModelSummary


def known_forecasts(model: "ModelSummary") -> Iterator[str]:
    """A line for each number of days ahead for which some partitions have a forecast."""
    for days, found in sorted(model.forecasts.items()):
        if found.partitions:
            sizes = f"{format_bytes(found.now_bytes)} -> {format_bytes(found.size_bytes)}"
            yield f"in {days} d: {sizes} ({found.partitions} of {model.partitions} partitions, one replica each)"


def unknown_forecasts(model: "ModelSummary") -> Iterator[str]:
    """Why no partition has one for the other days; nothing for a model of a version without forecasts."""
    from kafka_rebalance.pipeline.size_history import HORIZONS, days_needed

    back = model.header["lineage"].get("forecastReachesBackDays")
    if back is None:
        return
    unknown = [days for days in HORIZONS if days not in model.forecasts or not model.forecasts[days].partitions]
    for days in unknown:
        needed = days_needed(days)
        if back < needed:
            yield f"in {days} d: Unknown, because the oldest size is of {back} days ago and {needed} are needed"
        else:
            yield f"in {days} d: Unknown, because there are too few partitions to measure the error"
