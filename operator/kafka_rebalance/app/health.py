"""What the kubelet is told: alive while what must turn turns, ready while it acts, or could take over. Pure.

Alive is what a restart could mend: a loop that stands still, an engine that never ends its round. Kafka or the API
server being away is neither, so it is never a reason to be killed. Ready is what a rollout waits for, and an operator
that waits for the Lease of another one is ready: a rolling update ends the old Pod only when the new one is, and the
new one leads only when the old one has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

WATCH_SECONDS = 60.0
"""The watch's loop beats every second; nothing that it does on purpose takes longer than a few."""
ROUND_SECONDS = 600.0
"""A round is a few dozen calls to Kafka and the API server, of at most ten seconds each."""
LOOK_SECONDS = 30.0
"""An operator that waits looks at the Lease every second; a look takes at most eleven."""


class Stage(StrEnum):
    """How far the process has come. Each leads to the next; any to STOPPING."""

    WAITING = "waiting for the lease"
    LEADING = "leading"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class Pulse:
    """The process at one moment. Ages are seconds; None where the thing is not running, or has not happened yet.

    ``look_age``: since the API server last told that somebody else holds the Lease. ``rounds``: by cluster id, for how
    long the engine's present round has been going on; infinite where the engine has ended, absent between two rounds.
    """

    stage: Stage
    look_age: float | None = None
    holds_lease: bool = False
    watching: bool = False
    watch_age: float | None = None
    rounds: Mapping[str, float] = field(default_factory=dict)


def why_dead(pulse: Pulse) -> list[str]:
    """What a restart would mend; none: alive. Who cannot answer at all is judged by the probe's time-out."""
    if pulse.stage is not Stage.LEADING:
        return []
    reasons = []
    if pulse.watch_age is not None and pulse.watch_age > WATCH_SECONDS:
        reasons.append(f"the watch has not turned for {pulse.watch_age:.0f} s")
    for cluster_id, seconds in sorted(pulse.rounds.items()):
        if seconds == float("inf"):
            reasons.append(f"the engine of cluster {cluster_id} has ended")
        elif seconds > ROUND_SECONDS:
            reasons.append(f"the engine of cluster {cluster_id} has been in one round for {seconds:.0f} s")
    return reasons


def why_unready(pulse: Pulse) -> list[str]:
    """Why this operator neither acts nor could take over; none: it is ready."""
    if pulse.stage is Stage.STOPPING:
        return ["stopping"]
    if pulse.stage is Stage.WAITING:
        known = pulse.look_age is not None and pulse.look_age <= LOOK_SECONDS
        return [] if known else ["the API server does not tell who holds the lease"]
    reasons = [] if pulse.holds_lease else ["the lease was not renewed in time"]
    if not pulse.watching:
        reasons.append("not watching yet")
    return reasons + why_dead(pulse)
