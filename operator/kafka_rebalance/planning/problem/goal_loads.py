"""What each partition weighs for the goals by load: sizes, and rates of the pipeline's load model.

A rate that is measured for too short a time counts as unknown. A few unknown ones are estimated; with more of them the
plan would balance guesses, and is refused.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import fmean, median

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.goals import LoadGoal, LoadResource
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.planning.problem.request import PartitionInput
from kafka_rebalance.reasons import Reason
from kafka_rebalance.units import format_duration

MAX_UNKNOWN_PERCENT = 5

_SOURCES = {
    LoadResource.BYTES_OUT: "let the sampler read all consumer groups (Describe on groups) or run `kafka-rebalance "
    "pipeline metrics`, "
}

_Loads = Mapping[TopicPartition, PartitionLoad | None]


def needs_rates(goals: Iterable[LoadGoal]) -> bool:
    """Whether sizes alone are not enough."""
    return any(goal.resource is not LoadResource.DISK for goal in goals)


def with_loads(
    partitions: Iterable[PartitionInput], goals: tuple[LoadGoal, ...], model: LoadModel | None
) -> tuple[PartitionInput, ...]:
    """The partitions with ``loads`` for these goals.

    Refused(RatesUnknown) if rates are needed and there is no model, or those of more than ``MAX_UNKNOWN_PERCENT`` of
    the partitions are unknown. Up to that, an unknown rate is estimated as the mean of the topic's known ones, else 0.
    """
    found = tuple(partitions)
    if not goals:
        return found
    loads: _Loads = {}
    if needs_rates(goals):
        if model is None:
            names = ", ".join(goal.resource for goal in goals if goal.resource is not LoadResource.DISK)
            raise Refused(
                Reason.RATES_UNKNOWN,
                f"goals.load by {names} needs a load model, and there is none of this cluster: run `kafka-rebalance "
                "pipeline sample` and `load-model`, and pass the model (--load-model; "
                "operator and run: its directory, --load-models); or use Disk alone",
            )
        loads = {p.tp: model.load_of(p.tp, p.topic_id) for p in found}
    columns = [
        [float(p.size_bytes) for p in found] if goal.resource is LoadResource.DISK else _rates(found, goal, loads)
        for goal in goals
    ]
    written = _written(found, goals, loads)
    return tuple(
        replace(p, loads=values, written=each)
        for p, values, each in zip(found, zip(*columns, strict=True), written, strict=True)
    )


def _written(partitions: tuple[PartitionInput, ...], goals: tuple[LoadGoal, ...], loads: _Loads) -> list[float]:
    """Bytes in by the statistic of BytesOut, where no goal has them: each follower fetches them from the leader."""
    resources = {goal.resource for goal in goals}
    if LoadResource.BYTES_OUT not in resources or resources & {LoadResource.BYTES_IN, LoadResource.LEADER_BYTES_IN}:
        return [0.0] * len(partitions)
    out = next(goal for goal in goals if goal.resource is LoadResource.BYTES_OUT)
    goal = replace(out, resource=LoadResource.BYTES_IN)
    return _rates(partitions, goal, loads, "BytesOut (what followers fetch, by bytes in)")


def _rates(partitions: tuple[PartitionInput, ...], goal: LoadGoal, loads: _Loads, named: str = "") -> list[float]:
    known = [_rate(loads[p.tp], goal) for p in partitions]
    counted = [p for p in partitions if p.counts]
    unknown = [p.tp for p, rate in zip(partitions, known, strict=True) if rate is None and p.counts]
    if 100 * len(unknown) > MAX_UNKNOWN_PERCENT * len(counted):
        covered = median(load.covered(goal.resource) if (load := loads[p.tp]) else 0.0 for p in counted)
        share = f"{len(unknown)} of {len(counted)} partitions ({100 * len(unknown) / len(counted):.0f} %)"
        raise Refused(
            Reason.RATES_UNKNOWN,
            f"goals.load by {named or goal.resource}: {share}, for example {min(unknown)}, have no rate or one that "
            f"covers less than {format_duration(goal.minimum_coverage_seconds)} (median of all: "
            f"{format_duration(covered)}); at most {MAX_UNKNOWN_PERCENT} % may: {_SOURCES.get(goal.resource, '')}take "
            "samples for longer and run `kafka-rebalance pipeline load-model`, lower minimumCoverage if the traffic is "
            "steady, or use Disk alone",
        )
    by_topic: defaultdict[str, list[float]] = defaultdict(list)
    for p, rate in zip(partitions, known, strict=True):
        if rate is not None:
            by_topic[p.tp.topic].append(rate)
    means = {topic: fmean(rates) for topic, rates in by_topic.items()}
    return [rate if rate is not None else means.get(p.tp.topic, 0.0) for p, rate in zip(partitions, known, strict=True)]


def _rate(load: PartitionLoad | None, goal: LoadGoal) -> float | None:
    if load is None or load.covered(goal.resource) < goal.minimum_coverage_seconds:
        return None
    return load.rate(goal.resource, goal.statistic)
