"""--durations and --finish-within: how long the plan takes by the runs before it, and the throttle to end in time."""

from collections.abc import Mapping
from typing import Any, BinaryIO, cast

import click

from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.cli.files.file_errors import parsed
from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.expected_duration import rate_to_end_within, shape_of_plan
from kafka_rebalance.execution.reassignment_throttle import ClusterRates, Rates
from kafka_rebalance.model.duration_model import DurationModel, parse_durations
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.throttle_claims import DEFAULT_RATE
from kafka_rebalance.units import format_duration, format_duration_range, format_rate


def read_durations(place: str) -> DurationModel:
    """The model in a file, or in an object store."""
    if "://" in place:
        from kafka_rebalance.storage.locations import open_location, read_whole

        return parse_durations(read_whole(open_location(place)) or b"")
    return parsed("--durations", cast("BinaryIO", click.File("rb").convert(place, None, None)), parse_durations)


def expected_duration(
    made: Plan, sizes: Mapping[TopicPartition, int], spec: KafkaRebalanceSpec, place: str, finish_within: int | None
) -> dict[str, Any]:
    """For the summary of the plan: ``eta`` and ``finishWithin``. Refused (SizesUnknown) if they cannot be known."""
    unknown = [p.tp for p in made.partitions if p.added and p.tp not in sizes]
    if unknown:
        raise Refused(
            Reason.SIZES_UNKNOWN,
            f"how long the plan takes is not known: the sizes of {len(unknown)} partitions are unknown, for example "
            f"{unknown[0]}: add them, or use --load-model",
        )
    model, execution = read_durations(place), spec.execution
    limits = execution.parallel_replica_count, execution.parallel_partition_count
    found = model.interval(shape_of_plan(made, _rates(spec), *limits))
    document: dict[str, Any] = {"eta": None}
    if found is not None:
        document["eta"] = {
            "source": "History",
            "runs": model.runs,
            "shortestSeconds": round(found[0]),
            "longestSeconds": round(found[1]),
        }
    if finish_within is not None:
        rate = rate_to_end_within(finish_within, made, model, *limits)
        document["finishWithin"] = {"seconds": finish_within, "rate": rate}
    return document


def duration_sentences(found: Mapping[str, Any]) -> list[str]:
    """For people."""
    eta, wanted = found["eta"], found.get("finishWithin")
    sentences = []
    if eta is None:
        sentences.append("ETA unknown: no run of the history had, or none was without, such a throttle")
    else:
        interval = format_duration_range(eta["shortestSeconds"], eta["longestSeconds"])
        sentences.append(f"ETA {interval} (eight of ten, from {eta['runs']} runs)")
    if wanted is not None:
        within = f"to end within {format_duration(wanted['seconds'])}"
        if wanted["rate"] is None:
            sentences.append(f"{within}: no throttle is enough; move less, or raise parallelPartitionCount")
        else:
            sentences.append(f"{within}: leaderRate and followerRate {wanted['rate']} ({format_rate(wanted['rate'])})")
    return sentences


def _rates(spec: KafkaRebalanceSpec) -> ClusterRates:
    """The rates of the resource alone, because a KafkaReassignmentThrottle is not known offline."""
    if spec.throttle is None:
        return ClusterRates(Rates(DEFAULT_RATE, DEFAULT_RATE))
    return ClusterRates(Rates(spec.throttle.leader_rate, spec.throttle.follower_rate))
