"""Somebody else changed the throttle that we hold: what it means, and what follows.

Pure. A rate that is gone or was raised is put back; one that was set below ours is an emergency brake and becomes a
ceiling, until what is asked for changes. Whatever a person made of a rate is what is restored in the end. List entries
that are gone are put back. Reading follows writing late, so one reading that differs proves nothing: ``Suspicion``.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic, TypeVar

from kafka_rebalance.execution.ledger import Before, Ceiling, RateRecord
from kafka_rebalance.execution.reassignment_throttle import RequestedRate

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

CONTESTED_AFTER = 3
CONTESTED_SECONDS = 600.0
"""So many reverts within so long are no accident."""


class RateFinding(StrEnum):
    """What became of one rate."""

    IN_PLACE = "InPlace"
    STALE = "Stale"  # one that we wrote ourselves, earlier
    DELETED = "Deleted"
    RAISED = "Raised"
    LOWERED = "Lowered"


def rate_found(value: int | None, record: RateRecord, expected: int, *, was_read: bool) -> RateFinding:
    """What the value set on this very broker (None: none is) says, where ``expected`` was.

    ``was_read``: ours has been read there before. Until then what reads as before us is our own write that was late or
    lost, and no deed of anybody.
    """
    if value is not None and value == expected:
        return RateFinding.IN_PLACE
    if value in record.written or (value == record.clean and not was_read):
        return RateFinding.STALE
    if value is None:
        return RateFinding.DELETED
    return RateFinding.LOWERED if record.applied is not None and value < record.applied else RateFinding.RAISED


def after_finding(
    record: RateRecord, finding: RateFinding, value: int | None, asked: Mapping[str, RequestedRate]
) -> RateRecord:
    """The record that follows from what somebody else did to the rate.

    Where replication has a throttle besides ours, what was deleted or raised is it from now on; a brake is none.
    """
    if finding in {RateFinding.IN_PLACE, RateFinding.STALE}:
        return record
    owner = Before(None if value is None else str(value), dynamic=value is not None)
    if finding is RateFinding.LOWERED and value is not None:
        ceiling = Ceiling(value, {claim: one.rate for claim, one in asked.items()})
        return replace(record, owner=owner, ceiling=ceiling)
    basis = owner if record.replication is not None else record.basis
    return replace(record, owner=owner, basis=basis, ceiling=None)


def in_force(record: RateRecord, rate: int, asked: Mapping[str, RequestedRate]) -> tuple[RateRecord, int]:
    """The record without a ceiling that holds no longer, and the rate that shall be in place."""
    if record.ceiling is None:
        return record, rate
    if not record.ceiling.holds(asked):
        return replace(record, ceiling=None), rate
    return record, min(rate, record.ceiling.rate)


@dataclass
class Suspicion(Generic[Key, Value]):
    """What differed at the last reading: the same again at the next one is believed."""

    _seen: dict[Key, Value] = field(default_factory=dict)

    def confirmed(self, key: Key, value: Value) -> bool:
        """Note what was read; whether it was the same the last time."""
        before = self._seen.get(key)
        known = key in self._seen
        self._seen[key] = value
        return known and before == value

    def clear(self, key: Key) -> None:
        """It reads as it should, or was just written."""
        self._seen.pop(key, None)


@dataclass
class Reverts:
    """How often somebody undid what we had set."""

    count: int = 0
    _latest: list[tuple[float, str]] = field(default_factory=list)

    def note(self, now: float, what: str) -> None:
        """``what`` names the broker and rate, or the topic and list; ``now`` in seconds, monotonic."""
        self.count += 1
        self._latest = [row for row in self._latest if now - row[0] <= CONTESTED_SECONDS]
        self._latest.append((now, what))

    def forget(self) -> None:
        """Nothing is throttled any more: what comes next is another matter."""
        self._latest.clear()

    def contested(self, now: float) -> str:
        """Who it may be, once it happened often enough lately; empty before."""
        recent = [what for when, what in self._latest if now - when <= CONTESTED_SECONDS]
        if len(recent) < CONTESTED_AFTER:
            return ""
        culprits = "kafka-reassign-partitions --verify or --cancel, or whatever else keeps broker configs"
        if any(what.startswith("topic") for what in recent):
            culprits = "Strimzi's topic operator, GitOps of topic configs, or kafka-reassign-partitions --verify"
        return (
            f"the throttle was undone {len(recent)} times in {CONTESTED_SECONDS / 60:.0f} minutes and put back, "
            f"last {recent[-1]}; it may be {culprits}"
        )
