"""Engines keep what the servers of inline connections answer: 1 MiB takes about 6 MiB of the operator's memory."""

import pytest

from kafka_rebalance.kafka.isolated.frames import LONGEST_ANSWER
from kafka_rebalance.kafka.isolated.kept_answers import NAMESPACE_BYTES, TOGETHER_BYTES, KeptAnswers, TooMuchKept

MIB = 2**20
PARTITIONS = "describe_partitions"


def read_all(clients, count):
    for client in clients:
        read(client, count)


def read(client, count, method=PARTITIONS):
    """An answer arrives in pieces."""
    for part in (count // 2, count):
        client.reading(method, part)
    client.has_read(method, count)


@pytest.fixture
def kept():
    return KeptAnswers()


def test_one_client_may_have_the_longest_answer(kept):
    """And 50,000 partitions with their sizes."""
    read(kept.of_client("a"), LONGEST_ANSWER)
    other = kept.of_client("b")
    read(other, 12 * MIB)
    read(other, 6 * MIB, "log_dirs")


def test_the_clients_of_a_namespace_share_a_limit(kept):
    clients = [kept.of_client("a") for _ in range(30)]
    with pytest.raises(TooMuchKept, match="at most 24 MiB of the answers to the inline connections of this namespace"):
        read_all(clients, MIB)
    assert sum(client.count for client in clients) <= NAMESPACE_BYTES + MIB
    read(kept.of_client("b"), MIB)


def test_all_namespaces_share_a_limit(kept):
    clients = [kept.of_client(f"n{number}") for number in range(5)]
    with pytest.raises(TooMuchKept, match="at most 48 MiB of the answers to all inline connections together"):
        read_all(clients, TOGETHER_BYTES // 4)


def test_answers_that_have_only_begun_count(kept):
    """Many may arrive at the same time."""
    kept.of_client("a").reading(PARTITIONS, 20 * MIB)
    with pytest.raises(TooMuchKept):
        kept.of_client("a").reading(PARTITIONS, 5 * MIB)


def test_a_refused_answer_does_not(kept):
    """Its process ends. The other clients of the namespace go on."""
    one, other = kept.of_client("a"), kept.of_client("a")
    read(one, 20 * MIB)
    with pytest.raises(TooMuchKept):
        other.reading(PARTITIONS, 5 * MIB)
    other.ended()
    read(one, 21 * MIB)


def test_the_longest_answer_of_a_method_counts(kept):
    """Later ones may be about a few topics, or replace it."""
    client = kept.of_client("a")
    for count in (10, 1, 10):
        read(client, count * MIB)
    assert client.count == 10 * MIB


def test_short_answers_are_never_refused(kept):
    """A connection that may keep nothing more still finds out which cluster it leads to."""
    read(kept.of_client("a"), 24 * MIB)
    read(kept.of_client("a"), 64 * 1024, "describe_cluster")


def test_a_closed_client_makes_room(kept):
    client = kept.of_client("a")
    read(client, 20 * MIB)
    client.close()
    read(kept.of_client("a"), 20 * MIB)
