"""Calls that were chosen from an older reading are sent only if a second reading confirms them."""

from dataclasses import replace

import pytest

from kafka_rebalance.execution.partition_status import MovePhase, PartitionStatus
from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.decide.step_orders import changed_since, unchanged_orders

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


HELD = replicas_of(1, 2, 3)
STATE = PartitionState(TPS[0], "id", HELD, frozenset(HELD), BrokerId(1))
NULL = Orders(cancels=(TPS[0],))
DROP = Orders(alters={TPS[0]: replicas_of(2, 3)})
COPY = Orders(alters={TPS[0]: replicas_of(4, 1, 2, 3)})
REORDER = Orders(alters={TPS[0]: replicas_of(2, 1, 3)})
ELECTION = Orders(elections=(TPS[0],))
ORDERS = {"null": NULL, "drop": DROP, "copy": COPY, "reorder": REORDER, "election": ELECTION}


class TestChangedSince:
    """The records took their time. What was another partition meanwhile is not sent what was chosen before."""

    @staticmethod
    def changed(order, **edits):
        return changed_since(ORDERS[order], {TPS[0]: STATE}, {TPS[0]: replace(STATE, **edits)}) == {TPS[0]}

    @pytest.mark.parametrize("order", ORDERS)
    def test_the_same(self, order):
        assert not self.changed(order)

    @pytest.mark.parametrize("order", ORDERS)
    @pytest.mark.parametrize(
        "edits",
        [
            {"replicas": replicas_of(1, 3, 2)},
            {"replicas": replicas_of(1, 2, 3, 4), "adding": replicas_of(4)},
            {"removing": replicas_of(3)},
            {"topic_id": "id-2"},
            {"topic_id": ""},
        ],
    )
    def test_other_replicas_or_another_topic(self, order, edits):
        assert self.changed(order, **edits)

    @pytest.mark.parametrize("order", ORDERS)
    @pytest.mark.parametrize("edits", [{"isr": frozenset(HELD[:2])}, {"leader": BrokerId(2)}, {"leader": None}])
    def test_other_replicas_in_sync_where_nothing_is_given_up(self, order, edits):
        """Kafka elects only a replica in sync, and the one that is dropped may be the one that is out of sync."""
        assert self.changed(order, **edits) is (order == "drop" and "isr" in edits)

    def test_one_in_sync_less_would_stay(self):
        assert self.changed("drop", isr=frozenset(HELD[:2]))
        assert not self.changed("drop", isr=frozenset(HELD[1:]))

    @pytest.mark.parametrize(
        ("then", "now", "changed"),
        [
            ((1, 2, 3, 4), (1, 2, 4), True),
            ((1, 2, 3), (1, 2, 3, 4), True),
            ((1, 2, 3), (1, 2), False),
            ((1, 2, 4), (1, 2, 3, 4), False),
            ((1, 2, 4), (1, 2), False),
        ],
        ids=["an original left", "the copy is in sync", "nothing is given up", "an original is back", "the copy left"],
    )
    def test_a_null(self, then, now, changed):
        """Of a copy to broker 4."""
        state = replace(
            STATE, replicas=replicas_of(1, 2, 3, 4), adding=replicas_of(4), isr=frozenset(replicas_of(*then))
        )
        now = replace(state, isr=frozenset(replicas_of(*now)))
        assert (changed_since(NULL, {TPS[0]: state}, {TPS[0]: now}) == {TPS[0]}) is changed

    def test_brokers_that_report_no_topic_ids(self):
        before = {TPS[0]: replace(STATE, topic_id="")}
        assert not changed_since(COPY, before, before)

    @pytest.mark.parametrize("order", ORDERS)
    def test_what_could_not_be_read(self, order):
        assert changed_since(ORDERS[order], {TPS[0]: STATE}, {}) == {TPS[0]}
