"""What an operator leaves behind when it is uninstalled: runs in progress, finalizers on resources, records.

A deleted object waits for every finalizer on it. Only the operator removes ours, so before the operator is uninstalled
it is removed from all objects, while no operator runs that would add it again.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.v1alpha1 import (
    FINALIZER,
    LET_GO_ANNOTATION,
    MOST_FINALIZERS,
    REASSIGNMENT_THROTTLES,
    REBALANCES,
    ObjectMeta,
    lenient_conditions,
    parse_metadata,
    whole_finalizers,
)
from kafka_rebalance.errors import Permanent
from kafka_rebalance.execution.ledger import Ledger
from kafka_rebalance.execution.ledger_json import ledger_from_json
from kafka_rebalance.kube.api_errors import Conflict, Forbidden, NotFound
from kafka_rebalance.kube.blobs import KIND_LABEL
from kafka_rebalance.kube.client import COMPONENT
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.kube.objects import Json, KubeObjects
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.run import Run
from kafka_rebalance.reasons import Reason

_PLURALS = (REBALANCES, REASSIGNMENT_THROTTLES)
_ATTEMPTS = 5
_LOOK_SECONDS = 1
_NAMED = 5
"""How many brokers or topics a message names."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One of ours, as it was listed. ``state`` is Ready's reason."""

    plural: str
    metadata: ObjectMeta
    state: str = ""

    @property
    def held(self) -> bool:
        """Whether our finalizer is on it."""
        return FINALIZER in self.metadata.finalizers

    def __str__(self) -> str:
        """For people."""
        kind = "KafkaRebalance" if self.plural == REBALANCES else "KafkaReassignmentThrottle"
        return f"{kind} {self.metadata.namespace}/{self.metadata.name}"


@dataclass(frozen=True, slots=True)
class Remains:
    """Everything that there is of an operator. ``ledgers``: by cluster id, None for one that cannot be read."""

    resources: tuple[Resource, ...] = ()
    runs: tuple[Run, ...] = ()
    ledgers: Mapping[str, Ledger | None] = field(default_factory=dict)

    @property
    def held(self) -> tuple[Resource, ...]:
        """The resources that cannot be deleted without an operator."""
        return tuple(resource for resource in self.resources if resource.held)

    @property
    def deleting(self) -> tuple[Resource, ...]:
        """The resources that are being deleted."""
        return tuple(resource for resource in self.held if resource.metadata.deleting)

    @property
    def under_way(self) -> tuple[str, ...]:
        """What the operator would still finish, a sentence each. Empty: it may be uninstalled."""
        by_uid = {resource.metadata.uid: resource for resource in self.resources}
        # An open run whose resource is gone is an orphan: no operator continues it.
        running = {run.uid: run for run in self.runs if run.open and run.uid in by_uid}
        sentences = [
            *(f"{by_uid[uid]} is running ({by_uid[uid].state})" for uid in running if by_uid[uid] not in self.deleting),
            *(f"{resource} is being deleted ({resource.state})" for resource in self.deleting),
        ]
        busy = {run.cluster_id for run in running.values()}
        sentences += [
            _unsettled(cluster, ledger) for cluster, ledger in sorted(self.ledgers.items()) if cluster not in busy
        ]
        return tuple(filter(None, sentences))


class Retirement:
    """Finds what is left, and removes it. ``namespaces``: those that the operator watches, none for all."""

    def __init__(self, kube: KubeObjects, namespaces: Sequence[str]) -> None:
        self._kube = kube
        self._namespaces = namespaces

    async def look(self) -> Remains:
        """Everything as it is now. Permanent("NamespaceForbidden") for a namespace that may not be looked into."""
        resources = [
            Resource(plural, parse_metadata(body), _state(body))
            for plural in _PLURALS
            for namespace in self._namespaces or (None,)
            for body in await self._listed(plural, namespace)
        ]
        runs = await RunStore(self._kube).list_all()
        ledgers = await LedgerStore(self._kube).load_all()
        return Remains(tuple(resources), tuple(runs), {cluster: _ledger(data) for cluster, data in ledgers.items()})

    async def order_let_go(self, resources: Sequence[Resource], seconds: int) -> None:
        """Order the operator to remove its finalizers from these resources within ``seconds``, without a rollback."""
        for resource in resources:
            metadata = resource.metadata
            order = {LET_GO_ANNOTATION: "true"}
            await self._kube.annotate(resource.plural, metadata.namespace, metadata.name, metadata.uid, order)
        for _ in range(seconds if resources else 0):
            if not (await self.look()).deleting:
                return
            await asyncio.sleep(_LOOK_SECONDS)

    async def let_go(self, resources: Iterable[Resource]) -> None:
        """Take our finalizer away from these; those of others stay."""
        for resource in resources:
            where = (resource.plural, resource.metadata.namespace, resource.metadata.name)
            metadata, there = resource.metadata, resource.metadata.finalizers
            known = len(there) < MOST_FINALIZERS
            for attempt in range(1, _ATTEMPTS + 1):
                if FINALIZER not in there:
                    break
                left = [name for name in there if name != FINALIZER]
                try:
                    if known:
                        await self._kube.patch_finalizers(*where, left, metadata.resource_version)
                        break
                except Conflict:
                    if attempt == _ATTEMPTS:
                        raise
                body, known = await self._kube.get(*where), True
                if body is None:
                    break
                metadata, there = parse_metadata(body), whole_finalizers(body)

    async def forget(self) -> int:
        """Delete all records; how many ConfigMaps they were."""
        forgotten = 0
        for found in await self._kube.list_config_map_metadata({"app.kubernetes.io/managed-by": COMPONENT}):
            if KIND_LABEL in found["labels"]:
                forgotten += await self._kube.delete_config_map(found["name"])
        return forgotten

    async def _listed(self, plural: str, namespace: str | None) -> list[Json]:
        try:
            return await self._kube.list_resources(plural, namespace)
        except NotFound:
            return []  # the CRD is gone, and everything of its kind with it
        except Forbidden as error:
            where = f"namespace {namespace}" if namespace else "all namespaces"
            raise Permanent(
                Reason.NAMESPACE_FORBIDDEN,
                f"{plural} of {where} may not be listed, so what is held there is not known (a namespace that was "
                f"deleted, or a role that is missing?): {error.message}",
            ) from error


def _state(body: Json) -> str:
    ready = find_condition(lenient_conditions(body.get("status")), ConditionType.READY)
    return ready.reason if ready is not None else "no state yet"


def _ledger(data: dict[str, Any] | None) -> Ledger | None:
    try:
        return None if data is None else ledger_from_json(data)
    except (KeyError, TypeError, ValueError):
        return None


def _unsettled(cluster: str, ledger: Ledger | None) -> str:
    """What of ours is still in the configs of a cluster; empty: nothing."""
    if ledger is None:
        return f"cluster {cluster}: its throttle ledger cannot be read, so what is to be restored is not known"
    if ledger.empty:
        return ""
    brokers = [f"broker {broker}" for broker in sorted(ledger.brokers.keys() | ledger.cordons)]
    topics = [f"topic {topic}" for topic in sorted({*ledger.topics, *ledger.entries})]
    named = [*brokers[:_NAMED], *topics[:_NAMED]]
    more = len(brokers) + len(topics) - len(named)
    rest = f" and {more} more" if more else ""
    what = "throttles of ours" if ledger.brokers or topics else "cordons of ours"
    return f"cluster {cluster}: {what} are set, or not known to be restored, on {', '.join(named)}{rest}"
