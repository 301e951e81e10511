"""A server is a known cluster if it shows a broker and a topic that are on record; addresses do not matter."""

from dataclasses import replace

import pytest

from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.model.topology import Broker, BrokerId
from kafka_rebalance.reconcile.decide.cluster_identity import (
    SAMPLE_TOPICS,
    advertised_by,
    contradiction,
    hashes_of,
    led_here,
    proved,
    reached_by,
    renewed,
)

OWNER = Owner("a")
BROKERS = {BrokerId(1): Broker(BrokerId(1), host="Kafka-1", port=9093)}


def known(brokers=(1, 2, 3), **topics):
    return Binding("c", OWNER, frozenset(brokers), topics)


@pytest.mark.parametrize("topics", [{}, {"t": "id-1"}])
def test_addresses_prove_nothing_of_a_cluster_without_topics_on_record(topics):
    """Then any server with one of its broker ids is taken for the cluster."""
    binding, servers = replace(known(**topics), servers=frozenset({"kafka:9092"})), frozenset({"kafka:9092"})
    assert proved(binding, servers, frozenset(), as_created=True) is bool(topics)


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


class TestLedHere:
    """The server of another owner is reached at boot:9092, and advertises one broker."""

    @pytest.mark.parametrize(
        ("servers", "more", "here"),
        [
            ({"boot:9092"}, False, True),
            ({"boot:9092", "kafka-1:9093"}, False, True),  # what a broker advertises
            ({"boot:9092", "other:9092"}, False, False),
            ({"boot:9093"}, False, False),
            ({"boot:9092"}, True, False),
            (set(), False, False),
        ],
    )
    def test_if_all_addresses_of_the_owner_are_of_this_cluster(self, servers, more, here):
        """And if none is missing on record."""
        binding = replace(known(), servers=frozenset(servers), more_servers=more, advertised=frozenset({"boot:9092"}))
        assert led_here(binding, frozenset({"boot:9092"}), advertised_by(BROKERS), as_created=False) is here

    @pytest.mark.parametrize(
        ("servers", "here"),
        [
            ({"boot:9092"}, True),
            ({"boot:9092", "kafka-1:9093"}, True),
            ({"kafka-1:9093"}, True),
            ({"fake:9092"}, False),  # it advertises the addresses of the owner
            ({"boot:9092", "fake:9092"}, False),
        ],
    )
    def test_if_the_owner_knows_all_addresses_of_this_server(self, servers, here):
        """Any of them may have answered. A record of an earlier version has the addresses that brokers advertised."""
        addresses = advertised_by(BROKERS)
        for advertised in (hashes_of(addresses), addresses):
            binding = replace(known(), servers=frozenset({"boot:9092"}), advertised=advertised)
            assert led_here(binding, frozenset(servers), frozenset({"boot:9092"}), as_created=False) is here

    def test_the_owner_knows_all_addresses_of_a_thousand_brokers(self):
        """The record has a few bytes for each, however long it is: its size is limited."""
        brokers = {BrokerId(b): Broker(BrokerId(b), host=f"{'h' * 240}-{b}", port=9092) for b in range(1000)}
        advertised = hashes_of(advertised_by(brokers))
        binding = replace(known(), servers=frozenset({"boot:9092"}), advertised=advertised)
        for server in advertised_by(brokers):
            assert led_here(binding, frozenset({server}), frozenset({"boot:9092"}), as_created=False)
        assert sum(map(len, advertised)) == 16 * 1000

    @pytest.mark.parametrize(
        ("servers", "here"), [({"boot:9092", "new:9092"}, True), ({"new:9092"}, False), ({"kafka-1:9093"}, True)]
    )
    def test_if_an_administrator_has_written_both(self, servers, here):
        """What brokers advertise is no proof by itself."""
        advertised = hashes_of(advertised_by(BROKERS))
        binding = replace(known(), servers=frozenset({"boot:9092"}), advertised=advertised)
        assert led_here(binding, frozenset(servers), frozenset({"boot:9092"}), as_created=True) is here


class TestReachedBy:
    def test_addresses_add_up(self):
        """The owner may have started its work at any of them."""
        found = reached_by(replace(known(), servers=frozenset({"a:1"})), frozenset({"b:1"}))
        assert (found.servers, found.more_servers) == ({"a:1", "b:1"}, False)

    def test_too_many_are_replaced(self):
        """The record shows that some were dropped."""
        many = frozenset(f"b:{port}" for port in range(100))
        found = reached_by(replace(known(), servers=frozenset({"a:1"})), many)
        assert (found.servers, found.more_servers) == (many, True)
        assert reached_by(found, many).more_servers

    def test_long_ones_are_too_many_sooner(self):
        """Spec.bootstrapServers may have an address of 4,000 characters, and be edited."""
        found = known()
        for port in range(10, 60):
            found = reached_by(found, frozenset({f"{'b' * 4000}:{port}"}))
            assert sum(map(len, found.servers)) <= 16 * 1024
        assert found.servers
        assert found.more_servers


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
