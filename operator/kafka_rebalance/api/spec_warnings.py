"""Settings that are valid and probably a mistake: what to write instead. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec, Topics
from kafka_rebalance.api.throttle_resource import KafkaReassignmentThrottleSpec
from kafka_rebalance.api.topic_patterns import MatchingTime, TopicFilter
from kafka_rebalance.errors import Refused
from kafka_rebalance.reasons import Reason
from kafka_rebalance.units import format_duration, format_rate

LOW_RATE = 100 * 1024
"""Bytes per second. Who writes less usually means another unit: at this rate, 1 GiB takes three hours."""
_GLOB = re.compile(r"(?<=[\w-])\*")
"""A * behind a character that stands for itself: meant as in a shell."""

SpecWarning = tuple[Reason, str]


def rebalance_warnings(spec: KafkaRebalanceSpec) -> list[SpecWarning]:
    """The warnings of a KafkaRebalance that do not depend on the cluster."""
    found: list[SpecWarning] = []
    if spec.throttle is not None:
        found += _low(("spec.throttle.leaderRate", spec.throttle.leader_rate))
        found += _low(("spec.throttle.followerRate", spec.throttle.follower_rate))
        found += _low(("spec.throttle.logDirRate", spec.throttle.log_dir_rate))
    return found


def throttle_warnings(spec: KafkaReassignmentThrottleSpec) -> list[SpecWarning]:
    """The warnings of a KafkaReassignmentThrottle."""
    sides = [("spec.leaderRate", spec.leader_rate), ("spec.followerRate", spec.follower_rate)]
    for at, row in enumerate(spec.brokers):
        sides += [(f"spec.brokers[{at}].leaderRate", row.leader_rate)]
        sides += [(f"spec.brokers[{at}].followerRate", row.follower_rate)]
    return [warning for side in sides for warning in _low(side)]


def low_rate(rate: int) -> str | None:
    """The warning for a rate that is probably too low, or None."""
    if rate >= LOW_RATE:
        return None
    return (
        f"{format_rate(rate)} is very low: 1 GiB takes {format_duration(2**30 / rate)}. Rates are in bytes per second: "
        "50Mi means 50 MiB/s"
    )


def unmatched_patterns(topics: Topics, names: Collection[str]) -> Iterator[str]:
    """One sentence for each expression that matches no topic of the cluster, as far as the time of a filter allows."""
    spent = MatchingTime()
    for field, patterns in (("include", topics.include), ("exclude", topics.exclude), ("pinned", topics.pinned)):
        for at, pattern in enumerate(patterns):
            try:
                found = any(map(TopicFilter([pattern], spent=spent).matches, names))
            except Refused:
                return
            if not found:
                yield f"spec.topics.{field}[{at}]: {pattern!r} matches no topic{_meant(pattern)}"


def _meant(pattern: str) -> str:
    meant = _GLOB.sub(".*", pattern)
    if meant == pattern:
        return ""
    return f"; it is an RE2 expression for the whole name, in which * repeats the character before it: write {meant!r}"


def _low(side: tuple[str, int | None]) -> Iterator[SpecWarning]:
    field, rate = side
    if rate is not None and rate > 0 and (text := low_rate(rate)) is not None:
        yield Reason.VERY_LOW_RATE, f"{field}: {text}"
