"""Counts how often somebody undid the throttle, and says who it may be."""

from dataclasses import dataclass, field

CONTESTED_AFTER = 3
CONTESTED_SECONDS = 600.0
"""This many reverts within this time are no accident."""


@dataclass
class Reverts:
    """``count``: all of them since the start."""

    count: int = 0
    _latest: list[tuple[float, str]] = field(default_factory=list)

    def note(self, now: float, what: str) -> None:
        """``what`` names the broker and rate, or the topic and list; ``now`` in seconds, monotonic."""
        self.count += 1
        self._latest = [row for row in self._latest if now - row[0] <= CONTESTED_SECONDS]
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
        return (
            f"somebody undid the throttle {len(recent)} times in {CONTESTED_SECONDS / 60:.0f} minutes, last "
            f"{recent[-1]}; each time it was set again; it may be {culprits}"
        )
