"""A throttle ledger that is not as it was written is refused: nothing is guessed."""

import pytest
from tests.fakes.kube_in_memory import KubeInMemory

from kafka_rebalance.errors import Permanent
from kafka_rebalance.execution.ledger import Ledger
from kafka_rebalance.execution.ledger_json import ledger_to_json
from kafka_rebalance.kube.api_errors import Conflict
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.throttle.ledger_cache import LedgerCache, stored_ledger


@pytest.fixture
async def kube():
    """An API server with the ledger of cluster c."""
    kube = KubeInMemory()
    await LedgerStore(kube).save("c", ledger_to_json(Ledger(cordons=frozenset({BrokerId(4)}))))
    return kube


class TestStored:
    async def test_as_it_was_written(self, kube):
        assert await stored_ledger(LedgerStore(kube), "c") == Ledger(cordons=frozenset({BrokerId(4)}))
        assert await stored_ledger(LedgerStore(kube), "other") is None

    async def test_incomplete(self, kube):
        """The message says what is wrong with the record, and what to do."""
        (record,) = kube.config_maps.values()
        record["binaryData"] = {}
        with pytest.raises(Permanent) as refused:
            await LedgerCache("c", LedgerStore(kube)).load()
        assert refused.value.reason == "ThrottleLedgerDamaged"
        assert "of cluster c cannot be read (ConfigMap " in refused.value.message
        assert "do not have the content that was written); restore it, or delete it after" in refused.value.message


async def test_a_late_write_of_an_earlier_process_is_replaced(kube):
    """It is carried out after the next process has read the ledger, which has nothing new to store."""
    earlier, cache = LedgerCache("c", LedgerStore(kube)), LedgerCache("c", LedgerStore(kube))
    await earlier.load()
    await cache.load()
    await earlier.save(Ledger())
    with pytest.raises(Conflict):
        await cache.save(cache.ledger)
    await cache.save(cache.ledger)
    assert await stored_ledger(LedgerStore(kube), "c") == cache.ledger != Ledger()


def test_a_long_answer_of_a_server_is_cut(kube, caplog):
    cache = LedgerCache("c", LedgerStore(kube))
    cache.note("topic t", "INVALID_CONFIG: " + "x" * 100_000)
    assert len(caplog.messages[0]) == len(cache.trouble) == 500


def test_many_troubles_have_few_lines_in_the_log(kube, caplog):
    """A server may refuse any number of topics in each round. The status has the number of those that are kept."""
    cache = LedgerCache("c", LedgerStore(kube))
    for _ in range(2):
        for number in range(2_000):
            cache.note(f"topic t{number}", "refused")
    assert caplog.messages == [f"topic t{number}: refused" for number in range(100)]
    assert cache.trouble == "topic t1000: refused and 999 more"
    for number in range(1_000, 2_000):
        cache.solved(f"topic t{number}")
    cache.note("topic t0", "refused again")
    assert caplog.messages[100:] == ["topic t0: refused again"]
