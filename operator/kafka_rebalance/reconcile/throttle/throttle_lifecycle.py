"""A throttle resource from our finalizer to its end: a deletion waits until what it claimed in Kafka is given back.

Its rates count only once the finalizer has been seen on it, so that none is ever left behind by a deletion. It is held
only while there is something to give back, and for no longer than waiting helps: two minutes where Kafka cannot be
reached, or where its namespace or our CRD goes too. What is left then stays in the ledger.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.api.v1alpha1 import (
    LET_GO_ANNOTATION,
    REASSIGNMENT_THROTTLES,
    KafkaReassignmentThrottle,
    parse_deleted_throttle,
    parse_metadata,
    parse_throttle,
)
from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError, Refused, Transient
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.decide.throttle_claims import ruling_throttle

log = logging.getLogger(__name__)

LONGEST_SECONDS = 120.0
"""How long a deletion waits where waiting may be in vain."""
_LOOK_AROUND_SECONDS = 5.0
_REFUSED_SECONDS = 15.0
_SOONEST_SECONDS = 0.5

Throttles = MutableMapping[str, KafkaReassignmentThrottle]
"""By uid."""


def first_seen(body: dict[str, Any]) -> KafkaReassignmentThrottle:
    """A resource that nothing is known of yet. Refused("InvalidSpec") names the field.

    Of one that is being deleted no more is read than the cluster: what else it asks for does not matter any more.
    """
    return parse_deleted_throttle(body) if parse_metadata(body).deleting else parse_throttle(body)


def seen_again(before: KafkaReassignmentThrottle, body: dict[str, Any]) -> KafkaReassignmentThrottle:
    """A newer state of a known one. With a spec that cannot be read the last one holds, and it is said.

    What else was changed counts all the same: such a spec must not hide a deletion.
    """
    try:
        return parse_throttle(body)
    except Refused as error:
        return before.model_copy(update={"metadata": parse_metadata(body), "unread": error.message})


def asked_of(throttle: KafkaReassignmentThrottle) -> tuple[object, ...]:
    """Changes whenever somebody asks for something else; our own status writes do not change it."""
    metadata = throttle.metadata
    let_go = metadata.annotations.get(LET_GO_ANNOTATION)
    return throttle.spec, throttle.unread, metadata.deletion_timestamp, let_go, metadata.finalizers


def counting(throttles: Iterable[KafkaReassignmentThrottle]) -> list[KafkaReassignmentThrottle]:
    """Those whose rates may be claimed: a deletion would wait for us. What sets no rate leaves nothing behind."""
    return [t for t in throttles if not t.metadata.deleting and (t.metadata.held or not t.spec.sets_rates)]


@dataclass
class _Care:
    """What is remembered of one resource between two rounds; times in seconds of the monotonic clock."""

    problem: RebalanceError | None = None
    retry_at: float = float("-inf")
    unreachable_since: float | None = None
    terminating: bool = False
    looked_around_at: float = float("-inf")


class ThrottleLifecycle:
    """Holds throttle resources and lets them go. Those that are gone are dropped from the mappings it is given."""

    def __init__(self, resources: Resources, clock: Clock) -> None:
        self._resources = resources
        self._clock = clock
        self._cares: dict[str, _Care] = {}

    def problem_of(self, throttle: KafkaReassignmentThrottle) -> RebalanceError | None:
        """Why it could not be held or let go lately; None: nothing went wrong."""
        care = self._cares.get(throttle.metadata.uid)
        return care.problem if care else None

    async def hold(self, throttles: Throttles) -> None:
        """Put our finalizer on the one that rules, if it sets rates: no other one can have anything to give back."""
        ruling = ruling_throttle(throttles.values())
        if ruling is None or ruling.metadata.held or not ruling.spec.sets_rates:
            return
        async with self._problems_of(ruling) as may_try:
            if may_try:
                body = await self._resources.add_throttle_finalizer(ruling.metadata)
                self._take_in(throttles, ruling, seen_again(ruling, body) if body else None)

    async def let_go(
        self,
        throttles: Throttles,
        released: Callable[[KafkaReassignmentThrottle], bool] | None = None,
        *,
        connected: bool = True,
    ) -> None:
        """Drop the finalizer of those that are being deleted and need not wait any longer.

        ``released``: whether nothing of what that one claimed is left in Kafka, as far as live brokers go.
        ``connected`` False: Kafka cannot be reached, so nobody can tell.
        """
        for throttle in [t for t in throttles.values() if t.metadata.deleting]:
            if not throttle.metadata.held:
                self._take_in(throttles, throttle, None)
                continue
            wholly = connected and released is not None and released(throttle)
            async with self._problems_of(throttle) as may_try:
                if may_try and (wholly or await self._waits_in_vain(throttle, connected=connected)):
                    await self._resources.remove_throttle_finalizer(throttle.metadata, wholly=wholly)
                    log.info(
                        "throttle %s is let go%s", throttle.name, "" if wholly else "; its rest stays in the ledger"
                    )
                    self._take_in(throttles, throttle, None)

    async def _waits_in_vain(self, throttle: KafkaReassignmentThrottle, *, connected: bool) -> bool:
        """Whether it is let go whatever is left: by order, or because waiting longer is not expected to help."""
        care, now = self._care(throttle), self._clock.monotonic()
        if connected:
            care.unreachable_since = None
        elif care.unreachable_since is None:
            care.unreachable_since = now
        if throttle.metadata.let_go_ordered:
            return True
        if care.unreachable_since is not None and now - care.unreachable_since >= LONGEST_SECONDS:
            return True
        begun = throttle.metadata.deletion_timestamp
        if begun is None or (self._clock.now() - begun).total_seconds() < LONGEST_SECONDS:
            return False
        if now - care.looked_around_at >= _LOOK_AROUND_SECONDS:
            care.looked_around_at = now
            care.terminating = await self._resources.surroundings_go(
                REASSIGNMENT_THROTTLES, throttle.metadata.namespace
            )
        return care.terminating

    @asynccontextmanager
    async def _problems_of(self, throttle: KafkaReassignmentThrottle) -> AsyncIterator[bool]:
        """What goes wrong for one is said on it and tried again later; the others go on. Yields whether it is time."""
        care = self._care(throttle)
        if self._clock.monotonic() < care.retry_at:
            yield False
            return
        try:
            yield True
        except RebalanceError as error:
            log.warning("throttle %s: %s: %s", throttle.name, error.reason, error.message)
            again = error.retry_after if isinstance(error, Transient) else _REFUSED_SECONDS
            care.problem, care.retry_at = error, self._clock.monotonic() + max(again, _SOONEST_SECONDS)
        else:
            care.problem, care.retry_at = None, float("-inf")

    def _care(self, throttle: KafkaReassignmentThrottle) -> _Care:
        return self._cares.setdefault(throttle.metadata.uid, _Care())

    def _take_in(
        self, throttles: Throttles, before: KafkaReassignmentThrottle, now: KafkaReassignmentThrottle | None
    ) -> None:
        """What the watch has brought meanwhile is newer than any answer, and stays."""
        uid = before.metadata.uid
        if now is None:
            throttles.pop(uid, None)
            self._cares.pop(uid, None)
        elif throttles.get(uid) is before:
            throttles[uid] = now
