"""Leader election: among all operators that keep their records in one namespace, only the holder of its Lease acts.

The leader counts the duration from *before* it sent a renewal and stops acting a margin early; the others count from
*after* they saw the Lease change. Each uses its own monotonic clock, and no two clocks are compared: the times in the
Lease are for people. Every write names the resourceVersion that it replaces, so that no operator overwrites a Lease
that it has not read.
"""

import logging
from datetime import datetime
from typing import Any, Protocol

from kafka_rebalance.errors import Permanent, RebalanceError, Transient
from kafka_rebalance.kube.api_errors import Conflict, NotFound
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.objects import Json
from kafka_rebalance.reasons import Reason

log = logging.getLogger(__name__)

LEASE_NAME = "kafka-rebalance-operator"
DURATION_SECONDS = 30
_LOOK_SECONDS = 1.0
"""Between two reads of another operator's Lease, and between two attempts to renew one's own."""
_ATTEMPTS = 3


class LeaseClock(Protocol):
    """Wall time, monotonic time, and a way to wait."""

    def now(self) -> datetime:
        """Wall time, aware: written for people, never compared."""

    def monotonic(self) -> float:
        """Seconds; goes on while the process is stopped."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class LeadershipLost(Permanent):
    """Another operator has, or has had, the Lease: what this process knows may be outdated, so it must exit."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.LEADERSHIP_LOST, message)


class LeaseHolder:
    """One candidate for one Lease. ``identity`` belongs to one process at a time.

    A Lease with its own identity is taken at once: it is from the same container before a restart. The Lease is renewed
    every third of its duration, and ``is_leader`` turns False a third before it ends: orders under way have that long
    to arrive before another operator acts.
    """

    def __init__(
        self, kube: KubeClient, name: str, identity: str, clock: LeaseClock, duration_seconds: int = DURATION_SECONDS
    ) -> None:
        self.name = name.lower()  # the API server accepts nothing else
        self.identity = identity
        self._kube = kube
        self._clock = clock
        self._duration = duration_seconds
        self._renew_every = self._margin = duration_seconds / 3
        self._written: Json | None = None
        self._acquired = ""
        self._valid_until = float("-inf")
        self._seen: Json | None = None
        self._seen_at = float("-inf")
        self._waited_at: float | None = None

    def is_leader(self) -> bool:
        """Whether this process may act now. False as soon as it was suspended or cut off for too long."""
        return self._clock.monotonic() < self._valid_until

    @property
    def standby_age(self) -> float | None:
        """Seconds since the API server last said that another operator holds it; None: it never did."""
        return None if self._waited_at is None else self._clock.monotonic() - self._waited_at

    async def acquire(self) -> None:
        """Wait until the Lease is ours; log each holder once. Permanent if a permission is missing."""
        logged = ""
        while True:
            try:
                holder = await self._try_to_take()
            except Conflict:
                continue  # another operator was faster: read who
            except Transient as error:
                waiting = f"waiting for the API server: {error.message}"
            else:
                if holder is None:
                    log.info("lease %s is held by this operator, %s", self._place, self.identity)
                    return
                waiting = f"waiting for the lease held by {holder}"
                self._waited_at = self._clock.monotonic()
            if waiting != logged:
                log.info("%s (%s)", waiting, self._place)
                logged = waiting
            left = self._expires - self._clock.monotonic()
            await self._clock.sleep(left if 0 < left < _LOOK_SECONDS else _LOOK_SECONDS)

    async def keep(self) -> None:
        """Renew until cancelled; LeadershipLost if another operator has taken it.

        It keeps trying while the API server is unreachable: if nobody took the Lease meanwhile, this operator leads on.
        """
        pause, failing = self._renew_every, False
        while True:
            await self._clock.sleep(pause)
            try:
                await self._renew()
            except LeadershipLost:
                self._valid_until = float("-inf")
                raise
            except RebalanceError as error:
                if not failing:
                    log.warning("lease %s was not renewed, retrying: %s", self._place, error.message)
                pause, failing = _LOOK_SECONDS, True
            else:
                if failing:
                    log.info("lease %s is renewed again", self._place)
                pause, failing = self._renew_every, False

    async def release(self) -> None:
        """Give it up, so that the next leader need not wait. Call it when nothing is under way; no-op if not ours."""
        self._valid_until = float("-inf")
        if not self._acquired:
            return
        for _ in range(_ATTEMPTS):
            try:
                found = await self._kube.get_lease(self.name)
                if found is None or not self._is_ours(found):
                    return
                await self._kube.replace_lease(self.name, {**found, "spec": {**found["spec"], "holderIdentity": ""}})
            except Conflict:
                continue
            except RebalanceError as error:
                log.warning("lease %s was not released, it will expire: %s", self._place, error.message)
                return
            log.info("lease %s is released", self._place)
            return

    async def _try_to_take(self) -> str | None:
        """None if it is ours now, else its holder."""
        found = await self._kube.get_lease(self.name)
        if found is not None:
            self._note(found.get("spec") or {})
        before = self._seen or {}
        holder: str = before.get("holderIdentity") or ""
        # A deleted Lease counts as it was last seen: its holder does not know yet.
        if holder not in {"", self.identity} and self._clock.monotonic() < self._expires:
            return holder
        self._acquired = _micro_time(self._clock.now())
        transitions = (before.get("leaseTransitions") or 0) + int(bool(before) and holder != self.identity)
        await self._write(found, {"acquireTime": self._acquired, "leaseTransitions": transitions})
        return None

    async def _renew(self) -> None:
        try:
            await self._write(self._written, {})
        except (Conflict, NotFound):
            found = await self._kube.get_lease(self.name)
            if found is not None and not self._is_ours(found):
                holder = found["spec"].get("holderIdentity") or "nobody, after another operator,"
                raise LeadershipLost(f"lease {self._place} is held by {holder} now; this operator exits") from None
            # The answer to a renewal was lost, or somebody annotated or deleted it.
            await self._write(found, {} if found else (self._written or {})["spec"])

    async def _write(self, before: Json | None, changes: Json) -> None:
        """Create it, or replace exactly ``before``. Its duration counts from before the request was sent."""
        spec = {
            **((before or {}).get("spec") or {}),
            **changes,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._duration,
            "renewTime": _micro_time(self._clock.now()),
        }
        sent = self._clock.monotonic()
        if before is None:
            kind: dict[str, Any] = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
            self._written = await self._kube.create_lease({**kind, "metadata": {"name": self.name}, "spec": spec})
        else:
            self._written = await self._kube.replace_lease(self.name, {**before, "spec": spec})
        self._valid_until = sent + self._duration - self._margin

    def _note(self, spec: Json) -> None:
        if spec != self._seen:
            self._seen, self._seen_at = spec, self._clock.monotonic()

    @property
    def _expires(self) -> float:
        """When the Lease of another operator will have been unchanged for its whole duration."""
        return self._seen_at + ((self._seen or {}).get("leaseDurationSeconds") or self._duration)

    def _is_ours(self, found: Json) -> bool:
        """Whether this process wrote it: the acquire time distinguishes two processes with one identity."""
        spec = found.get("spec") or {}
        return spec.get("holderIdentity") == self.identity and spec.get("acquireTime") == self._acquired

    @property
    def _place(self) -> str:
        return f"{self._kube.namespace}/{self.name}"


def _micro_time(moment: datetime) -> str:
    """Kubernetes' MicroTime, exactly as the API server returns it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
