"""A server is a known cluster if it shows a broker and a topic that are on record; addresses do not matter."""

import pytest

from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.reconcile.decide.cluster_identity import SAMPLE_TOPICS, contradiction, renewed

OWNER = Owner("a")


def known(brokers=(1, 2, 3), **topics):
    return Binding("c", OWNER, frozenset(brokers), topics)


class TestContradiction:
    @pytest.mark.parametrize(
        ("brokers", "topics"),
        [
            ({1, 2, 3}, {"t": "id-1", "u": "id-2"}),
            ({3, 4, 5}, {"t": "id-1"}),  # most brokers were replaced, and a topic deleted
            ({1}, {"t": "id-9", "u": "id-2"}),  # a topic was created again
            (set(), {"t": "id-1"}),  # no broker is live
        ],
    )
    def test_the_same_cluster(self, brokers, topics):
        """One broker and one topic seen again are enough."""
        assert contradiction(known(t="id-1", u="id-2"), frozenset(brokers), topics) == ""

    @pytest.mark.parametrize(
        ("brokers", "topics", "said"),
        [
            ({4, 5}, {"t": "id-1", "u": "id-2"}, "brokers are 4, 5, those on record are 1, 2, 3"),
            ({1, 2, 3}, {}, "none of the topics on record (t, u)"),
            ({1, 2, 3}, {"t": "id-8", "u": "id-9"}, "none of the topics on record (t, u)"),
        ],
    )
    def test_another_cluster(self, brokers, topics, said):
        """The id that it claims does not matter."""
        assert said in contradiction(known(t="id-1", u="id-2"), frozenset(brokers), topics)

    def test_nothing_is_on_record(self):
        """As after an upgrade, or before the first topic."""
        assert contradiction(known(()), frozenset({1}), {"t": "id-1"}) == ""


class TestRenewed:
    def test_brokers_add_up(self):
        """The brokers that are down now may be the ones that return."""
        assert renewed(known({1, 2}), frozenset({3}), {}).brokers == {1, 2, 3}

    def test_topics_are_few_and_internal_ones_come_first(self):
        """Users do not delete them. Topics that were seen again stay before new ones."""
        there = {f"t{number:03}": f"id-{number}" for number in range(100)} | {"__consumer_offsets": "id-c"}
        found = renewed(known(t099="id-99", gone="id-x"), frozenset({1}), there).topics
        assert len(found) == SAMPLE_TOPICS
        assert {"__consumer_offsets", "t099"} <= found.keys()
        assert "gone" not in found
