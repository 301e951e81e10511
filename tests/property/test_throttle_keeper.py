"""Whatever claims come and go, and however often the operator is killed, every config ends as it was before."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_rebalance.execution.throttle import FOLLOWER_LIST, FOLLOWER_RATE, LEADER_LIST, LEADER_RATE, Claim, Rates
from kafka_rebalance.kafka.ports import ConfigOp, ConfigSource, ConfigValue
from kafka_rebalance.reconcile.throttling import ThrottleKeeper

BROKERS = (1, 2)
TOPICS = ("t", "u")
ENTRIES = ("0:1", "0:2", "1:1", "1:2")
NAMES = {**dict.fromkeys(TOPICS, (LEADER_LIST, FOLLOWER_LIST)), **dict.fromkeys(BROKERS, (LEADER_RATE, FOLLOWER_RATE))}


class Records:
    """The ledger's store: it outlives the operator."""

    def __init__(self):
        self.kept = None

    async def load(self, _cluster_id):
        return self.kept

    async def save(self, _cluster_id, ledger):
        self.kept = ledger

    async def delete(self, _cluster_id):
        self.kept = None


class Killed(Exception):
    """The process is gone between two calls."""


class Configs:
    """Dynamic configs of topics and brokers, as recorded from brokers: subtracting the last entry leaves ''."""

    def __init__(self, before):
        self.values = dict(before)
        self.calls_left = None

    def _count(self):
        if self.calls_left is not None:
            if self.calls_left == 0:
                raise Killed
            self.calls_left -= 1

    def _read(self, key, own, unset):
        return ConfigValue(self.values[key], own) if key in self.values else ConfigValue(unset, ConfigSource.DEFAULT)

    async def topic_configs(self, topics, names):
        self._count()
        return {t: {n: self._read((t, n), ConfigSource.DYNAMIC_TOPIC, "") for n in names} for t in topics}

    async def broker_configs(self, brokers, names):
        self._count()
        return {b: {n: self._read((b, n), ConfigSource.DYNAMIC_BROKER, None) for n in names} for b in brokers}

    async def alter_topic_configs(self, changes):
        return self._apply(changes)

    async def alter_broker_configs(self, changes):
        return self._apply(changes)

    def _apply(self, changes):
        self._count()
        for where, operations in changes.items():
            for change in operations:
                key = (where, change.name)
                now = [item for item in self.values.get(key, "").split(",") if item]
                mine = change.value.split(",")
                if change.op is ConfigOp.DELETE:
                    self.values.pop(key, None)
                elif change.op is ConfigOp.SET:
                    self.values[key] = change.value
                elif change.op is ConfigOp.APPEND:
                    self.values[key] = ",".join([*now, *(item for item in mine if item not in now)])
                else:
                    self.values[key] = ",".join(item for item in now if item not in mine)
        return dict.fromkeys(changes)


ENTRY_SETS = st.frozensets(st.sampled_from(ENTRIES), max_size=3)
SIDES = st.dictionaries(st.sampled_from(TOPICS), ENTRY_SETS)
RATES = st.one_of(st.none(), st.integers(1, 100))
CLAIMS = st.dictionaries(
    st.sampled_from(("a", "b")),
    st.builds(Claim, st.builds(Rates, RATES, RATES), st.frozensets(st.sampled_from(BROKERS)), SIDES, SIDES),
)
TICKS = st.lists(st.tuples(CLAIMS, st.one_of(st.none(), st.integers(0, 6))), max_size=8)
BEFORE = st.fixed_dictionaries(
    {},
    optional={
        **{(t, n): st.sampled_from(("7:7", "0:1,7:7", "")) for t in TOPICS for n in NAMES[t]},
        **{(b, n): st.sampled_from(("5", "1000")) for b in BROKERS for n in NAMES[b]},
    },
)


async def carry_out(before, ticks):
    kafka, records = Configs(before), Records()
    keeper = ThrottleKeeper("cluster", kafka, records)
    for claims, calls_left in ticks:
        kafka.calls_left = calls_left
        try:
            await keeper.load()
            await keeper.extend(claims, BROKERS)
            await keeper.shrink(claims, BROKERS)
        except Killed:
            keeper = ThrottleKeeper("cluster", kafka, records)
    kafka.calls_left = None
    await keeper.load()
    for _ in range(3):
        await keeper.shrink({}, BROKERS)
    return kafka, keeper, records


class TestThrottleKeeper:
    @settings(max_examples=300, deadline=None)
    @given(BEFORE, TICKS)
    def test_everything_ends_as_it_was(self, before, ticks):
        """Exact restore by source, also after a kill between any two calls to Kafka."""
        kafka, keeper, records = asyncio.run(carry_out(before, ticks))
        assert kafka.values == before
        assert keeper.settled
        assert records.kept is None

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.frozensets(st.sampled_from(("0:1", "1:1"))), max_size=6))
    def test_entries_that_come_again_go_again(self, wanted):
        """A copy that is cancelled and submitted anew leaves no entry behind."""
        claims = [{"a": Claim(Rates(None, 5), frozenset({1}), {}, {"t": items})} for items in wanted]
        kafka, keeper, _ = asyncio.run(carry_out({}, [(claim, None) for claim in claims]))
        assert kafka.values == {}
        assert keeper.settled

    @settings(max_examples=100, deadline=None)
    @given(BEFORE, CLAIMS)
    def test_what_is_claimed_is_in_place(self, before, claims):
        """Each claimed replica is listed, and each claimed broker has a rate, before anything may be submitted."""
        kafka = Configs(before)
        keeper = ThrottleKeeper("cluster", kafka, Records())

        async def extend():
            await keeper.load()
            return await keeper.extend(claims, BROKERS)

        covered = asyncio.run(extend())
        for claim in claims.values():
            sides = ((claim.rates.leader, LEADER_LIST, claim.leader_entries),)
            sides += ((claim.rates.follower, FOLLOWER_LIST, claim.follower_entries),)
            for rate, name, by_topic in sides:
                for topic, items in by_topic.items() if rate else ():
                    assert items <= set(kafka.values.get((topic, name), "").split(",")) or not items
                    assert topic in covered or not items
            for broker in claim.brokers:
                assert claim.rates.leader is None or (broker, LEADER_RATE) in kafka.values
                assert claim.rates.follower is None or (broker, FOLLOWER_RATE) in kafka.values
