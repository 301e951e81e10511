"""With any wanted and stored entries, no append makes a list longer than the budget, and every entry has its turn."""

from hypothesis import given
from hypothesis import strategies as st

from kafka_rebalance.execution import list_budget
from kafka_rebalance.execution.ledger import Ledger
from kafka_rebalance.execution.list_budget import MOST_BYTES, ListBudget, StoredList, fitting
from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST, LEADER_LIST
from kafka_rebalance.model.topology import TopicPartition

NAMES = (LEADER_LIST, FOLLOWER_LIST)
BROKERS = st.frozensets(st.integers(1, 1200), min_size=1, max_size=5)


def listed(rows):
    return frozenset(f"{number}:{broker}" for number, brokers in rows for broker in brokers)


ROWS = st.tuples(st.integers(0, 12_000), st.integers(1, 3000), BROKERS).map(
    lambda row: [(number, row[2]) for number in range(row[0], row[0] + row[1])]
)
LISTS = st.dictionaries(st.sampled_from(NAMES), ROWS.map(listed), min_size=1)
FOREIGN = st.integers(0, 15_000).map(lambda upto: {TopicPartition("t", number) for number in range(upto)})


class TestFitting:
    @given(LISTS, LISTS, LISTS, FOREIGN)
    def test_no_append_exceeds_the_budget(self, wanted, there, ours, foreign):
        """The stored value with all possible entries is within the budget, unless it was longer before."""
        stored = {("t", name): StoredList.of(",".join(sorted(items))) for name, items in there.items()}
        admitted, left = fitting({"t": wanted}, ListBudget(stored, Ledger(entries={"t": ours})), foreign)
        for name in NAMES:
            before = there.get(name, frozenset())
            appended = admitted.get("t", {}).get(name, frozenset()) - before
            assert not appended or len(",".join({*before, *ours.get(name, ()), *appended})) <= MOST_BYTES
        missing = {
            TopicPartition("t", int(item.partition(":")[0]))
            for name, items in wanted.items()
            for item in items - admitted.get("t", {}).get(name, frozenset())
        }
        assert missing == left.partitions

    @given(LISTS, FOREIGN)
    def test_everything_has_its_turn(self, wanted, foreign):
        """If what was listed has arrived, more fits, until nothing is left."""
        rounds = 0
        while wanted:
            admitted, _ = fitting({"t": wanted}, ListBudget(), foreign)
            assert admitted
            wanted = {
                name: left for name, items in wanted.items() if (left := items - admitted["t"].get(name, frozenset()))
            }
            rounds += 1
        assert rounds <= 15_000 * 60 // list_budget.MOST_BYTES + 2
