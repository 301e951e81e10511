"""Sends what was decided to Kafka. An order that is lost or refused is not sent again here: the next round looks."""

import logging
from collections.abc import Collection, Mapping

from kafka_rebalance.errors import Permanent, RebalanceError
from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.kafka.ports import AlterCode, KafkaWriter
from kafka_rebalance.model.topology import ClusterState, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.state.rebalance import Rebalance

log = logging.getLogger(__name__)

_STAGE = "submit"
_EXPECTED = {AlterCode.OK, AlterCode.ELECTION_NOT_NEEDED, AlterCode.NO_REASSIGNMENT_IN_PROGRESS}


class Submitting:
    """Sends the orders of the rebalances of one cluster."""

    def __init__(self, admin: KafkaWriter, lifecycle: Lifecycle) -> None:
        self._admin = admin
        self._lifecycle = lifecycle

    async def submit(self, rebalance: Rebalance, orders: Orders, cluster: ClusterState) -> bool:
        """Whether anything was sent. Without the permission to send, this rebalance says so, and the round goes on.

        Any other failure ends the round: whether an order was carried out is for the next round to find out.
        """
        failure: RebalanceError | None = None
        sent = False
        async with self._lifecycle.problems_of(rebalance, _STAGE):
            try:
                sent = await submit(self._admin, rebalance.name, orders, cluster)
            except RebalanceError as error:
                if error.reason == Reason.KAFKA_AUTHORIZATION_FAILED:
                    raise
                failure = error
        if failure is not None:
            raise failure
        return sent

    def refused(self, rebalance: Rebalance) -> bool:
        """Whether Kafka did not permit the last orders of this rebalance."""
        return rebalance.memory.problem is not None and rebalance.memory.problem.stage == _STAGE


async def submit(admin: KafkaWriter, name: str, orders: Orders, cluster: ClusterState) -> bool:
    """Send the orders of the rebalance ``name``; whether there were any.

    Permanent("KafkaAuthorizationFailed") if Kafka does not permit them, which it says of each partition.
    """
    submitted = {**dict.fromkeys(orders.cancels), **orders.alters}
    if submitted:
        _check_answers(name, "reassign", await admin.alter_reassignments(submitted))
    # A leader movement is the reorder and the election after it: elect at once what has just been put in order.
    elections = [*orders.elections, *_reordered(orders, cluster)]
    if elections:
        _check_answers(name, "elect the leader of", await admin.elect_preferred(elections))
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


def _check_answers(name: str, call: str, answers: Mapping[TopicPartition, AlterCode]) -> None:
    for tp, code in answers.items():
        if code is AlterCode.NOT_AUTHORIZED:
            message = f"Kafka does not allow us to {call} {tp}: the ACL for Alter on the cluster is missing"
            raise Permanent(Reason.KAFKA_AUTHORIZATION_FAILED, message)
        if code not in _EXPECTED:
            log.info("%s: %s of %s answered %s; looking again", name, call, tp, code)
