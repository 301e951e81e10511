"""The statuses of one cluster's throttle resources in each round, for a limited time.

Users can make each write to an object take its time-out. So those whose last write has failed come last, and the pause
after a failure grows.
"""

import logging
from collections.abc import Mapping, Sequence

from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, KafkaReassignmentThrottle
from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.reconcile.act.backoff import Backoff
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.act.turns import STAGE_SECONDS
from kafka_rebalance.reconcile.report.throttle_report import ThrottleView
from kafka_rebalance.reconcile.throttle.known_throttles import KnownThrottles
from kafka_rebalance.reconcile.throttle.slices import THROTTLES_OF_A_SLICE, Slices

log = logging.getLogger(__name__)

GHOST_SECONDS = 60.0
"""How often to check that resources without our finalizer still exist: a watch can miss their deletion."""


class ThrottleStatuses:
    """Removes a throttle resource that is gone."""

    def __init__(self, resources: Resources, cluster_id: str, clock: Clock) -> None:
        self.left: Sequence[str] = ()
        """The uids for which the last round had no time left. They come first in the next one."""
        self._resources = resources
        self._cluster_id = cluster_id
        self._clock = clock
        self._backoff = Backoff[str](clock.monotonic)
        self._ghosts_looked_for_at = clock.monotonic()

    async def report(
        self,
        throttles: KnownThrottles,
        ruling: KafkaReassignmentThrottle | None,
        view: ThrottleView,
        why: Mapping[str, RebalanceError | None],
    ) -> None:
        """Write those that are due. ``why``: by uid, the problem to report."""
        now = self._clock.monotonic()
        look_for_ghosts = now - self._ghosts_looked_for_at >= GHOST_SECONDS
        if look_for_ghosts:
            self._ghosts_looked_for_at = now
        self._backoff.forget_all_but(throttles.keys())
        order = sorted(dict.fromkeys((*self.left, *throttles)), key=self._backoff.has_failed)
        slices, self.left = Slices(THROTTLES_OF_A_SLICE), ()
        for number, uid in enumerate(order):
            await slices.next()
            throttle = throttles.get(uid)
            if throttle is None or not self._backoff.due([uid]):
                continue
            if self._clock.monotonic() - now >= STAGE_SECONDS:
                self.left = order[number:]
                return
            try:
                exists = await self._resources.report_throttle(throttle, self._cluster_id, ruling, view, why.get(uid))
                if exists and look_for_ghosts and not throttle.metadata.held:
                    where = (throttle.metadata.namespace, throttle.metadata.name, uid, REASSIGNMENT_THROTTLES)
                    exists = await self._resources.exists(*where)
            except RebalanceError as error:
                log.warning("throttle %s: status not written: %s", throttle.name, error.message)
                self._backoff.failed(uid)
            except Exception:
                log.exception("throttle %s: status not written", throttle.name)
                if not await self._resources.report_throttle_failure(throttle):
                    self._backoff.failed(uid)
            else:
                self._backoff.succeeded(uid)
                if not exists:
                    throttles.remove_gone(uid)
