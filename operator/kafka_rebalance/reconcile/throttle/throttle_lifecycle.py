"""The finalizer of a KafkaReassignmentThrottle: its deletion waits until the configs it claimed are restored.

Its rates count only once it has our finalizer, so that no deletion leaves a rate behind. The finalizer goes when
everything is restored, or after two minutes if Kafka cannot be reached or the namespace or our CRD is being deleted
too. Configs that are not restored by then stay in the ledger.
"""

import logging
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.api.overrides import OVERRIDES
from kafka_rebalance.api.v1alpha1 import (
    LET_GO_ANNOTATION,
    REASSIGNMENT_THROTTLES,
    KafkaReassignmentThrottle,
    parse_deleted_throttle,
    parse_metadata,
    parse_throttle,
    parse_throttle_again,
)
from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError, Refused, Transient, without_traceback
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.backoff import lengthen
from kafka_rebalance.reconcile.act.resources import UNEXPECTED, Resources
from kafka_rebalance.reconcile.act.turns import STAGE_SECONDS
from kafka_rebalance.reconcile.decide.throttle_claims import ruling_throttle
from kafka_rebalance.reconcile.throttle.slices import THROTTLES_OF_A_SLICE, Slices

log = logging.getLogger(__name__)

LONGEST_SECONDS = 120.0
"""How long a deletion waits when waiting may not help."""
_LOOK_AROUND_SECONDS = 5.0
_REFUSED_SECONDS = 15.0
_SOONEST_SECONDS = 0.5

Throttles = MutableMapping[str, KafkaReassignmentThrottle]
"""By uid."""


def first_seen(body: dict[str, Any]) -> KafkaReassignmentThrottle:
    """A resource that was not seen before. Refused("InvalidSpec") names the field.

    If the resource is being deleted, only its cluster is read.
    """
    return parse_deleted_throttle(body) if parse_metadata(body).deleting else parse_throttle(body)


def seen_again(before: KafkaReassignmentThrottle, body: dict[str, Any]) -> KafkaReassignmentThrottle:
    """A newer version of a known resource. If its spec is invalid, the last valid one holds, and ``unread`` says why.

    Its metadata counts all the same: an invalid spec must not hide a deletion.
    """
    try:
        return parse_throttle_again(body, before)
    except Refused as error:
        return before.model_copy(update={"metadata": parse_metadata(body), "unread": error.message})


def requested_of(throttle: KafkaReassignmentThrottle) -> tuple[object, ...]:
    """What a user can change: our own status writes do not change it."""
    metadata = throttle.metadata
    orders = tuple(metadata.annotations.get(name) for name in (LET_GO_ANNOTATION, *OVERRIDES))
    return throttle.spec, throttle.unread, metadata.deletion_timestamp, orders, metadata.finalizers


@dataclass
class _FinalizerRetry:
    """The memory of one resource between two rounds; times in seconds of the monotonic clock."""

    problem: RebalanceError | None = None
    retry_at: float = float("-inf")
    unreachable_since: float | None = None
    terminating: bool = False
    looked_around_at: float = float("-inf")


class ThrottleLifecycle:
    """Adds and removes our finalizer. Resources that are gone are removed from the mappings it is given."""

    def __init__(self, resources: Resources, clock: Clock) -> None:
        self._resources = resources
        self._clock = clock
        self._retries: dict[str, _FinalizerRetry] = {}

    def problem_of(self, throttle: KafkaReassignmentThrottle) -> RebalanceError | None:
        """Why its finalizer could not be added or removed lately; None: nothing went wrong."""
        care = self._retries.get(throttle.metadata.uid)
        return care.problem if care else None

    async def add_finalizer(self, throttles: Throttles) -> None:
        """Add our finalizer to the ruling resource, if it sets rates: no other one has anything to restore."""
        ruling = ruling_throttle(throttles.values())
        if ruling is None or ruling.metadata.held or not ruling.spec.sets_rates:
            return
        async with self._problems_of(ruling) as may_try:
            if may_try:
                body = await self._resources.add_throttle_finalizer(ruling.metadata)
                self._take_in(throttles, ruling, seen_again(ruling, body) if body else None)

    async def remove_finalizers(
        self,
        throttles: Throttles,
        released: Callable[[KafkaReassignmentThrottle], bool] | None = None,
        *,
        connected: bool = True,
    ) -> set[str]:
        """Remove the finalizer of resources that are being deleted and need not wait any longer; the uids of these.

        ``released``: whether live brokers have restored everything that the resource claimed. ``connected`` False:
        Kafka cannot be reached, so that is not known.
        """
        ended = set[str]()
        slices, until = Slices(THROTTLES_OF_A_SLICE), self._clock.monotonic() + STAGE_SECONDS
        deleted = [throttle for throttle in throttles.values() if throttle.metadata.deleting]
        for throttle in sorted(deleted, key=lambda throttle: self._retry(throttle).retry_at):
            await slices.next()
            if self._clock.monotonic() >= until:
                break  # those that have waited longest come first in the next round
            if throttle.metadata.uid not in throttles:
                continue  # it has left meanwhile
            if not throttle.metadata.held:
                self._take_in(throttles, throttle, None)
                ended.add(throttle.metadata.uid)
                continue
            restored = connected and released is not None and released(throttle)
            async with self._problems_of(throttle) as may_try:
                if may_try and (restored or await self._may_abandon(throttle, connected=connected)):
                    await self._resources.remove_throttle_finalizer(throttle.metadata, wholly=restored)
                    log.info(
                        "throttle %s: finalizer removed%s",
                        throttle.name,
                        "" if restored else "; the rest stays in the ledger",
                    )
                    self._take_in(throttles, throttle, None)
                    ended.add(throttle.metadata.uid)
        return ended

    async def _may_abandon(self, throttle: KafkaReassignmentThrottle, *, connected: bool) -> bool:
        """Whether to remove the finalizer even if configs remain.

        An annotation orders it, or longer waiting will not help.
        """
        care, now = self._retry(throttle), self._clock.monotonic()
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
            care.terminating = await self._resources.namespace_or_crd_terminating(
                REASSIGNMENT_THROTTLES, throttle.metadata.namespace
            )
        return care.terminating

    @asynccontextmanager
    async def _problems_of(self, throttle: KafkaReassignmentThrottle) -> AsyncIterator[bool]:
        """Note a problem of one resource and retry later; the others go on. Yields whether it is time to try."""
        care = self._retry(throttle)
        if self._clock.monotonic() < care.retry_at:
            yield False
            return
        try:
            yield True
        except RebalanceError as error:
            log.warning("throttle %s: %s: %s", throttle.name, error.reason, error.message)
            if isinstance(error, Transient):
                lengthen(error, care.problem)  # it may take its time-out
            again = error.retry_after if isinstance(error, Transient) else _REFUSED_SECONDS
            care.problem = without_traceback(error)
            care.retry_at = self._clock.monotonic() + max(again, _SOONEST_SECONDS)
        except Exception:
            log.exception("throttle %s: unexpected error", throttle.name)
            unexpected = Transient(Reason.INTERNAL_ERROR, UNEXPECTED)
            care.problem, care.retry_at = unexpected, self._clock.monotonic() + _REFUSED_SECONDS
        else:
            care.problem, care.retry_at = None, float("-inf")

    def _retry(self, throttle: KafkaReassignmentThrottle) -> _FinalizerRetry:
        return self._retries.setdefault(throttle.metadata.uid, _FinalizerRetry())

    def _take_in(
        self, throttles: Throttles, before: KafkaReassignmentThrottle, now: KafkaReassignmentThrottle | None
    ) -> None:
        """A version that the watch has brought meanwhile is newer than our answer, and stays."""
        uid = before.metadata.uid
        if now is None:
            throttles.pop(uid, None)
            self._retries.pop(uid, None)
        elif throttles.get(uid) is before:
            throttles[uid] = now
