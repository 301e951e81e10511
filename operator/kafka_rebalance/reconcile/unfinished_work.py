"""Restores throttles and cordons in Kafka clusters that no resource names any more.

The engine of a cluster runs until none of them are left there; its client renews its credentials by the connection in
the binding of the cluster (``owner_clients``). If the operator is restarted before, only the records are left: the
throttle ledger, and this connection. Until this work is done no other namespace can own the cluster.
"""

import asyncio
import logging
from collections.abc import Callable

from pydantic import ValidationError

from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.reconcile.act.cluster_work import Unfinished
from kafka_rebalance.reconcile.connection_book import ConnectionBook, NamedConnection
from kafka_rebalance.reconcile.engines import Engines

log = logging.getLogger(__name__)

_EVERY_SECONDS = 60.0
"""How often to look. The first look comes as long after the start: by then, resources have connected."""
_WARN_EVERY_LOOKS = 60
"""The warning about a cluster is repeated after this number of checks."""


class UnfinishedWork:
    """Looks at the records. ``connect`` is called for connections that are needed to end the work of their owner.

    ``all_known``: set when the resources have been read. Before, no cluster is named by any, and a look would end the
    ownership of all.
    """

    def __init__(
        self,
        engines: Engines,
        book: ConnectionBook,
        connect: Callable[[NamedConnection], None],
        all_known: asyncio.Event,
    ) -> None:
        self._engines = engines
        self._book = book
        self._connect = connect
        self._all_known = all_known
        self._looks: dict[str, int] = {}
        """By cluster id: how often its work was found unfinished, in a row."""

    async def keep_ending(self) -> None:
        """Look every minute, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            await self._all_known.wait()
            try:
                await self._look()
            except RebalanceError as error:
                log.warning("cannot check whether work is left in clusters: %s", error.message)
            except Exception:
                log.exception("cannot check whether work is left in clusters")

    async def _look(self) -> None:
        found = {unfinished.binding.cluster_id: unfinished for unfinished in await self._engines.unfinished()}
        self._looks = {cluster_id: looks for cluster_id, looks in self._looks.items() if cluster_id in found}
        for known in self._book:
            self._give_up(known, found)
        for unfinished in found.values():
            connection = self._entered(unfinished)
            if connection is None or not connection.named:
                self._warn(unfinished, connection)
            if connection is not None:
                self._connect(connection)

    def _give_up(self, connection: NamedConnection, found: dict[str, Unfinished]) -> None:
        """Somebody has ended the work by hand, or another owner has the cluster and the work."""
        cluster_id = connection.unfinished
        owners = [running.owner] if (running := self._engines.get(cluster_id)) is not None else []
        owners += [found[cluster_id].binding.owner] if cluster_id in found else []
        if cluster_id and connection.owner not in owners[:1]:
            connection.unfinished = ""
            connection.changed.set()

    def _entered(self, unfinished: Unfinished) -> NamedConnection | None:
        """None: how to connect is not on record, or cannot be read."""
        owner = unfinished.binding.owner
        if owner.connection and self._book.of_owner(owner).resource is not None:
            return self._book.of_owner(owner)  # it is tried anyway
        try:
            return self._book.of_unfinished(unfinished.binding)
        except ValidationError:
            return None

    def _warn(self, unfinished: Unfinished, connection: NamedConnection | None) -> None:
        cluster_id = unfinished.binding.cluster_id
        looks = self._looks.get(cluster_id, 0)
        self._looks[cluster_id] = looks + 1
        if looks % _WARN_EVERY_LOOKS:
            return
        log.warning("%s", unfinished.not_on_record if connection is None else unfinished.on_record)
