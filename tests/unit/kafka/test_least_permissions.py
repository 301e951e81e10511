"""Which of the least permissions are missing, and what that costs."""

import pytest

from kafka_rebalance.kafka.least_permissions import concerning, missing_permissions, sentence
from kafka_rebalance.kafka.ports import AuthorizedOperations

MANY = 1_000
CLUSTER = frozenset({"Describe", "Alter", "DescribeConfigs", "AlterConfigs"})
TOPIC = CLUSTER - {"Alter"}


def whats(cluster=CLUSTER, hidden=(), **topics):
    return [m.what for m in missing_permissions(AuthorizedOperations(cluster, topics, frozenset(hidden)))]


class TestMissing:
    """The operations that the least ACLs name: Alter includes Describe, AlterConfigs includes DescribeConfigs."""

    def test_nothing(self):
        assert whats(orders=TOPIC) == []

    @pytest.mark.parametrize(
        ("cluster", "missing"),
        [
            (CLUSTER - {"Alter"}, ["Alter on the cluster"]),
            (CLUSTER - {"AlterConfigs"}, ["AlterConfigs on the cluster"]),
            (CLUSTER - {"AlterConfigs", "DescribeConfigs"}, ["AlterConfigs on the cluster"]),
            (frozenset({"Describe"}), ["Alter on the cluster", "AlterConfigs on the cluster"]),
            (frozenset(), ["Alter on the cluster"]),  # without Describe, Kafka says nothing of the rest
        ],
    )
    def test_of_the_cluster(self, cluster, missing):
        assert whats(cluster) == missing

    def test_of_topics(self):
        found = whats(hidden=["e", "d", "c", "b"], a=TOPIC, f=TOPIC - {"AlterConfigs"}, g={"Describe"})
        assert found == ["Describe on topics b, c, d and 1 more", "AlterConfigs on topic g", "AlterConfigs on topic f"]


class Name(str):
    """A topic that counts how often a topic is looked up."""

    __slots__ = ()
    looked_up = 0

    def __hash__(self):
        Name.looked_up += 1
        return super().__hash__()


class TestConcerning:
    MISSING = missing_permissions(
        AuthorizedOperations(CLUSTER - {"Alter"}, {"a": TOPIC - {"AlterConfigs"}}, frozenset({"payroll"}))
    )

    def test_configs_of_other_topics_do_not_matter(self):
        """What is hidden does: the health gate and the plan are blind for it."""
        assert [m.what for m in concerning(self.MISSING, {"b"})] == [
            "Alter on the cluster",
            "Describe on topic payroll",
        ]
        assert len(concerning(self.MISSING, {"a"})) == 3

    def test_the_sentence_says_what_each_costs(self):
        text = sentence(concerning(self.MISSING, set()))
        assert text.startswith("Alter on the cluster is not permitted (no step can be submitted")
        assert "Describe on topic payroll is not permitted (plans, the health gate" in text

    def test_all_that_is_missing_is_not_gone_through_for_each_rebalance(self):
        """A server may refuse any of the topics, and thousands of rebalances are compared with them."""
        topics = {Name(f"t{number}"): TOPIC - {"AlterConfigs"} for number in range(MANY)}
        missing = missing_permissions(AuthorizedOperations(CLUSTER, topics))
        Name.looked_up = 0
        assert concerning(missing, frozenset()) == ()
        assert [m.what for m in concerning(missing, {"t7", "other"})] == ["AlterConfigs on topic t7"]
        assert Name.looked_up < MANY
