"""Where the answers of brokers about their log dirs are looked through: an answer names every replica of a broker."""

import threading

import pytest
from tests.fakes.stopped_clock import StoppedClock
from tests.unit.reconcile.log_dir_runs import A, jbod

from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reconcile.observe import log_dir_reader
from kafka_rebalance.reconcile.observe.log_dir_reader import LogDirReader

KEY = (TopicPartition("t", 0), BrokerId(1))


@pytest.mark.parametrize(("many", "in_a_thread"), [(6, True), (1000, False)])
async def test_long_answers_are_looked_through_in_a_thread(monkeypatch, many, in_a_thread):
    """A server may claim a million replicas, even if only one of them moves."""
    threads, reading_of = [], log_dir_reader.reading_of

    def found(*arguments):
        threads.append(threading.current_thread())
        return reading_of(*arguments)

    monkeypatch.setattr(log_dir_reader, "reading_of", found)
    monkeypatch.setattr(log_dir_reader, "_MANY", many, raising=False)
    seen = await LogDirReader(jbod(), StoppedClock()).read({KEY})
    assert seen.places[KEY].at == A
    assert [thread is not threading.main_thread() for thread in threads] == [in_a_thread]
