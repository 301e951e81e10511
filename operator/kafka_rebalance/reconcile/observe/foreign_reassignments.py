"""Reassignments started by other tools, or by resources not seen yet. Only reads."""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import islice

from kafka_rebalance.execution.reassignment_throttle import LIST_NAMES
from kafka_rebalance.kafka.ports import KafkaReader, Reassignment
from kafka_rebalance.model.topology import PartitionState, Replicas, TopicPartition
from kafka_rebalance.reconcile.observe.observer import Listed
from kafka_rebalance.units import few

log = logging.getLogger(__name__)

ASK_AGAIN_SECONDS = 60.0
"""Between two attempts to read the configs of a topic without the right to it."""
_MANY = 500
_LIST_SECONDS = 5.0
"""While rebalances move that many partitions, and nothing limits others, these are listed every few seconds at most."""
_NAMED = 3


class ForeignReassignments:
    """``foreign`` are the copies that the cluster's throttle applies to, as of the last look."""

    def __init__(self, admin: KafkaReader, monotonic: Callable[[], float]) -> None:
        self._admin = admin
        self._monotonic = monotonic
        self._listed: Mapping[TopicPartition, Reassignment] = {}
        self.foreign: Mapping[TopicPartition, PartitionState] = {}
        self._listed_at = float("-inf")
        self._readable: set[str] = set()
        self._asked_at: dict[str, float] = {}
        """When we last tried the topics that we may not read."""
        self._undescribed: set[str] = set()
        """Topics in flight that the last look could not describe."""

    def forget(self) -> None:
        """Nothing is reassigned by others, or no resource limits it."""
        self._listed, self.foreign, self._asked_at, self._undescribed = {}, {}, {}, set()

    async def look(self, spoken_for: Collection[TopicPartition], last: Listed | None = None, *, limited: bool) -> None:
        """List reassignments except ``spoken_for``, those of rebalances; if ``limited``, read the partitions too.

        ``last``: the listing by which ``spoken_for`` was found, if there is one. It is used where listings may be some
        seconds old. One that is in flight and not described is as last read: an answer without it is no proof that it
        ended.
        """
        now, every = self._monotonic(), self._listed
        often = limited or len(spoken_for) < _MANY
        if not often and last is not None:
            every, self._listed_at = last, now
        elif often or now - self._listed_at >= _LIST_SECONDS:
            every, self._listed_at = await self._admin.list_reassignments(), now
        listed = {tp: row for tp, row in every.items() if tp not in spoken_for}
        if not listed or not limited:
            self.forget()
            self._listed = listed
            return
        topics = await self._those_readable({tp.topic for tp in listed})
        described = await self._admin.describe_partitions(topics) if topics else {}
        states = {
            tp: described[tp] if tp in described else _moved_on(self.foreign[tp], row)
            for tp, row in listed.items()
            if tp in described or tp in self.foreign
        }
        self._undescribed = {tp.topic for tp in listed.keys() - described.keys()} & topics
        self._listed, self.foreign = listed, {tp: state for tp, state in states.items() if state.adding}

    @property
    def unaccounted(self) -> dict[TopicPartition, Replicas]:
        """Partitions in flight that no claim names, with their replicas; a resource not seen yet may claim them."""
        return {tp: row.replicas for tp, row in self._listed.items() if tp not in self.foreign}

    @property
    def unreadable(self) -> str:
        """Topics of others' reassignments that we may not read, or could not just now; empty: none."""
        if self._asked_at:
            return f"not allowed to describe the configs of topic {few(sorted(self._asked_at))}, which others reassign"
        if self._undescribed:
            named = few(sorted(self._undescribed))
            return (
                f"no broker described topic {named}, which others reassign: its throttle stays as it is; if this "
                "lasts, allow Describe on the topic"
            )
        return ""

    async def _those_readable(self, topics: set[str]) -> set[str]:
        """The topics whose configs we may read."""
        now = self._monotonic()
        new = {t for t in topics - self._readable if now - self._asked_at.get(t, float("-inf")) >= ASK_AGAIN_SECONDS}
        errors = (await self._admin.topic_configs(new, LIST_NAMES)).errors if new else {}
        for error in islice(errors.values(), _NAMED):
            log.info("%s", error.message)
        if len(errors) > _NAMED:
            log.info("%d more topics that others reassign cannot be read", len(errors) - _NAMED)
        self._asked_at |= dict.fromkeys(errors, now)
        self._readable = (self._readable | (new - errors.keys())) & topics
        self._asked_at = {topic: at for topic, at in self._asked_at.items() if topic in topics - self._readable}
        return set(self._readable)


def _moved_on(state: PartitionState, row: Reassignment) -> PartitionState:
    return replace(state, replicas=row.replicas, adding=row.adding, removing=row.removing)
