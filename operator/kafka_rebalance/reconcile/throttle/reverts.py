"""Counts how often somebody undid the throttle, and says who it may be."""

from collections import deque
from dataclasses import dataclass, field

CONTESTED_AFTER = 3
CONTESTED_SECONDS = 600.0
"""This many reverts within this time are no accident."""
_MOST_KNOWN = 100
"""A server can undo thousands of entries in each round, and each round looks at all that are known."""


@dataclass
class Reverts:
    """``count``: all of them since the start."""

    count: int = 0
    _latest: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=_MOST_KNOWN))

    def note(self, now: float, what: str) -> None:
        """``what`` names the broker and rate, or the topic and list; ``now`` in seconds, monotonic."""
        self.count += 1
        self._latest.append((now, what))

    def forget(self) -> None:
        """Nothing is throttled any more: later reverts do not add to these."""
        self._latest.clear()

    def contested(self, now: float) -> str:
        """Who may keep undoing the throttle; empty while that did not happen often enough lately."""
        recent = [what for when, what in self._latest if now - when <= CONTESTED_SECONDS]
        if len(recent) < CONTESTED_AFTER:
            return ""
        culprits = "kafka-reassign-partitions --verify or --cancel, or another tool that manages broker configs"
        if any(what.startswith("topic") for what in recent):
            culprits = "Strimzi's topic operator, GitOps of topic configs, or kafka-reassign-partitions --verify"
        often = f"{len(recent)} times" if len(recent) < _MOST_KNOWN else f"at least {_MOST_KNOWN} times"
        return (
            f"somebody undid the throttle {often} in {CONTESTED_SECONDS / 60:.0f} minutes, last "
            f"{recent[-1]}; each time it was set again; it may be {culprits}"
        )
