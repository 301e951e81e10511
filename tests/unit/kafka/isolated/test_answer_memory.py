"""What counts of an answer for the limit of kept answers is a part of the memory that it takes."""

import gc
import tracemalloc

import pytest

from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.list_budget import StoredList
from kafka_rebalance.kafka.isolated.answer_memory import MEMORY_FACTOR
from kafka_rebalance.kafka.isolated.frames import Kind
from kafka_rebalance.kafka.isolated.reply_format import ReadAnswer, written
from kafka_rebalance.kafka.ports import Answers, ConfigSource, ConfigValue, Reassignment
from kafka_rebalance.model.topology import PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason

TPS = [TopicPartition("t", number) for number in range(500)]
LARGE_IDS = tuple(range(300, 400))
WITHIN = 1.25
"""Of the estimate: what small answers take besides."""


def partitions(replicas, isr):
    return Answers({tp: PartitionState(tp, "", replicas, frozenset(isr), 1) for tp in TPS})


ANSWERS = {
    "many in sync": ("describe_partitions", partitions((1,), range(77))),
    "many large ids in sync": ("describe_partitions", partitions((1,), range(300, 377))),
    "five in sync": ("describe_partitions", partitions((1, 2, 3, 4, 5), range(1, 6))),
    "many replicas": ("describe_partitions", partitions(LARGE_IDS, [300])),
    "long reassignments": ("list_reassignments", {tp: Reassignment(LARGE_IDS, LARGE_IDS, LARGE_IDS) for tp in TPS}),
    "errors": (
        "describe_partitions",
        Answers({}, {f"t{number}": Transient(Reason.INTERNAL_ERROR, "x") for number in range(500)}),
    ),
}


def memory_and_weight(method, answer):
    pieces = list(written(method, answer))
    gc.collect()
    tracemalloc.start()
    try:
        reading = ReadAnswer(method)
        for kind, content in pieces:
            if kind == Kind.ROWS:
                reading.add_rows(content)
            elif kind == Kind.ERRORS:
                reading.add_errors(content)
        (_, last), weight = pieces[-1], reading.weight
        found = reading.ended(last)
        del reading
        gc.collect()
        return tracemalloc.get_traced_memory()[0], weight, found
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ANSWERS)
def test_of_values_with_short_texts(kind):
    """The text of 77 brokers in sync has a twentieth of the memory of their set."""
    memory, weight, _ = memory_and_weight(*ANSWERS[kind])
    assert memory <= WITHIN * MEMORY_FACTOR * weight


def test_of_lists_of_throttled_replicas():
    """The operator makes sets of their entries, each of which takes 150 bytes."""
    value = ",".join(f"{number}:{broker}" for number in range(100) for broker in range(10, 60))
    lists = {f"t{number}": {"list": ConfigValue(value, ConfigSource.DYNAMIC_TOPIC)} for number in range(20)}
    _, weight, found = memory_and_weight("topic_configs", Answers(lists))
    tracemalloc.start()
    try:
        stored = [StoredList.of(configs["list"].value) for configs in found.values()]
        memory = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(stored) == 20
    assert memory <= WITHIN * MEMORY_FACTOR * weight


def test_of_usual_partitions_is_their_text():
    """Large honest clusters are not refused earlier than by the length of their answers."""
    tps = [TopicPartition("a-topic-with-a-usual-name", number) for number in range(500)]
    brokers = (301, 302, 303)
    usual = {tp: PartitionState(tp, 22 * "A", brokers, frozenset(brokers), 301) for tp in tps}
    pieces = list(written("describe_partitions", Answers(usual)))
    reading = ReadAnswer("describe_partitions")
    for _, content in pieces[:-1]:
        reading.add_rows(content)
    assert reading.weight == reading.count
