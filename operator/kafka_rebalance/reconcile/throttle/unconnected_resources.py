"""Resources that no engine has: their status says why, and those that need nothing from their cluster may end."""

import logging
from collections.abc import Mapping, MutableMapping

from kafka_rebalance.api.conditions import NO_CONNECTION_REASONS
from kafka_rebalance.api.rebalance_states import STATES, StateGroup
from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.model.topology import ClusterState
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.act.permissions import PermissionUnknown
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.drained_brokers import take_back_drained
from kafka_rebalance.reconcile.report.ready_state import ready_reason
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.throttle.throttle_lifecycle import ThrottleLifecycle, Throttles

log = logging.getLogger(__name__)

_OUT = {
    Reason.CONNECTION_NOT_PERMITTED,
    Reason.CONNECTION_NOT_FOUND,
    Reason.INLINE_CONNECTION_REFUSED,
    Reason.CONFLICTED,
}
"""For these reasons other rebalances of the cluster do not know of the resource any more."""
_ENDS = {reason for reason, state in STATES.items() if state.group is StateGroup.ENDED}


class UnconnectedResources:
    """Reports on the resources. Resources that are gone are removed from the given mappings.

    Otherwise, after a missed deletion, the attempts to connect would never end.
    """

    def __init__(self, resources: Resources, lifecycle: Lifecycle, clock: Clock) -> None:
        self._resources = resources
        self._lifecycle = lifecycle
        self._throttle_lifecycle = ThrottleLifecycle(resources, clock)

    async def report(
        self,
        rebalances: MutableMapping[str, Rebalance],
        throttles: Throttles,
        why: Mapping[str, RebalanceError],
    ) -> None:
        """Say why, by uid; remove finalizers of deleted ones that need nothing from Kafka."""
        for uid in [uid for uid in rebalances if uid in why]:
            await self._report_rebalance(rebalances, uid, why[uid])
        ours = {uid: throttle for uid, throttle in throttles.items() if uid in why}
        await self._throttle_lifecycle.remove_finalizers(ours, connected=False)
        for uid in [uid for uid in throttles if uid in why]:
            await self._report_throttle(throttles, uid, why[uid], known=uid in ours)

    async def _report_rebalance(
        self, rebalances: MutableMapping[str, Rebalance], uid: str, error: RebalanceError
    ) -> None:
        rebalance = rebalances[uid]
        metadata = rebalance.desired.metadata
        try:
            if rebalance.desired.deleting:
                await self._lifecycle.prepare(rebalance, connected=error.reason not in NO_CONNECTION_REASONS)
            if not await self._resources.exists(metadata.namespace, metadata.name, uid, REBALANCES):
                rebalances.pop(uid, None)
            elif not await self._lifecycle.ended(rebalance):
                await self._resources.report(rebalance, ClusterState("", {}), {}, error)
            elif _is_out(error) and take_back_drained(rebalance):
                await self._resources.report(rebalance, ClusterState("", {}), {})
            elif rebalance.desired.edited or not _says_the_end(rebalance):
                # The new spec has ended too, or the status does not say that the run has ended: the operator was killed
                # before it wrote that, or a problem followed which only a round of an engine would end.
                await self._resources.report(rebalance, ClusterState("", {}), {})
        except RebalanceError as failed:
            log.warning("%s: status not written: %s", rebalance.name, failed.message)
        except Exception:
            # A defect that concerns one resource must not end the attempts to connect.
            log.exception("%s: status not written", rebalance.name)

    async def _report_throttle(self, throttles: Throttles, uid: str, error: RebalanceError, *, known: bool) -> None:
        throttle = throttles[uid]
        metadata = throttle.metadata
        try:
            if known and await self._resources.exists(metadata.namespace, metadata.name, uid, REASSIGNMENT_THROTTLES):
                await self._resources.report_throttle(throttle, "", None, problem=error)
            else:
                throttles.pop(uid, None)
        except RebalanceError as failed:
            log.warning("throttle %s: status not written: %s", throttle.name, failed.message)
        except Exception:
            log.exception("throttle %s: status not written", throttle.name)


def _is_out(why: RebalanceError) -> bool:
    return why.reason in _OUT and not isinstance(why, PermissionUnknown)


def _says_the_end(rebalance: Rebalance) -> bool:
    said = ready_reason(rebalance.memory.written or rebalance.desired.status)
    return said is not None and said[0] in _ENDS
