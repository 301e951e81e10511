"""Sentences that explain measured rates: why one is missing, or above the throttle. Pure."""

from collections.abc import Iterable

from kafka_rebalance.api.resource_status import KafkaRebalanceStatus
from kafka_rebalance.cli.tables.motion import Motion

ABOVE_THROTTLE = "The rate is above the throttle because it is the sum over all brokers, with bursts of up to 10 MiB"
_NO_METER = "- not measured: rates of brokers need a KafkaReassignmentThrottle"
_NOT_KNOWN = "- not known, or not measured yet"


def above_throttle(status: KafkaRebalanceStatus) -> bool:
    """Whether the rate is above the throttle."""
    throttle, progress = status.throttle, status.progress
    if throttle is None or progress is None or progress.rate is None or status.completed_at is not None:
        return False
    limits = [rate for rate in (throttle.leader_rate, throttle.follower_rate) if rate is not None]
    return bool(limits) and progress.rate > min(limits)


def notes_on(motion: Motion) -> Iterable[str]:
    """Notes for `top`, which explain each dash and rates above the throttle."""
    unmeasured = any(None in {row.fetches_per_second, row.sends_per_second} for row in motion.brokers)
    if unmeasured and not motion.metered:
        yield _NO_METER
    statuses = [seen.status for seen in motion.rebalances]
    unknown = any(status.progress is None or status.progress.rate is None or not _eta(status) for status in statuses)
    if unknown or (unmeasured and motion.metered) or any(row.left is None for row in motion.partitions):
        yield _NOT_KNOWN
    if any(map(above_throttle, statuses)):
        yield ABOVE_THROTTLE


def _eta(status: KafkaRebalanceStatus) -> str:
    return (status.display.eta if status.display is not None else None) or ""
