"""The throttle resources of one Kafka cluster, and the one whose rates and limits are in force.

A user may create thousands of them, each with thousands of rates: what is found out about one is kept until it changes.
"""

import logging
from collections import UserDict
from collections.abc import Mapping
from datetime import datetime

from kafka_rebalance.api.v1alpha1 import KafkaReassignmentThrottle
from kafka_rebalance.clock import Clock
from kafka_rebalance.reconcile.act.resources import UNEXPECTED
from kafka_rebalance.reconcile.decide.throttle_claims import ruling_throttle
from kafka_rebalance.reconcile.throttle.slices import THROTTLES_OF_A_SLICE, Slices

log = logging.getLogger(__name__)

_MOST_GONE = 10_000
"""How many uids of deleted resources are kept, the newest ones. The last event of a resource comes soon after."""


class KnownThrottles(UserDict[str, KafkaReassignmentThrottle]):
    """The throttle resources by uid, with the overrides that are in force."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[str, KafkaReassignmentThrottle] = {}
        """What ``see`` was given, without overrides."""
        self._looked_at: dict[str, tuple[KafkaReassignmentThrottle, datetime]] = {}
        """With which overrides each was found last, and when."""
        self._rating: set[str] = set()
        self._ruling: KafkaReassignmentThrottle | None = None
        self._ruling_known = True
        self._gone: dict[str, None] = {}
        """The uids of those that do not exist any more, oldest first. A late event about one is ignored."""
        super().__init__()

    def __setitem__(self, uid: str, throttle: KafkaReassignmentThrottle) -> None:
        """Look at the resource, unless it is the same as before."""
        before = self.data.get(uid)
        if before is throttle:
            return
        if before is None or before.spec is not throttle.spec:
            self._rating.discard(uid)
            if throttle.spec.sets_rates:
                self._rating.add(uid)
        self._ruling_known = False
        super().__setitem__(uid, throttle)

    def __delitem__(self, uid: str) -> None:
        """Forget the resource."""
        super().__delitem__(uid)
        self._seen.pop(uid, None)
        self._looked_at.pop(uid, None)
        self._rating.discard(uid)
        self._ruling_known = False

    def see(self, throttles: Mapping[str, KafkaReassignmentThrottle]) -> None:
        """Take in these resources, except those that are known to be gone."""
        for uid, throttle in throttles.items():
            if uid not in self._gone and self._seen.get(uid) is not throttle:
                self._look_at(uid, throttle)
                self._seen[uid] = throttle

    async def follow_overrides(self) -> None:
        """Overrides begin and end here. Other tasks get their turn, and what these have replaced or removed is kept."""
        slices = Slices(THROTTLES_OF_A_SLICE)
        for uid in list(self):
            await slices.next()
            if uid in self and not self._holds(uid):
                self._look_at(uid, self[uid])

    def _holds(self, uid: str) -> bool:
        """Whether none of its overrides can have begun or ended since they were looked at."""
        throttle, at = self._looked_at.get(uid, (None, None))
        if throttle is None or at is None or throttle is not self[uid]:
            return False
        now = self._clock.now()
        return at <= now and all(now < override.until for override in throttle.overrides)

    def _look_at(self, uid: str, throttle: KafkaReassignmentThrottle) -> None:
        """Apply its overrides. If they fail, apply the spec alone, because the limits must stay in force."""
        now = self._clock.now()
        try:
            self[uid] = throttle.as_of(now)
            self._looked_at[uid] = self[uid], now
        except Exception:
            log.exception("throttle %s: its overrides are ignored", throttle.name)
            problems = (f"the overrides: {UNEXPECTED}",)
            without = {"spec": throttle.given or throttle.spec, "overrides": (), "override_problems": problems}
            self[uid] = throttle.model_copy(update=without)

    def remove_gone(self, uid: str) -> None:
        """The resource does not exist any more."""
        self.pop(uid, None)
        self._gone[uid] = None
        if len(self._gone) > _MOST_GONE:
            del self._gone[next(iter(self._gone))]

    @property
    def rating(self) -> list[KafkaReassignmentThrottle]:
        """Those that set rates."""
        return [self[uid] for uid in self._rating]

    @property
    def claimable(self) -> list[KafkaReassignmentThrottle]:
        """Those whose rates may be claimed: those with our finalizer, and those that set no rate."""
        return [
            t for uid, t in self.items() if not t.metadata.deleting and (t.metadata.held or uid not in self._rating)
        ]

    @property
    def ruling(self) -> KafkaReassignmentThrottle | None:
        """The resource whose rates and limits are in force: the oldest that has our finalizer or sets no rate."""
        if not self._ruling_known:
            self._ruling, self._ruling_known = ruling_throttle(self.claimable), True
        return self._ruling
