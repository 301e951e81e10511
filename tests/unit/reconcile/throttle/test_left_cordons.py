"""Which cordons on the ledger are removed from brokers that are back; whole runs are in ``test_engine_cordons``."""

import pytest
from tests.fakes.configs_in_memory import Configs, Records

from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.act.cordoning import CONFIG
from kafka_rebalance.reconcile.throttle.ledger_cache import LedgerCache
from kafka_rebalance.reconcile.throttle.left_cordons import LeftCordons

ONE, TWO = BrokerId(1), BrokerId(2)


class Left:
    """The cordons of two brokers, which are set there and on the ledger."""

    def __init__(self):
        self.kafka, self.cache = Configs({(broker, CONFIG): "*" for broker in (ONE, TWO)}), LedgerCache("c", Records())
        self.cordons = LeftCordons(self.kafka, self.cache, lambda: 0.0)

    async def remove(self, alive, of_runs=(), in_doubt=()):
        await self.cordons.remove(alive, of_runs, in_doubt)

    @property
    def there(self):
        """Where they are set, and where they are on the ledger."""
        return {broker for broker, _ in self.kafka.values}, self.cache.ledger.cordons


@pytest.fixture
async def left():
    left = Left()
    await left.cache.load()
    await left.cordons.take([ONE, TWO])
    return left


async def test_those_of_live_brokers(left):
    await left.remove([TWO])
    assert left.there == ({ONE}, {ONE})


async def test_an_open_run_cares_for_its_own(left):
    """It has cordoned the broker anew. The ledger would remove that cordon when the run has ended."""
    await left.remove([ONE, TWO], of_runs=[ONE])
    assert left.there == ({ONE}, set())


async def test_that_of_a_run_whose_record_is_to_be_read_again(left):
    """The run may have ended. Its cordon stays, here and on the ledger, until it is known whether it has."""
    for of_runs in ([], [ONE]):
        await left.remove([ONE, TWO], of_runs, in_doubt=[ONE])
        assert left.there == ({ONE}, {ONE})
    await left.remove([ONE, TWO])
    assert left.there == (set(), set())
