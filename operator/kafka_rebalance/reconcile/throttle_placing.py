"""Gives the throttle resources of a connection to its engine."""

import logging
from collections.abc import Mapping

from kafka_rebalance.api.v1alpha1 import KafkaReassignmentThrottle
from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.resources import UNEXPECTED
from kafka_rebalance.reconcile.connection_book import NamedConnection
from kafka_rebalance.reconcile.engine import ClusterEngine

log = logging.getLogger(__name__)


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
