"""One cluster's throttle keeper over many rounds, with configs in memory: shared by its tests."""

import asyncio

from tests.fakes.configs_in_memory import Configs, Records

from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST, LEADER_LIST, Claim, Mode, Rates
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.throttle.throttle_keeper import ThrottleKeeper

ONE, TWO = BrokerId(1), BrokerId(2)
ALIVE = (ONE, TWO)
LATE_TICKS = 20
"""A write that has not arrived after this many ticks never arrives."""


def sides(leaders, followers=()):
    """The entries of one topic."""
    lists = {LEADER_LIST: frozenset(leaders), FOLLOWER_LIST: frozenset(followers)}
    return {"t": {name: items for name, items in lists.items() if items}}


def claim(leader=50, follower=40, asked=True):
    return {"a": Claim(Rates(leader, follower), frozenset(ALIVE), sides({"0:1"}, {"0:2"}), asked=asked)}


class Cluster:
    """Kafka, the stored ledger, and successive keeper processes; a tick takes two seconds."""

    def __init__(self, before=None, files=None):
        self.kafka = Configs(before, files)
        self.records = Records()
        self.now = 0.0
        self.restart()

    def restart(self):
        self.keeper = ThrottleKeeper("cluster", self.kafka, self.records, lambda: self.now)

    def tick(self, claims, *, mode=Mode.ADDITIVE, elsewhere=None):
        async def once():
            await self.keeper.load()
            uncovered = await self.keeper.apply_claims(claims, ALIVE, mode, (), elsewhere)
            await self.keeper.restore_finished(ALIVE, elsewhere)
            return uncovered

        self.now += 2
        return asyncio.run(once())

    def ticks(self, claims, count=4, **more):
        for _ in range(count):
            uncovered = self.tick(claims, **more)
        return uncovered
