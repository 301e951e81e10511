"""The statuses of one cluster's rebalances in each round: whose turn it is, and when a write that failed is repeated.

Users can make each write to an object take its time-out. A round must not wait for all of these, because it also looks
at deletions, freezes and throttles. So a stage begins to write for a limited time, those whose last write has succeeded
come first, and the pause after a failure grows. A status that is not written is built all the same: the last figures of
a run are known when it is closed.
"""

import logging
from collections.abc import Iterable, Iterator, MutableMapping

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.model.topology import ClusterState
from kafka_rebalance.reconcile.act.backoff import Backoff
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.act.run_records import give_up_plan
from kafka_rebalance.reconcile.act.turns import STAGE_SECONDS, Turns
from kafka_rebalance.reconcile.observe.observer import Observer
from kafka_rebalance.reconcile.state.rebalance import Rebalance

log = logging.getLogger(__name__)

_AGAIN_SECONDS = 5.0
"""How long a stage begins to write those statuses whose last write has failed."""


class StatusWrites:
    """Removes a rebalance from ``rebalances``, which are by uid, if its object is gone."""

    def __init__(
        self,
        resources: Resources,
        rebalances: MutableMapping[str, Rebalance],
        observer: Observer,
        turns: Turns,
        clock: Clock,
    ) -> None:
        self._resources = resources
        self._rebalances = rebalances
        self._observer = observer
        self._turns = turns
        self._backoff = Backoff[str](clock.monotonic)

    def in_turn(
        self, stage: str, rebalances: Iterable[Rebalance], seconds: float = STAGE_SECONDS
    ) -> Iterator[tuple[Rebalance, bool]]:
        """All of them, and whether there is still time in this stage to write the status."""
        self._backoff.forget_all_but(self._rebalances)
        failed, others = list[Rebalance](), list[Rebalance]()
        for rebalance in rebalances:
            (failed if self._backoff.has_failed(rebalance.uid) else others).append(rebalance)
        yield from self._turns.marked(stage, others, seconds)
        yield from self._turns.marked(f"{stage} again", failed, min(seconds, _AGAIN_SECONDS))

    async def report_judged(self, rebalance: Rebalance, cluster: ClusterState, *, in_time: bool = True) -> None:
        """As ``report``, unless it was deleted since it was judged: what then goes back is not known yet."""
        if not rebalance.desired.deleted_since(rebalance.memory.prepared):
            await self.report(rebalance, cluster, in_time=in_time)

    async def report(
        self,
        rebalance: Rebalance,
        cluster: ClusterState,
        problem: RebalanceError | None = None,
        *,
        in_time: bool = True,
    ) -> None:
        """Build the status, and write it ``in_time`` and after the pause that follows a failure.

        A status that cannot be built does not delay this rebalance or the others; the resource then reports only this
        error.
        """
        write = in_time and bool(self._backoff.due([rebalance.uid]))
        try:
            sizes = self._observer.sizes.replica_bytes
            exists = await self._resources.report(rebalance, cluster, sizes, problem, write=write)
        except RebalanceError as error:
            log.warning("%s: status not written: %s", rebalance.name, error.message)
            self._backoff.failed(rebalance.uid)
            return
        except Exception:
            log.exception("%s: status not written", rebalance.name, extra=rebalance.log_fields)
            if write and not await self._resources.report_failure(rebalance):
                self._backoff.failed(rebalance.uid)
            return
        if write:
            self._backoff.succeeded(rebalance.uid)
        if not exists:
            log.info("%s is gone", rebalance.name)
            give_up_plan(rebalance)
            self._rebalances.pop(rebalance.uid, None)
