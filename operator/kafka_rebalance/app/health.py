"""The probes. Live while the engines run; ready when leading or on standby. Pure.

Liveness fails only for what a restart can fix: a blocked loop, a round in which no call ends any more. Kafka or the
API server being unreachable is neither. Readiness is what a rollout waits for, so a standby is ready: a rolling update
stops the old Pod only when the new one is ready, and the new one leads only when the old one has stopped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

WATCH_SECONDS = 60.0
"""The watch's loop beats several times a second; nothing in it takes longer than a few."""
SILENT_SECONDS = 300.0
"""A call of a round to Kafka or the API server ends within ten seconds. Rounds of many such calls may take longer."""
STANDBY_SECONDS = 30.0
"""A standby reads the Lease every second; a read takes at most eleven."""


class Stage(StrEnum):
    """The stage of the process. Each leads to the next, and any to STOPPING."""

    STANDBY = "standby"
    LEADING = "leading"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class ProcessState:
    """The process at one moment. Ages are seconds; None if it is not running, or has not happened yet.

    ``standby_age``: since the API server last said that another operator holds the Lease. ``watch_age``: since the
    last beat of the watch. ``rounds``: by cluster id, since the last call of the engine's current round has ended;
    infinite if the engine has ended, absent between two rounds. ``failed_tasks``: other tasks that must not end and
    did.
    """

    stage: Stage
    standby_age: float | None = None
    is_leader: bool = False
    watching: bool = False
    watch_age: float | None = None
    rounds: Mapping[str, float] = field(default_factory=dict)
    failed_tasks: Sequence[str] = ()


def liveness_failures(state: ProcessState) -> list[str]:
    """What a restart would fix; empty: live. If the process cannot answer at all, the probe times out."""
    if state.stage is not Stage.LEADING:
        return []
    reasons = []
    if state.watch_age is not None and state.watch_age > WATCH_SECONDS:
        reasons.append(f"the watch has been blocked for {state.watch_age:.0f} s")
    for cluster_id, seconds in sorted(state.rounds.items()):
        if seconds == float("inf"):
            reasons.append(f"the engine of cluster {cluster_id} has ended")
        elif seconds > SILENT_SECONDS:
            reasons.append(f"no call of the engine of cluster {cluster_id} has ended for {seconds:.0f} s")
    return reasons + [f"{name} has ended" for name in state.failed_tasks]


def readiness_failures(state: ProcessState) -> list[str]:
    """Why this operator is neither leading nor on standby; empty: ready."""
    if state.stage is Stage.STOPPING:
        return ["stopping"]
    if state.stage is Stage.STANDBY:
        known = state.standby_age is not None and state.standby_age <= STANDBY_SECONDS
        return [] if known else ["the API server has not said who holds the lease"]
    reasons = [] if state.is_leader else ["the lease was not renewed in time"]
    if not state.watching:
        reasons.append("not watching yet")
    return reasons + liveness_failures(state)
