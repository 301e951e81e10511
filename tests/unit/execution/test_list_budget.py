"""The budget of a list of throttled replicas: which entries may be appended, and in which order."""

from kafka_rebalance.execution.ledger import Ledger
from kafka_rebalance.execution.list_budget import (
    LONGEST_BYTES,
    MOST_BYTES,
    LeftOut,
    ListBudget,
    ListRoom,
    StoredList,
    batches,
    bytes_of,
    fitting,
    longest_part,
)
from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST, LEADER_LIST
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition, replicas_of


def entries(first, count, *brokers):
    """``count`` partitions from ``first`` on, listed for each of the brokers."""
    return frozenset(f"{number}:{broker}" for number in range(first, first + count) for broker in brokers)


def moving(first, count):
    """Both sides of partitions that move from 1001, 1002 and 1003 to 1004."""
    leaders = entries(first, count, 1001, 1002, 1003, 1004)
    return {LEADER_LIST: leaders, FOLLOWER_LIST: entries(first, count, 1004)}


def stored(value, name=LEADER_LIST):
    return ListBudget({("t", name): StoredList.of(value)})


def filler(size):
    """Entries of others of this many bytes."""
    return "9:1001" + ",9:1001" * ((size - 6) // 7) + "1" * ((size - 6) % 7)


class TestWhatFits:
    def test_a_few(self):
        """All of them, on both sides."""
        assert fitting({"t": moving(0, 100)}, ListBudget()) == ({"t": moving(0, 100)}, LeftOut())

    def test_a_thousand_partitions_of_four_digit_brokers(self):
        """The lists stay below the limit of Kafka; the partitions without room are named."""
        listed, left = fitting({"t": moving(1000, 1000)}, ListBudget())
        assert MOST_BYTES - 50 < bytes_of(listed["t"][LEADER_LIST]) <= MOST_BYTES < LONGEST_BYTES
        whole = {int(item.partition(":")[0]) for item in listed["t"][LEADER_LIST]}
        assert left == LeftOut(
            leader_side=frozenset(TopicPartition("t", n) for n in range(1000, 2000) if n not in whole)
        )

    def test_no_partition_is_listed_in_part(self):
        """Any of its replicas may become the leader."""
        listed, _ = fitting({"t": moving(1000, 1000)}, ListBudget())
        assert len(listed["t"][LEADER_LIST]) % 4 == 0

    def test_entries_of_others_count_with_their_duplicates(self):
        """The length of the stored value counts, with any content."""
        value = filler(MOST_BYTES - 20)
        assert len(value) == MOST_BYTES - 20
        budget = stored(value)
        assert ListRoom(budget).admits("t", {LEADER_LIST: ["0:1", "1:1", "2:1", "3:1", "4:1"]})
        assert not ListRoom(budget).admits("t", {LEADER_LIST: ["0:1", "1:1", "2:1", "3:1", "4:1", "5:1"]})

    def test_what_may_still_arrive_counts(self):
        """Entries on record that the last reading does not show: an unanswered append may come late."""
        ledger = Ledger(entries={"t": {LEADER_LIST: entries(1000, 2990, 1001)}})
        assert not ListRoom(ListBudget(ledger=ledger)).admits("t", {LEADER_LIST: entries(9000, 12, 1001)})
        assert ListRoom(ListBudget(ledger=ledger)).admits("t", {LEADER_LIST: entries(9000, 9, 1001)})

    def test_what_is_stored_costs_nothing(self):
        """It stays listed however full the list is."""
        budget = stored(filler(LONGEST_BYTES - 14) + ",0:1001,0:1002")
        assert fitting({"t": {LEADER_LIST: entries(0, 2, 1001, 1002)}}, budget)[0] == {
            "t": {LEADER_LIST: frozenset({"0:1001", "0:1002"})}
        }

    def test_a_record_that_is_too_long_is_not_sent(self):
        """An operator without this limit may have left it. It is taken out, and what fits comes in the next round."""
        items = entries(1000, 4000, 1001)
        listed, left = fitting(
            {"t": {FOLLOWER_LIST: items}}, ListBudget(ledger=Ledger(entries={"t": {FOLLOWER_LIST: items}}))
        )
        assert listed == {}
        assert len(left.wholly) == 4000

    def test_a_wildcard_has_room_for_all(self):
        """It is there already, and nothing is appended."""
        assert ListRoom(stored("*")).admits("t", {LEADER_LIST: entries(0, 9000, 1001)})


class TestWhoComesFirst:
    def test_rebalances_before_other_tools(self):
        """Partitions that other tools move are listed only as far as they fit."""
        foreign = {TopicPartition("t", number) for number in range(1000, 2000)}
        _, left = fitting({"t": moving(1000, 1700)}, ListBudget(), foreign)
        ours = {TopicPartition("t", number) for number in range(2000, 2700)}
        assert not left.partitions & ours
        assert left.partitions <= foreign

    def test_the_followers_side_before_the_leaders(self):
        """Its list holds four times as many partitions here."""
        listed, left = fitting({"t": moving(1000, 2000)}, ListBudget())
        assert len(listed["t"][FOLLOWER_LIST]) == 2000
        assert not left.wholly
        assert len(left.leader_side) == 2000 - len(listed["t"][LEADER_LIST]) // 4

    def test_what_fits_on_neither_side(self):
        """It is named as such."""
        _, left = fitting({"t": moving(1000, 4000)}, ListBudget())
        assert len(left.wholly) == 4000 - MOST_BYTES // len("1000:1004,")

    def test_topics_have_lists_of_their_own(self):
        """A full one holds back no other."""
        listed, left = fitting({"t": moving(1000, 1000), "u": moving(0, 10)}, ListBudget())
        assert listed["u"] == moving(0, 10)
        assert {tp.topic for tp in left.partitions} == {"t"}


class TestSteps:
    STATE = PartitionState(TopicPartition("t", 0), "i", replicas_of(1, 2), frozenset(), BrokerId(1))

    def test_every_present_replica_counts_and_the_new_ones(self):
        """Leader side 0:1, 0:2 and 0:3; follower side 0:3."""
        room = ListRoom(stored(filler(MOST_BYTES - 15)))
        assert not room.admits_step(self.STATE, replicas_of(3, 4, 1, 2))
        assert room.admits_step(self.STATE, replicas_of(3, 1, 2))
        assert room.admits_step(self.STATE, replicas_of(3, 1, 2)), "counted already"
        assert not room.admits("t", {LEADER_LIST: ["1:1"]})

    def test_only_where_replicas_are_listed(self):
        """At full speed no entry is needed."""
        budget = stored(filler(MOST_BYTES))
        nowhere = ListBudget(budget.stored, is_listed=lambda _broker, _rate: False)
        assert ListRoom(nowhere).admits_step(self.STATE, replicas_of(3, 1, 2))
        assert not ListRoom(budget).admits_step(self.STATE, replicas_of(3, 1, 2))

    def test_a_copy_is_for_trying(self):
        """What it admits does not count in the original."""
        room = ListRoom(stored(filler(MOST_BYTES - 4)))
        assert room.copy().admits("t", {LEADER_LIST: ["0:1"]})
        assert room.admits("t", {LEADER_LIST: ["1:1"]})
        assert not room.copy().admits("t", {LEADER_LIST: ["0:1"]})


class TestRequests:
    def test_a_string_is_never_too_long(self):
        """What is taken out at once; the rest follows."""
        items = entries(0, 9000, 1001)
        assert longest_part(entries(0, 9, 1001)) == entries(0, 9, 1001)
        part = longest_part(items)
        assert part < items
        assert MOST_BYTES - 20 < bytes_of(part) <= MOST_BYTES

    def test_lists_go_in_several_requests(self):
        """By size, and at most a thousand topics; one that is larger goes alone."""
        assert list(batches({"a": 6, "b": 4, "c": 11, "d": 1}, 10)) == [["a", "b"], ["c"], ["d"]]
        assert [len(batch) for batch in batches(dict.fromkeys(range(2500), 0))] == [1000, 1000, 500]
        assert list(batches({})) == []
