"""What a KafkaRebalance asks for, as the API server last sent it. Our own status writes do not change what is asked."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Self

from kafka_rebalance.api import v1alpha1
from kafka_rebalance.api.overrides import OVERRIDES, THROTTLE, OverrideInForce, overridden_rebalance
from kafka_rebalance.api.partly_valid import parse_partly_valid
from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.api.resource_status import KafkaRebalanceStatus
from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.limits import Limits


@dataclass(frozen=True)
class Desired:
    """The resource. ``spec_problem``: why the newest spec cannot be read; ``spec`` is then the last readable one.

    ``never_read``: there is none, and ``spec`` has only the valid fields of the newest one. Nothing new starts by it.
    ``given``: the spec without overrides, if ``spec`` has ``overrides``, as of ``looked_at``. ``override_problems``:
    annotations that cannot be read.
    """

    metadata: v1alpha1.ObjectMeta
    spec: KafkaRebalanceSpec
    status: KafkaRebalanceStatus
    spec_problem: Refused | None = None
    never_read: bool = False
    given: KafkaRebalanceSpec | None = None
    overrides: tuple[OverrideInForce, ...] = ()
    override_problems: tuple[str, ...] = ()
    looked_at: datetime | None = None

    @classmethod
    def of(cls, body: Mapping[str, Any], before: Self | None = None) -> Self:
        """The resource from ``body``. An unreadable spec must not hide a deletion, nor an open run after a restart.

        If the spec was read ``before``, that spec stays in force. If it never was, unreadable fields are left out where
        the resource is being deleted or has our finalizer, which every resource with an open run has. Else
        Refused("InvalidSpec") names the field.
        """
        metadata = v1alpha1.parse_metadata(body)
        try:
            found = cls._read(v1alpha1.parse_rebalance(body))
        except Refused as error:
            if before is not None and not before.never_read:
                found = replace(before, metadata=metadata, spec_problem=error)
            elif metadata.deleting:
                found = cls._read(parse_partly_valid(body))
            elif metadata.held:
                found = replace(cls._read(parse_partly_valid(body)), spec_problem=error, never_read=True)
            else:
                raise
        now = before.looked_at if before is not None else None
        return found if now is None else found.as_of(now)

    @classmethod
    def _read(cls, resource: v1alpha1.KafkaRebalance) -> Self:
        return cls(resource.metadata, resource.spec, resource.status)

    def as_of(self, now: datetime) -> Self:
        """With the overrides that are in force at this time."""
        given = self.given or self.spec
        found = overridden_rebalance(given, self.metadata.annotations, now)
        if (found.spec, found.in_force, found.problems) == (self.spec, self.overrides, self.override_problems):
            return self
        return replace(
            self,
            spec=found.spec,
            given=given,
            overrides=found.in_force,
            override_problems=found.problems,
            looked_at=now,
        )

    @property
    def uid(self) -> str:
        """The resource's uid."""
        return self.metadata.uid

    @property
    def name(self) -> str:
        """``namespace/name``, for messages."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def age_key(self) -> tuple[str, str]:
        """Sorts the older resource first."""
        created = self.metadata.creation_timestamp
        return (created.isoformat() if created else "", self.uid)

    @property
    def deleting(self) -> bool:
        """Whether the resource has been deleted and waits for its finalizers."""
        return self.metadata.deleting

    @property
    def has_finalizer(self) -> bool:
        """Whether our finalizer is on the object."""
        return self.metadata.held

    @property
    def edited(self) -> bool:
        """Whether the status is of an earlier generation of the spec."""
        return self.status.observed_generation != self.metadata.generation

    @property
    def change_key(self) -> tuple[str, ...]:
        """Differs whenever a user asks for something else."""
        metadata = self.metadata
        names = (v1alpha1.UNDO_ANNOTATION, v1alpha1.LET_GO_ANNOTATION, *OVERRIDES)
        orders = (metadata.annotations.get(name, "") for name in names)
        return (str(metadata.generation), str(metadata.deletion_timestamp), *orders, *metadata.finalizers)

    @property
    def throttle_setting(self) -> str:
        """Where its own rates come from."""
        overridden = any(row.setting == THROTTLE for row in self.overrides)
        return f"the override of {THROTTLE}" if overridden else THROTTLE

    def deleted_since(self, change_key: tuple[str, ...]) -> bool:
        """Whether the resource is being deleted now, and was not when its change key was this one."""
        return self.deleting and str(self.metadata.deletion_timestamp) not in change_key

    @cached_property
    def planning_hash(self) -> str:
        """Hash of the part of the spec that decides what is planned."""
        return v1alpha1.planning_hash(self.spec)

    @cached_property
    def limits(self) -> Limits:
        """KIP-435's limits."""
        execution = self.spec.execution
        return Limits(
            execution.parallel_replica_count,
            execution.parallel_partition_count,
            execution.parallel_leader_movements,
            execution.max_concurrent_replica_movements,
            execution.max_per_broker.into,
            execution.max_per_broker.out,
        )

    def timed_out(self, now: datetime) -> bool:
        """Whether the deletion has taken longer than spec.rollback.timeout."""
        begun, timeout = self.metadata.deletion_timestamp, self.spec.rollback.timeout_seconds
        return begun is not None and timeout is not None and now - begun > timedelta(seconds=timeout)
