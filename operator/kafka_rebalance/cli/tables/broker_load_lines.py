"""Says what the brokers of a load model carry: the fullest one of each resource, and hot partitions. Pure."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.printable_text import printable
from kafka_rebalance.units import format_bytes, format_rate

if TYPE_CHECKING:
    from kafka_rebalance.pipeline.broker_loads import BrokerLoad
    from kafka_rebalance.pipeline.model_file import ModelSummary

_NAMED = 5
"""The maximum number of hot partitions that are named per cluster."""


def known_broker_loads(model: "ModelSummary") -> Iterator[str]:
    """A line for each resource that is known of all brokers, and for the hot partitions with the largest shares."""
    from kafka_rebalance.pipeline.broker_loads import imbalance

    for resource in LoadResource:
        most = imbalance(model.brokers, resource)
        if most is not None:
            loads = _of(model, resource)
            least = min(loads, key=lambda load: load.windows)
            form = format_bytes if resource is LoadResource.DISK else format_rate
            yield (
                f"{resource}: broker {most.broker} has most, {form(most.p95)} (p95 of summed windows), "
                f"{most.ratio:.2f} times an equal share of {len(loads)} brokers; known in {least.windows} or more of "
                f"{least.of_windows} windows"
            )
    hot = sorted(
        ((hot, load) for load in model.brokers for hot in load.hot_partitions or ()),
        key=lambda found: (-found[0].share, found[0][:2], found[1].broker),
    )
    for partition, load in hot[:_NAMED]:
        name = f"{printable(partition.topic)}-{partition.partition}"
        yield f"{load.resource}: hot partition {name}, {partition.share:.0%} of what broker {load.broker} has"
    if len(hot) > _NAMED:
        yield f"{len(hot) - _NAMED} more hot partitions are in broker-loads.parquet"


def unknown_broker_loads(model: "ModelSummary") -> Iterator[str]:
    """A line for each resource that is not known of all brokers, with an example of why."""
    for resource in LoadResource:
        loads = _of(model, resource)
        unknown = [load for load in loads if load.p95 is None]
        if unknown:
            worst = min(unknown, key=lambda load: (load.known_partitions - load.partitions, load.broker))
            yield (
                f"{resource}: Unknown for {len(unknown)} of {len(loads)} brokers, for example broker {worst.broker}: "
                f"in no window are all its {worst.partitions} partitions known, at most {worst.known_partitions}"
            )


def _of(model: "ModelSummary", resource: LoadResource) -> "list[BrokerLoad]":
    return [load for load in model.brokers if load.resource is resource]
