"""Who acts: of all operators that keep their records in one namespace, the holder of its Lease.

A Lease is a word of honour, kept by clocks. Its holder counts from *before* it sent a renewal and stops acting a margin
early; the others count from *after* they saw the value change, on their own monotonic clocks. No two clocks are ever
compared: the times written in a Lease are for people. Whoever takes it has read it as it is, since every write names
the resourceVersion that it replaces.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any, Protocol

from kafka_rebalance.errors import Permanent, RebalanceError, Transient
from kafka_rebalance.kube.api_errors import Conflict, NotFound
from kafka_rebalance.kube.client import Json, KubeClient
from kafka_rebalance.reasons import Reason

log = logging.getLogger(__name__)

LEASE_NAME = "kafka-rebalance-operator"
DURATION_SECONDS = 30
_LOOK_SECONDS = 1.0
"""Between two looks at somebody else's Lease, and between two attempts to renew one's own."""
_ATTEMPTS = 3


class LeaseClock(Protocol):
    """The clocks, and a way to wait."""

    def now(self) -> datetime:
        """Wall time, aware: written for people, never compared."""

    def monotonic(self) -> float:
        """Seconds; goes on while the process is stopped."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class LeadershipLost(Permanent):
    """Somebody else has, or has had, the Lease: what this process knows is out of date, and it must end."""

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
        self.name = name.lower()  # the API server takes no other
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
        """Whether this process may act now. False at once after it was stopped or cut off for too long."""
        return self._clock.monotonic() < self._valid_until

    @property
    def look_age(self) -> float | None:
        """Seconds since the API server last told that somebody else holds it; None: it never did."""
        return None if self._waited_at is None else self._clock.monotonic() - self._waited_at

    async def acquire(self) -> None:
        """Wait until the Lease is ours. Who holds it is logged once. Permanent where the right to it is missing."""
        told = ""
        while True:
            try:
                holder = await self._try_to_take()
            except Conflict:
                continue  # somebody was faster: look who
            except Transient as error:
                waiting = f"waiting for the API server: {error.message}"
            else:
                if holder is None:
                    log.info("lease %s is held by this operator, %s", self._place, self.identity)
                    return
                waiting = f"waiting for the lease held by {holder}"
                self._waited_at = self._clock.monotonic()
            if waiting != told:
                log.info("%s (%s)", waiting, self._place)
                told = waiting
            left = self._expires - self._clock.monotonic()
            await self._clock.sleep(left if 0 < left < _LOOK_SECONDS else _LOOK_SECONDS)

    async def keep(self) -> None:
        """Renew until cancelled; LeadershipLost when somebody else has taken it.

        While the API server is away this goes on trying: who comes back before anybody else took the Lease still leads.
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
                    log.warning("lease %s was not renewed, tried again: %s", self._place, error.message)
                pause, failing = _LOOK_SECONDS, True
            else:
                if failing:
                    log.info("lease %s is renewed again", self._place)
                pause, failing = self._renew_every, False

    async def release(self) -> None:
        """Give it up, so that the next need not wait; only when nothing is under way. Not ours: nothing is done."""
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
                log.warning("lease %s was not released, it expires by itself: %s", self._place, error.message)
                return
            log.info("lease %s is released", self._place)
            return

    async def _try_to_take(self) -> str | None:
        """None: it is ours. Else who holds it."""
        found = await self._kube.get_lease(self.name)
        if found is not None:
            self._look_at(found.get("spec") or {})
        before = self._seen or {}
        holder: str = before.get("holderIdentity") or ""
        # One that somebody deleted is as good as it was when it was last seen: its holder does not know yet.
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
                holder = found["spec"].get("holderIdentity") or "nobody, after somebody else,"
                raise LeadershipLost(f"lease {self._place} is held by {holder} now; this operator ends") from None
            # An answer of ours was lost, somebody annotated it, or deleted it.
            await self._write(found, {} if found else (self._written or {})["spec"])

    async def _write(self, before: Json | None, changes: Json) -> None:
        """Create it, or replace exactly ``before``; valid from before the request was sent."""
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

    def _look_at(self, spec: Json) -> None:
        if spec != self._seen:
            self._seen, self._seen_at = spec, self._clock.monotonic()

    @property
    def _expires(self) -> float:
        """When what was last seen of somebody else has been unchanged for as long as its holder said."""
        return self._seen_at + ((self._seen or {}).get("leaseDurationSeconds") or self._duration)

    def _is_ours(self, found: Json) -> bool:
        """Written by this very process: the time of taking tells two of the same identity apart."""
        spec = found.get("spec") or {}
        return spec.get("holderIdentity") == self.identity and spec.get("acquireTime") == self._acquired

    @property
    def _place(self) -> str:
        return f"{self._kube.namespace}/{self.name}"


def _micro_time(moment: datetime) -> str:
    """Kubernetes' MicroTime, exactly as the API server gives it back."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
