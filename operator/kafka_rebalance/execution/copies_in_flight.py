"""Why a copy in flight makes no progress. Pure."""

from collections.abc import Collection

from kafka_rebalance.model.topology import BrokerId, PartitionState
from kafka_rebalance.reasons import Reason


def what_a_copy_lacks(state: PartitionState, live: Collection[BrokerId]) -> tuple[str, str]:
    """Reason and message; empty if nothing is missing. ``live``: the brokers that are registered and not fenced."""
    if state.leader is None:
        message = "the partition has no leader to copy from; the copy continues when one of its replicas returns"
        return Reason.NO_LEADER, message
    away = [b for b in state.adding if b not in live]
    if away:
        message = f"the copy goes to broker {away[0]}, which is not registered or is fenced; it continues on its return"
        return Reason.TARGET_BROKER_UNAVAILABLE, message
    late = [b for b in state.replicas if b not in state.isr and b not in state.removing]
    if late and state.isr.issuperset(state.adding):
        message = f"the new copy is in sync; Kafka ends the step when broker {late[0]}, which stays, is in sync too"
        return Reason.REPLICA_NOT_IN_SYNC, message
    return "", ""
