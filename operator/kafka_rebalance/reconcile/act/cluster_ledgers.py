"""The throttle ledgers as seen by the owners of clusters: whether something is to be restored, and when one is deleted.

Servers of inline connections may claim any number of cluster ids, one after the other. A ledger is stored, if empty,
for each cluster with a run, and must not be missing while the run is open. So an empty one is deleted when the binding
of the cluster ends. One with entries never is: it alone says what to restore.
"""

import contextlib
from collections.abc import Callable, Collection
from typing import Any

from kafka_rebalance.execution.ledger_json import ledger_from_json
from kafka_rebalance.kube.api_errors import StoredStateCorrupt
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.model.ownership import Owner

_MOST_AT_ONCE = 500
"""Of the ledgers without a binding. Each is read."""


class ClusterLedgers:
    """``limited_in``: whether a KafkaReassignmentThrottle that has limited something in this cluster is still there.

    With such a resource, a missing ledger would be taken for one that somebody has deleted.
    """

    def __init__(self, kube: KubeObjects, limited_in: Callable[[str], bool]) -> None:
        self._store = LedgerStore(kube)
        self._limited_in = limited_in

    async def owner(self, cluster_id: str) -> Owner | None:
        """As ``LedgerStore.owner``."""
        return await self._store.owner(cluster_id)

    def where(self, cluster_id: str) -> str:
        """As ``LedgerStore.where``."""
        return self._store.where(cluster_id)

    async def throttled(self, cluster_id: str) -> bool:
        """Whether the ledger has entries, or cannot be read."""
        try:
            data = await self._store.load(cluster_id)
        except StoredStateCorrupt:
            return True
        return data is not None and not _is_empty(data)

    async def forget(self, cluster_id: str) -> None:
        """Delete the ledger if it is empty. Only while no engine works on the cluster, and no run is open there."""
        if not self._limited_in(cluster_id):
            with contextlib.suppress(StoredStateCorrupt):  # what is in it is not known
                await self._store.delete_if(cluster_id, _is_empty)

    async def others(self, excepted: Collection[str]) -> list[str]:
        """Clusters with a ledger other than ``excepted``, a limited number of them."""
        return await self._store.cluster_ids(excepted=excepted, most=_MOST_AT_ONCE)


def _is_empty(data: Any) -> bool:
    """False if it is not known what is in the ledger."""
    try:
        return ledger_from_json(data).empty
    except (KeyError, TypeError, ValueError):
        return False
