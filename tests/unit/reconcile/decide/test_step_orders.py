"""Calls that were chosen from an older reading are sent only if a second reading confirms them."""

from dataclasses import replace

from kafka_rebalance.execution.partition_status import MovePhase, PartitionStatus
from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.model.topology import TopicPartition, replicas_of
from kafka_rebalance.reconcile.decide.step_orders import unchanged_orders

TPS = [TopicPartition("t", number) for number in range(2)]


class TestUnchangedOrders:
    def test_an_order_of_which_the_second_look_says_otherwise_is_not_sent(self):
        """Another tool was faster: the next round decides again."""
        before = dict.fromkeys(TPS, PartitionStatus(MovePhase.READY))
        after = {**before, TPS[0]: replace(before[TPS[0]], phase=MovePhase.WAITING, reason="ForeignReassignment")}
        orders = Orders(alters=dict.fromkeys(TPS, replicas_of(1, 2, 3)))
        assert unchanged_orders(orders, before, after).alters == {TPS[1]: replicas_of(1, 2, 3)}

    def test_what_the_second_look_confirms_is_sent(self):
        """As decided."""
        orders, statuses = (
            Orders(cancels=(TPS[0],), elections=(TPS[1],)),
            dict.fromkeys(TPS, PartitionStatus(MovePhase.READY)),
        )
        assert unchanged_orders(orders, statuses, dict(statuses)) == orders
