"""The reports of KafkaRebalances, read from the API server, with bounded memory.

The engines are not involved: a standby serves the same reports, and the engines are not slowed down. A plan is read
once, since it never changes.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from kafka_rebalance.api.v1alpha1 import REBALANCES, KafkaRebalance, parse_rebalance
from kafka_rebalance.kube.api_errors import Forbidden, NotFound
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.kube.store import PlanStore
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.report.report_contents import Fact, Report
from kafka_rebalance.report.resource_contents import PlanContents, contents_of, report_of

MOST_PARTITIONS = 20_000
MOST_REPLICAS = 250_000
"""Entries in the lists of the partitions, before and after. For a larger plan, the report shows only the status: it may
have copies between all pairs of brokers, since servers may claim 100 replicas of a partition."""
_MOST_PLANS = 4
"""The number of plans that are kept."""


class ResourceReports:
    """``namespaces``: the watched ones; empty: all. ``now``: the wall time."""

    def __init__(self, kube: KubeObjects, namespaces: Sequence[str], now: Callable[[], datetime]) -> None:
        self._kube = kube
        self._namespaces = namespaces
        self._now = now
        self._plans = PlanStore(kube)
        self._contents: OrderedDict[tuple[str, str], PlanContents | None] = OrderedDict()
        """None: the plan has too many replicas."""

    async def of(self, where: tuple[str, str]) -> Report:
        """``where``: namespace and name. NotFound if the operator watches no such resource."""
        namespace, name = where
        missing = NotFound(f"there is no KafkaRebalance {namespace}/{name} in a namespace that this operator watches")
        if self._namespaces and namespace not in self._namespaces:
            raise missing
        try:
            body = await self._kube.get(REBALANCES, namespace, name)
        except Forbidden as error:
            raise missing from error
        if body is None:
            raise missing
        rebalance = parse_rebalance(body)
        contents, large = None, _has_many_partitions(rebalance)
        if not large and rebalance.status.plan is not None:
            contents, large = await self._contents_of(rebalance.metadata.uid, rebalance.status.plan.hash)
        report = report_of(rebalance, contents, self._now())
        return replace(report, facts=[*report.facts, *(_left_out(rebalance) if large else ())])

    async def _contents_of(self, uid: str, plan_hash: str) -> tuple[PlanContents | None, bool]:
        """What the report shows of the plan, and whether that is nothing because it is too large."""
        key = uid, plan_hash
        if key in self._contents:
            found = self._contents.pop(key)
        else:
            stored = await self._plans.load(*key)
            if stored is None:
                return None, False
            found = await asyncio.to_thread(_contents_unless_large, stored.plan)
        self._contents[key] = found
        if len(self._contents) > _MOST_PLANS:
            self._contents.popitem(last=False)
        return found, found is None


def _contents_unless_large(plan: Plan) -> PlanContents | None:
    if sum(len(p.current) + len(p.target) for p in plan.partitions) > MOST_REPLICAS:
        return None
    return contents_of(plan)


def _has_many_partitions(rebalance: KafkaRebalance) -> bool:
    shown = rebalance.status.plan
    return shown is not None and shown.partitions > MOST_PARTITIONS


def _left_out(rebalance: KafkaRebalance) -> list[Fact]:
    """Says that the plan is too large for this page, and how to see it."""
    metadata = rebalance.metadata
    command = f"kafka-rebalance report {metadata.name} -n {metadata.namespace} -o report.html"
    label = f"Brokers and partitions of plans above {MOST_PARTITIONS:,} partitions or {MOST_REPLICAS:,} replicas"
    return [Fact(label, command, code=True)]
