"""A server that shows other brokers and topics in each round fills neither the memory nor the ledger."""

import asyncio
import json

import pytest
from tests.fakes.configs_in_memory import Configs, Records

from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST, LEADER_LIST, LIST_NAMES, Claim, Rates
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.throttle import ledger_cache, list_readings, slices, topic_lists
from kafka_rebalance.reconcile.throttle.throttle_keeper import ThrottleKeeper

MOST = 20_000
RATES = Rates(50, 40)


class CountedRecords(Records):
    """``saved``: how often the ledger was saved."""

    saved = 0

    async def save(self, cluster_id, ledger):
        self.saved += 1
        await super().save(cluster_id, ledger)


class Cluster:
    """A throttle with a limited ledger; each round may claim other brokers and topics."""

    def __init__(self, most=MOST):
        self.kafka, self.records, self.now = Configs(), CountedRecords(), 0.0
        self.keeper = ThrottleKeeper("c", self.kafka, self.records, lambda: self.now, most)

    def tick(self, brokers=(), topics=()):
        async def once():
            await self.keeper.load()
            await self.keeper.apply_claims(claims, alive)
            await self.keeper.restore_finished(alive)

        alive = [BrokerId(broker) for broker in brokers]
        entries = {topic: {LEADER_LIST: frozenset({"0:1"}), FOLLOWER_LIST: frozenset({"0:2"})} for topic in topics}
        claims = {"a": Claim(RATES, frozenset(alive), entries)} if alive else {}
        self.now += 2
        asyncio.run(once())

    def show_others_in_each_round(self, what, rounds=100):
        for number in range(rounds):
            some = range(10 * number, 10 * number + 10)
            topics = [f"t-{n}" for n in some] if what == "topics" else ()
            self.tick(some if what == "brokers" else [1, 2], topics)
            self.kafka.forbidden |= set(topics)

    @property
    def stored_bytes(self):
        return len(json.dumps(self.records.kept, separators=(",", ":")))


class TestLedger:
    @pytest.mark.parametrize("what", ["brokers", "topics"])
    def test_it_does_not_grow_without_end(self, what):
        """Brokers that are gone, and topics that cannot be read any more, stay in it: they may come back."""
        cluster = Cluster()
        with pytest.raises(Refused) as refused:
            cluster.show_others_in_each_round(what)
        assert refused.value.reason == "InlineConnectionRefused"
        assert "the throttle ledger of Kafka cluster c would have more than" in refused.value.message
        assert 1000 < cluster.stored_bytes <= MOST

    def test_it_can_shrink_at_the_limit(self):
        """Nothing of ours stays in Kafka when the claims end."""
        cluster = Cluster()
        with pytest.raises(Refused):
            cluster.show_others_in_each_round("brokers")
        for _ in range(20):
            cluster.now += 30
            cluster.tick()
        cluster.now += 30
        asyncio.run(self.restored(cluster))
        assert cluster.kafka.values == {}
        assert cluster.keeper.ledger_empty

    def test_one_above_the_limit_shrinks_after_an_update(self):
        """It was written by an earlier version, without the limit."""
        cluster = Cluster(most=None)
        cluster.show_others_in_each_round("brokers", 30)
        assert cluster.stored_bytes > MOST
        cluster.keeper = ThrottleKeeper("c", cluster.kafka, cluster.records, lambda: cluster.now, MOST)
        asyncio.run(self.restored(cluster))
        assert cluster.kafka.values == {}

    @pytest.mark.parametrize("many", [-1, 300])
    def test_a_large_one_is_written_like_a_small_one(self, monkeypatch, many):
        """Off the event loop, as everything that is done for many lists."""
        for module in (ledger_cache, list_readings, slices, topic_lists):
            monkeypatch.setattr(module, "MANY", many)
        cluster = Cluster(most=None)
        cluster.tick([1, 2], ["t"])
        assert cluster.kafka.lists("t") == ({"0:1"}, {"0:2"})
        asyncio.run(self.restored(cluster))
        assert cluster.kafka.values == {}

    async def restored(self, cluster):
        """All brokers of the ledger are back."""
        await cluster.keeper.load()
        for _ in range(40):
            alive = list(cluster.keeper._cache.ledger.brokers)
            await cluster.keeper.apply_claims({}, alive)
            await cluster.keeper.restore_finished(alive)
            cluster.now += 2


class TestSaves:
    def test_lists_that_somebody_deletes_are_recorded_in_one_write(self):
        """A server may show thousands of lists without our entries at once, and the ledger may have 4 MiB."""
        cluster = Cluster(most=None)
        topics = [f"t-{number}" for number in range(20)]
        cluster.kafka.values = {(topic, name): "7:7" for topic in topics for name in LIST_NAMES}
        cluster.tick([1, 2], topics)
        cluster.kafka.values = {key: value for key, value in cluster.kafka.values.items() if key[0] not in topics}
        saved = cluster.records.saved
        cluster.tick([1, 2], topics)
        cluster.tick([1, 2], topics)
        assert cluster.records.saved == saved + 1
        assert cluster.keeper.reverts == 40
        asyncio.run(TestLedger().restored(cluster))
        assert cluster.kafka.values == {}

    def test_rates_that_somebody_changes_too(self):
        """Once the 40 rates, and once what is intended from then on."""
        cluster, brokers = Cluster(most=None), range(1, 21)
        for _ in range(3):
            cluster.tick(brokers)
        cluster.kafka.values = dict.fromkeys(cluster.kafka.values, "7")
        saved = cluster.records.saved
        for _ in range(6):
            cluster.tick(brokers)
        assert cluster.records.saved == saved + 2
        assert set(cluster.keeper._rates.brakes().values()) == {7}
        assert len(cluster.keeper._rates.brakes()) == 40


class TestMemory:
    def test_brokers_that_are_gone_are_forgotten(self):
        """What is kept of each broker, and the pause before it is asked again."""
        cluster = Cluster(most=None)
        for number in range(50):
            some = range(10 * number, 10 * number + 10)
            cluster.kafka.silent = set(some)
            cluster.tick(some)
        rates = cluster.keeper._rates
        kept = (rates._states, rates._originals, rates._backoff._until, rates._backoff._pause)
        assert max(map(len, kept)) <= 30

    def test_troubles_with_topics_are_limited(self, monkeypatch):
        """Each of them is a line in the status until the topic is read again."""
        monkeypatch.setattr(ledger_cache, "_MOST_TROUBLES", 20)
        cluster = Cluster(most=None)
        for number in range(10):
            topics = [f"t-{number}-{n}" for n in range(10)]
            cluster.kafka.forbidden |= set(topics)
            cluster.tick([1, 2], topics)
        assert len(cluster.keeper._cache._troubles) == 20
        assert "t-9-" in " ".join(cluster.keeper._cache._troubles)
