"""Long lists are split in a thread, because that takes seconds for a thousand of them."""

import threading

import pytest

from kafka_rebalance.execution.reassignment_throttle import LIST_NAMES
from kafka_rebalance.kafka.ports import Answers, ConfigSource, ConfigValue
from kafka_rebalance.reconcile.throttle import list_readings
from kafka_rebalance.reconcile.throttle.list_readings import ListReadings


class NoLog:
    def note(self, *_):
        pass

    def solved(self, *_):
        pass


class Lists:
    def __init__(self, value):
        self._value = value

    async def topic_configs(self, topics, names):
        configs = {name: ConfigValue(self._value, ConfigSource.DYNAMIC_TOPIC) for name in names}
        return Answers(dict.fromkeys(topics, configs))


@pytest.mark.parametrize(("entries", "apart"), [(3, False), (5_000, True)])
async def test_long_lists_of_few_topics(monkeypatch, entries, apart):
    """A server may show lists that are full of the entries of others."""
    threads, split = [], list_readings._readings_of

    def noted(*arguments):
        threads.append(threading.current_thread())
        return split(*arguments)

    monkeypatch.setattr(list_readings, "_readings_of", noted)
    value = ",".join(f"{number}:1" for number in range(entries))
    readings = ListReadings(Lists(value), NoLog(), lambda: 0.0)
    await readings.read(["t"])
    assert len(readings.entries_of("t", LIST_NAMES[0])) == entries
    assert [thread is not threading.main_thread() for thread in threads] == [apart]
