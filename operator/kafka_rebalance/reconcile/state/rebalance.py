"""One KafkaRebalance as the engine holds it: six values, each replaced as a whole and by one package.

``desired`` is replaced where the API server has sent the resource (``Rebalance.see``) and where a round begins, because
overrides begin and end by time (``Rebalance.look_at``); ``record`` and ``memory`` in ``reconcile.act``, ``assessment``
in ``reconcile.rounds``, ``refusal`` and ``unverified`` in ``reconcile.connection_book``. A watch event may replace
``desired`` during any await: read values that must be consistent without an await in between.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, Self

from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.model.run import Origin
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.reconcile.state.assessment import Assessment
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.memory import Memory
from kafka_rebalance.reconcile.state.record import Record

_NONE: Mapping[TopicPartition, Origin] = {}


class RebalanceView(Protocol):
    """What a decision or a report may look at. It cannot be written to."""

    @property
    def desired(self) -> Desired:
        """What is asked for."""

    @property
    def record(self) -> Record:
        """What is stored."""

    @property
    def assessment(self) -> Assessment:
        """What the rounds have found out and decided."""

    @property
    def memory(self) -> Memory:
        """What may be forgotten."""

    @property
    def refusal(self) -> RebalanceError | None:
        """Why its connection may not be used for anything new; reassignments in flight come to rest. None: it may."""

    @property
    def held_by(self) -> RebalanceError | None:
        """Why nothing new may start: the refusal, or a spec that was never readable. None: it may."""

    @property
    def unverified(self) -> RebalanceError | None:
        """Why no run may begin: the edited connection does not lead to this cluster (yet). An open run goes on."""

    @property
    def may_begin(self) -> bool:
        """Whether a run may begin, or be moved back on request."""

    @property
    def own_origins(self) -> Mapping[TopicPartition, Origin]:
        """The origins of the partitions that the open run may be moving; empty while it ``rests``."""

    @property
    def rests(self) -> bool:
        """Whether the open run is at rest because its connection was refused: whatever moves is moved by others."""

    @property
    def place_given_up(self) -> bool:
        """Whether the open run has let others move its partitions first, and has sent only cancellations since."""

    @property
    def unsettled(self) -> frozenset[str]:
        """The topics in which something of it may have been in flight when it gave up its place."""

    @property
    def rest_ends(self) -> bool:
        """Whether the run may go on after its rest. First, what others move now is struck off its record."""

    @property
    def waits_at_rest(self) -> bool:
        """Whether nothing is done for the run until its rest has ended, or it is known whether it may go on."""


@dataclass(eq=False)
class Rebalance:
    """The one mutable object."""

    desired: Desired
    record: Record = field(default_factory=Record)
    assessment: Assessment = field(default_factory=Assessment)
    memory: Memory = field(default_factory=Memory)
    refusal: RebalanceError | None = None
    unverified: RebalanceError | None = None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        """A resource that is seen for the first time. Raises what ``Desired.of`` raises."""
        return cls(Desired.of(body))

    @property
    def held_by(self) -> RebalanceError | None:
        """Why nothing new may start: the refusal, or a spec that was never readable. None: it may."""
        return self.refusal or (self.desired.spec_problem if self.desired.never_read else None)

    @property
    def may_begin(self) -> bool:
        """Whether a run may begin, or be moved back on request."""
        return self.held_by is None and self.unverified is None

    @property
    def own_origins(self) -> Mapping[TopicPartition, Origin]:
        """The origins of the partitions that the open run may be moving; empty while it ``rests``."""
        return _NONE if self.rests else self.record.origins

    @property
    def origins_back(self) -> Mapping[TopicPartition, Origin]:
        """The origins to which the open run goes back: none if it is deleted while it ``rests``."""
        may_go_on = self.refusal is None or isinstance(self.refusal, Transient)
        return self.record.origins if may_go_on or not (self.rests and self.desired.deleting) else _NONE

    @property
    def rests(self) -> bool:
        """Whether the open run is at rest because its connection was refused: whatever moves is moved by others."""
        return self.record.run is not None and self.record.run.rested

    @property
    def place_given_up(self) -> bool:
        """Whether the open run has let others move its partitions first, and has sent only cancellations since."""
        return self.record.run is not None and self.record.run.place_given_up

    @property
    def unsettled(self) -> frozenset[str]:
        """The topics in which something of it may have been in flight when it gave up its place."""
        return frozenset(self.record.run.unsettled) if self.record.run is not None else frozenset()

    @property
    def rest_ends(self) -> bool:
        """Whether the run may go on after its rest. First, what others move now is struck off its record."""
        return self.rests and self.refusal is None and self.record.loaded_run is not None

    @property
    def waits_at_rest(self) -> bool:
        """Whether nothing is done for the run until its rest has ended, or it is known whether it may go on."""
        unknown = self.rests and self.desired.deleting and isinstance(self.refusal, Transient)
        return unknown or self.rest_ends

    def see(self, body: Mapping[str, Any]) -> None:
        """Take in a newer state of the resource."""
        self.desired = Desired.of(body, self.desired)

    def look_at(self, now: datetime) -> None:
        """Apply the overrides that are in force at this time."""
        self.desired = self.desired.as_of(now)

    @property
    def uid(self) -> str:
        """The resource's uid."""
        return self.desired.uid

    @property
    def name(self) -> str:
        """``namespace/name``, for messages."""
        return self.desired.name

    @property
    def log_fields(self) -> dict[str, object]:
        """The fields of log lines about this rebalance."""
        fields = {"resource": self.name, "generation": self.desired.metadata.generation}
        return fields | ({"plan": self.record.plan_hash} if self.record.plan_hash else {})


def opened_of(rebalances: Mapping[str, Rebalance]) -> list[Rebalance]:
    """Those with an open run."""
    return [r for r in rebalances.values() if r.record.loaded_run is not None]


def is_served(rebalance: Rebalance, rebalances: Mapping[str, Rebalance]) -> bool:
    """Whether an engine with these rebalances, by uid, still has it. A watch event may take it away at any await.

    The engine would neither throttle nor undo calls for a resource that it does not have any more.
    """
    return rebalances.get(rebalance.uid) is rebalance
