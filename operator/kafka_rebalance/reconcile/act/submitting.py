"""Sends what was decided to Kafka. An order that is lost or refused is not sent again here: the next round looks."""

import logging
from collections.abc import Collection, Mapping

from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.kafka.ports import AlterCode, KafkaWriter
from kafka_rebalance.model.topology import ClusterState, TopicPartition

log = logging.getLogger(__name__)

_EXPECTED = {AlterCode.OK, AlterCode.ELECTION_NOT_NEEDED, AlterCode.NO_REASSIGNMENT_IN_PROGRESS}


async def submit(admin: KafkaWriter, name: str, orders: Orders, cluster: ClusterState) -> bool:
    """Send the orders of the rebalance ``name``; whether there were any."""
    submitted = {**dict.fromkeys(orders.cancels), **orders.alters}
    if submitted:
        _log_answers(name, "alter", await admin.alter_reassignments(submitted))
    # A leader movement is the reorder and the election after it: elect at once what has just been put in order.
    elections = [*orders.elections, *_reordered(orders, cluster)]
    if elections:
        _log_answers(name, "elect", await admin.elect_preferred(elections))
    return bool(submitted or elections)


def at_once(orders: Orders, cluster: ClusterState) -> Orders:
    """The part that copies nothing and is done inside the call."""
    alters = {tp: to for tp, to in orders.alters.items() if set(to) <= set(cluster.partitions[tp].replicas)}
    return Orders(orders.cancels, alters, orders.elections)


def copies(orders: Orders, cluster: ClusterState, uncovered: Collection[tuple[str, str]] | None) -> Orders:
    """The part that copies, without partitions whose throttle is not in place yet: they wait for the next round.

    ``uncovered``: topic and ``partition:broker`` of each replica that is to be throttled and is not; None: nothing is.
    """
    if uncovered is None:
        return Orders()
    waiting = {TopicPartition(topic, int(entry.partition(":")[0])) for topic, entry in uncovered}
    alters = {
        tp: to
        for tp, to in orders.alters.items()
        if not set(to) <= set(cluster.partitions[tp].replicas) and tp not in waiting
    }
    return Orders(alters=alters)


def _reordered(orders: Orders, cluster: ClusterState) -> list[TopicPartition]:
    """Partitions that were just given a new first replica which is in sync: a call without copies, done at once."""
    found = []
    for tp, replicas in orders.alters.items():
        state = cluster.partitions[tp]
        same = set(replicas) <= set(state.replicas)
        if same and replicas[0] != state.leader and state.leader in replicas and replicas[0] in state.isr:
            found.append(tp)
    return found


def _log_answers(name: str, call: str, answers: Mapping[TopicPartition, AlterCode]) -> None:
    for tp, code in answers.items():
        if code not in _EXPECTED:
            log.info("%s: %s of %s answered %s; looking again", name, call, tp, code)
