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
from kafka_rebalance.report.report_contents import Fact, Report
from kafka_rebalance.report.resource_contents import PlanContents, contents_of, report_of

MOST_PARTITIONS = 20_000
"""For a larger plan, the report shows only the status."""
_MOST_PLANS = 4
"""The number of plans that are kept."""


class ResourceReports:
    """``namespaces``: the watched ones; empty: all. ``now``: the wall time."""

    def __init__(self, kube: KubeObjects, namespaces: Sequence[str], now: Callable[[], datetime]) -> None:
        self._kube = kube
        self._namespaces = namespaces
        self._now = now
        self._plans = PlanStore(kube)
        self._contents: OrderedDict[tuple[str, str], PlanContents] = OrderedDict()

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
        report = report_of(rebalance, await self._contents_of(rebalance), self._now())
        return replace(report, facts=[*report.facts, *_left_out(rebalance)])

    async def _contents_of(self, rebalance: KafkaRebalance) -> PlanContents | None:
        shown = rebalance.status.plan
        if shown is None or _left_out(rebalance):
            return None
        key = rebalance.metadata.uid, shown.hash
        found = self._contents.pop(key, None)
        if found is None:
            stored = await self._plans.load(*key)
            if stored is None:
                return None
            found = await asyncio.to_thread(contents_of, stored.plan)
        self._contents[key] = found
        if len(self._contents) > _MOST_PLANS:
            self._contents.popitem(last=False)
        return found


def _left_out(rebalance: KafkaRebalance) -> list[Fact]:
    """Says that the plan has too many partitions for this page, and how to see them."""
    metadata, shown = rebalance.metadata, rebalance.status.plan
    if shown is None or shown.partitions <= MOST_PARTITIONS:
        return []
    command = f"kafka-rebalance report {metadata.name} -n {metadata.namespace} -o report.html"
    return [Fact(f"Brokers and partitions of plans above {MOST_PARTITIONS:,} partitions", command, code=True)]
