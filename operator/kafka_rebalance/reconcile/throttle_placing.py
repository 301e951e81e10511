"""Gives the throttle resources of a connection to its engine."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from kafka_rebalance.api.v1alpha1 import KafkaReassignmentThrottle, parse_metadata
from kafka_rebalance.errors import RebalanceError, Refused, Transient
from kafka_rebalance.model.ownership import Owner
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.permissions import PermissionUnknown
from kafka_rebalance.reconcile.act.resources import UNEXPECTED
from kafka_rebalance.reconcile.connection_book import ConnectionBook, NamedConnection
from kafka_rebalance.reconcile.engine import ClusterEngine

log = logging.getLogger(__name__)

_NO_ENGINE = {
    Reason.CONNECTION_NOT_FOUND,
    Reason.CONNECTION_NOT_PERMITTED,
    Reason.INLINE_CONNECTION_REFUSED,
    Reason.CLUSTER_OWNED_ELSEWHERE,
}
_MOST_SECONDS = 10.0
"""How long rebalances wait for throttle resources that the engine can soon have."""
_PAUSE_SECONDS = 1.0
"""Between two looks at these."""


def place_one_by_one(
    connection: NamedConnection, throttles: Mapping[str, KafkaReassignmentThrottle], engine: ClusterEngine
) -> dict[str, RebalanceError]:
    """Pass them to the engine one by one, so that a failure does not affect the others. Returns the failures by uid."""
    failed: dict[str, RebalanceError] = {}
    for uid, throttle in throttles.items():
        try:
            connection.place_throttles({uid: throttle}, engine)
        except Exception:
            log.exception("throttle %s: unexpected error", throttle.name)
            failed[uid] = Transient(Reason.INTERNAL_ERROR, UNEXPECTED)
    return failed


async def place_all(connection: NamedConnection, settle: Callable[[], Awaitable[None]]) -> None:
    """Call ``settle``, which hands over the resources, until the engine has all throttle resources that it can have.

    One whose status is being written waits for that, and one of a namespace whose labels could not be read until they
    are. Rebalances that it freezes or limits must not move before.
    Returns after a limited time in any case, and if the engine is ended.
    """
    engine, clock = connection.engine, asyncio.get_running_loop().time
    until = clock() + _MOST_SECONDS
    await settle()
    while connection.engine is engine and _waits(connection) and clock() < until:
        await asyncio.sleep(_PAUSE_SECONDS)
        await settle()


def follows(connection: NamedConnection, throttle: KafkaReassignmentThrottle) -> bool:
    """Whether an engine takes in this change at once. Not while the permission of its namespace is not known."""
    uid = throttle.metadata.uid
    unknown = isinstance(connection.refusals.get(uid), PermissionUnknown) and not throttle.metadata.deleting
    return uid in connection.placed and not unknown


def all_placed(book: ConnectionBook, owner: Owner, cluster_id: str) -> bool:
    """Whether no throttle resource is left that the engine of this owner and cluster may still get.

    One that may not use its connection gets no engine. One may that waits for its permission, that cannot be connected,
    or whose spec cannot be read.
    """
    own = [connection for connection in book if connection.owner == owner]
    placed = all(uid in c.placed or _is_refused(c.refusals.get(uid)) for c in own for uid in c.throttles)
    return placed and cluster_id not in book.unread_throttles.values()


def limited_by_unread(body: Mapping[str, Any]) -> dict[str, str]:
    """By its uid, the cluster in which this throttle resource has limited something, as its status says; may be empty.

    Its spec cannot be read.
    """
    try:
        about = parse_metadata(body)
    except Refused:
        return {}
    status = body.get("status")
    cluster = status.get("clusterId") if isinstance(status, Mapping) else None
    return {about.uid: cluster} if about.held and not about.deleting and isinstance(cluster, str) else {}


def _is_refused(why: RebalanceError | None) -> bool:
    return why is not None and why.reason in _NO_ENGINE and not isinstance(why, PermissionUnknown)


def _waits(connection: NamedConnection) -> bool:
    """Whether a throttle resource has no engine, although it is not refused, or not yet known to be."""
    refused = {uid for uid, why in connection.refusals.items() if not isinstance(why, PermissionUnknown)}
    return not connection.throttles.keys() <= connection.placed.keys() | refused
