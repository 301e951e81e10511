"""The last answers with all topics, as long as somebody keeps them, so that the next one can share what is equal.

An engine keeps one reading while the next one is made. Of 267,000 partitions, a second one would take 60 MB.
"""

import weakref
from collections.abc import Mapping

from kafka_rebalance.kafka.ports import Answers
from kafka_rebalance.model.topology import PartitionState, TopicPartition


class LastAnswers:
    """It keeps no answer alive: a sampler forgets what it has read."""

    def __init__(self) -> None:
        self._answers: list[weakref.ref[Answers[TopicPartition, PartitionState, str]]] = []

    def note(self, answer: Answers[TopicPartition, PartitionState, str]) -> None:
        """This answer has been made."""
        self._answers = [*(kept for kept in self._answers if kept() is not None), weakref.ref(answer)]

    @property
    def newest(self) -> Mapping[TopicPartition, PartitionState]:
        """The newest one that is still kept; empty without one."""
        return next((answer for kept in reversed(self._answers) if (answer := kept()) is not None), {})
