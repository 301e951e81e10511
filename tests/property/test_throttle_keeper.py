"""Every config is restored at the end, for any claims and any number of kills of the operator."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.configs_in_memory import Configs, Killed, Records

from kafka_rebalance.execution.ledger_json import ledger_from_json
from kafka_rebalance.execution.rate_state import LATE_SECONDS
from kafka_rebalance.execution.reassignment_throttle import (
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    REPLICATION_RATES,
    Claim,
    Rates,
)
from kafka_rebalance.reconcile.throttle.throttle_keeper import ThrottleKeeper

BROKERS = (1, 2)
TOPICS = ("t", "u")
ENTRIES = ("0:1", "0:2", "1:1", "1:2")
NAMES = {**dict.fromkeys(TOPICS, (LEADER_LIST, FOLLOWER_LIST)), **dict.fromkeys(BROKERS, (LEADER_RATE, FOLLOWER_RATE))}


ENTRY_SETS = st.frozensets(st.sampled_from(ENTRIES), max_size=3)
LISTED = st.dictionaries(
    st.sampled_from(TOPICS), st.dictionaries(st.sampled_from((LEADER_LIST, FOLLOWER_LIST)), ENTRY_SETS)
)
RATES = st.one_of(st.none(), st.integers(1, 100))
CLAIMS = st.dictionaries(
    st.sampled_from(("a", "b")),
    st.builds(Claim, st.builds(Rates, RATES, RATES), st.frozensets(st.sampled_from(BROKERS)), LISTED),
)
TICKS = st.lists(st.tuples(CLAIMS, st.one_of(st.none(), st.integers(0, 6))), max_size=8)
BEFORE = st.fixed_dictionaries(
    {},
    optional={
        **{(t, n): st.sampled_from(("7:7", "0:1,7:7", "")) for t in TOPICS for n in NAMES[t]},
        **{(b, n): st.sampled_from(("5", "1000")) for b in BROKERS for n in NAMES[b]},
    },
)


class Process:
    """Successive operators on the same configs and ledger; a tick takes two seconds."""

    def __init__(self, before):
        self.kafka, self.records, self.now = Configs(before), Records(), 0.0
        self.restart()

    def restart(self):
        self.keeper = ThrottleKeeper("cluster", self.kafka, self.records, lambda: self.now)

    async def tick(self, claims, calls_left=None):
        self.now += 2
        self.kafka.calls_left = calls_left
        uncovered = frozenset()
        try:
            await self.keeper.load()
            uncovered = await self.keeper.apply_claims(claims, BROKERS)
            await self.keeper.restore_finished(BROKERS)
        except Killed:
            self.restart()
        self.kafka.calls_left = None
        return uncovered

    async def carry_out(self, ticks):
        for claims, calls_left in ticks:
            await self.tick(claims, calls_left)
        await self.end()

    async def end(self):
        """Nothing is claimed any more. After a kill, entries stay in the ledger while an append may be late."""
        for _ in range(4):
            await self.tick({})
        self.now += LATE_SECONDS
        for _ in range(2):
            await self.tick({})


class TestThrottleKeeper:
    @given(BEFORE, TICKS)
    def test_everything_ends_as_it_was(self, before, ticks):
        """Exact restore by source, even after a kill between any two calls to Kafka."""
        process = Process(before)
        asyncio.run(process.carry_out(ticks))
        assert process.kafka.values == before
        assert process.keeper.ledger_empty
        assert process.records.kept is None or ledger_from_json(process.records.kept).empty

    @given(st.lists(st.frozensets(st.sampled_from(("0:1", "1:1"))), max_size=6))
    def test_entries_that_come_again_go_again(self, wanted):
        """A copy that is cancelled and submitted again leaves no entry behind."""
        claims = [{"a": Claim(Rates(None, 5), frozenset({1}), {"t": {FOLLOWER_LIST: items}})} for items in wanted]
        process = Process({})
        asyncio.run(process.carry_out([(claim, None) for claim in claims]))
        assert process.kafka.values == {}
        assert process.keeper.ledger_empty

    @given(BEFORE, CLAIMS)
    def test_what_may_be_submitted_is_in_place(self, before, claims):
        """Each replica not reported as uncovered is listed, and its broker's rate is not above the requested one."""
        process = Process(before)
        uncovered = asyncio.run(process.tick(claims))
        for claim in claims.values():
            for rate_name, list_name in ((LEADER_RATE, LEADER_LIST), (FOLLOWER_RATE, FOLLOWER_LIST)):
                for topic, entry in ((t, e) for t, lists in claim.entries.items() for e in lists.get(list_name, ())):
                    broker = int(entry.partition(":")[2])
                    rate = claim.rates.by_name().get(rate_name)
                    if rate is None or broker not in claim.brokers or (topic, entry) in uncovered:
                        continue
                    assert entry in process.kafka.values[topic, list_name].split(",")
                    assert int(process.kafka.values[broker, rate_name]) <= rate + int(
                        before.get((broker, rate_name), 0)
                    )

    @given(
        BEFORE,
        TICKS,
        st.lists(
            st.tuples(
                st.integers(0, 7), st.sampled_from(BROKERS), st.sampled_from(REPLICATION_RATES), st.integers(1, 200)
            )
        ),
    )
    def test_what_somebody_sets_meanwhile_is_never_lost(self, before, ticks, hands):
        """At the end a rate has its original value or one that others have set since, never one of ours."""
        process = Process(before)
        theirs = {(broker, name): {before.get((broker, name))} for broker in BROKERS for name in REPLICATION_RATES}

        async def run():
            for number, (claims, calls_left) in enumerate(ticks):
                await process.tick(claims, calls_left)
                for when, broker, name, value in hands:
                    if when == number:
                        process.kafka.values[broker, name] = f"{value}000"  # a value that we never write
                        theirs[broker, name].add(f"{value}000")
            await process.end()

        asyncio.run(run())
        for key, values in theirs.items():
            assert process.kafka.values.get(key) in values
        assert process.keeper.ledger_empty
