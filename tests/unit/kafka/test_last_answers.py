"""Which answer the next one shares with."""

from kafka_rebalance.kafka.last_answers import LastAnswers
from kafka_rebalance.kafka.ports import Answers


def test_the_newest_that_is_kept():
    """A plan makes a reading of its own, and forgets it."""
    last, first = LastAnswers(), Answers()
    assert last.newest == {}
    last.note(first)
    of_plan = Answers()
    last.note(of_plan)
    assert last.newest is of_plan
    del of_plan
    assert last.newest is first
    second = Answers()
    last.note(second)
    del first
    assert last.newest is second
    del second
    assert last.newest == {}
