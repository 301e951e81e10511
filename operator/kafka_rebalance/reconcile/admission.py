"""Which resources may use the connection that they name. Reads namespaces and runs, and changes nothing."""

import asyncio
from collections.abc import Mapping

from kafka_rebalance.errors import RebalanceError, Refused
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.permissions import Permissions
from kafka_rebalance.reconcile.connection_book import NamedConnection


class Admission:
    """The check of all resources of a connection, whenever it has been tried."""

    def __init__(self, permissions: Permissions, runs: RunStore) -> None:
        self._permissions = permissions
        self._runs = runs

    async def judge(
        self, connection: NamedConnection, problem: RebalanceError | None
    ) -> dict[str, RebalanceError | None]:
        """By uid, why a resource may not use the connection, or cannot; None: it may.

        The resources are those of when this begins: of others nothing was looked up.
        """
        metadata = [rebalance.desired.metadata for rebalance in connection.rebalances.values()]
        metadata += [throttle.metadata for throttle in connection.throttles.values()]
        elsewhere = await self._begun_elsewhere(connection)
        denied: Mapping[str, RebalanceError | None] = {}
        if connection.inline is None:
            owner, resource, unread = connection.owner, connection.resource, connection.unread is not None
            namespaces = list({about.namespace for about in metadata})
            asked = (self._permissions.denied(owner, resource, one, unread=unread) for one in namespaces)
            denied = dict(zip(namespaces, await asyncio.gather(*asked), strict=True))
        found: dict[str, RebalanceError | None] = {}
        for about in metadata:
            # The settings may be those of another cluster: what the engine has goes on, and nothing else begins there.
            there = connection.serves(about.uid)
            found[about.uid] = denied.get(about.namespace) or elsewhere.get(about.uid) or (None if there else problem)
        return found

    async def _begun_elsewhere(self, connection: NamedConnection) -> dict[str, RebalanceError]:
        """By uid, the rebalances that named another connection when they began, to another cluster."""
        engine = connection.engine
        new = {uid for uid in connection.rebalances if connection.placed.get(uid) is not engine}
        if engine is None or not new or connection.inline is not None:
            return {}
        return {
            run.uid: Refused(
                Reason.OTHER_CLUSTER,
                f"{connection.owner} leads to Kafka cluster {engine.cluster_id}, but the open run moves partitions of "
                f"cluster {run.cluster_id}: delete the resource, and create one with a connection to that cluster",
            )
            for run in await self._runs.list_all()
            if run.open and run.uid in new and run.cluster_id != engine.cluster_id
        }
