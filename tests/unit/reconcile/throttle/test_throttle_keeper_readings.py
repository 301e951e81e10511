"""How often brokers and topics are asked whether their rates and lists are still in place."""

import asyncio
from collections import Counter

import pytest
from tests.fakes.configs_in_memory import Configs, Records
from tests.fakes.throttled_cluster import ALIVE, Cluster, claim, sides

from kafka_rebalance.execution.reassignment_throttle import Claim, Rates
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.throttle.throttle_keeper import ThrottleKeeper


@pytest.mark.parametrize(("brokers", "least", "most"), [(2, 58, 64), (60, 5, 8)])
def test_each_broker_is_read_back_less_often_the_more_there_are(brokers, least, most):
    """Each is asked on its own: two of them each second, sixty every ten seconds, and now and then for originals."""
    kafka, alive, now = Configs(), [BrokerId(b) for b in range(brokers)], [0.0]
    keeper = ThrottleKeeper("c", kafka, Records(), lambda: now[0])
    claims = {"a": Claim(Rates(50, 40), frozenset(alive), sides({"0:1"}))}

    async def minute():
        for second in range(64):
            now[0] = float(second)
            if second == 4:  # the rates are set, and read back once
                kafka.asked.clear()
            await keeper.load()
            await keeper.apply_claims(claims, alive)

    asyncio.run(minute())
    asked = Counter(broker for call in kafka.asked for broker in call)
    assert least <= min(asked.values()) <= max(asked.values()) <= most


def test_the_lists_of_known_and_of_new_topics_are_read_in_one_request(monkeypatch):
    """In each round of a large run, copies of a few more topics begin."""
    cluster, asked = Cluster(), []
    cluster.ticks(claim())
    read = cluster.kafka.topic_configs

    async def counted(topics, names):
        asked.append(list(topics))
        return await read(topics, names)

    monkeypatch.setattr(cluster.kafka, "topic_configs", counted)
    more = {"b": Claim(Rates(50, 40), frozenset(ALIVE), {"u": sides({"0:1"}, {"0:2"})["t"]})}
    assert cluster.tick(claim() | more) == frozenset()
    assert asked == [["t", "u"]]


def test_entries_follow_the_rates_of_their_brokers():
    """They are found again when a side gets a rate, although the entries that are wanted are the same."""
    cluster = Cluster()
    wanted = claim()["a"]
    cluster.ticks({"a": Claim(Rates(), wanted.brokers, wanted.entries)})
    assert cluster.kafka.lists("t") == (None, None)
    cluster.ticks({"a": Claim(Rates(50, 40), wanted.brokers, wanted.entries)})
    assert cluster.kafka.lists("t") == ({"0:1"}, {"0:2"})
