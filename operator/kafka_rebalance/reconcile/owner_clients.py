"""The Kafka clients of the owners of clusters: from the settings and Secrets of their connections."""

import contextlib
from collections.abc import Callable
from functools import partial

from kafka_rebalance.errors import Permanent, RebalanceError
from kafka_rebalance.kafka.credential_rotation import Source, rotating
from kafka_rebalance.kafka.ports import KafkaAdmin
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.model.ownership import Owner
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.cluster_owners import ClusterOwners
from kafka_rebalance.reconcile.claim_checks import only_to_end
from kafka_rebalance.reconcile.connection_book import ConnectionBook, NamedConnection
from kafka_rebalance.reconcile.observe.connections import Resolved, resolve
from kafka_rebalance.reconcile.state.namespace_turns import InlineTurns
from kafka_rebalance.reconcile.state.round_thread import round_of

ConnectAs = Callable[[ConnectionSettings, Owner], KafkaAdmin]
"""A client for the cluster of this owner. Servers of inline connections are not trusted."""


class OwnerClients:
    """Makes clients; who has one closes it. ``turns``: of the inline connections of a namespace."""

    def __init__(
        self,
        kube: KubeObjects,
        connect: ConnectAs,
        owners: ClusterOwners,
        book: ConnectionBook,
        turns: Callable[[str], InlineTurns],
    ) -> None:
        self._kube = kube
        self.connect = connect
        self._owners = owners
        self._book = book
        self._turns = turns

    async def settings(self, connection: NamedConnection) -> Resolved:
        """The present settings of the connection. Raises why there are none.

        If no resource has the connection any more, only those of the Secrets that it was used with: others of the same
        name may belong to other users.
        """
        kafka = connection.reach
        if kafka is None:
            raise Permanent(
                Reason.CONNECTION_NOT_FOUND, f"{connection.owner} does not exist: create it, or name another"
            )
        only = connection.last_secrets if only_to_end(connection) else None
        owner = connection.owner
        with round_of(None if owner.connection else self._turns(owner.namespace).round):
            return await resolve(kafka, owner.namespace, self._kube, only)

    def lasting(
        self, connection: NamedConnection, settings: ConnectionSettings, cluster_id: str, admin: KafkaAdmin
    ) -> KafkaAdmin:
        """The client for as long as the owner has the cluster: it follows the Secrets, and refuses another cluster."""
        owner = connection.owner  # the connection refers to its engine, which has this client
        return rotating(
            admin,
            (connection.source, settings),
            cluster_id,
            lambda renewed: self.connect(renewed, owner),
            lambda: self._settings_now(owner, cluster_id),
            partial(self._owners.recognise, owner),
        )

    async def another(self, connection: NamedConnection, cluster_id: str) -> KafkaAdmin:
        """A further client for the cluster of the owner, for readings that no round is to wait for.

        Raises why it cannot be reached, Refused if it is another cluster, or belongs to another owner by now.
        """
        settings, _ = await self.settings(connection)
        admin = self.lasting(connection, settings, cluster_id, self.connect(settings, connection.owner))
        try:
            info = await admin.describe_cluster()
            await self._owners.recognise(connection.owner, info, admin, settings.bootstrap_servers)
        except BaseException:
            await admin.close()
            raise
        return admin

    async def _settings_now(self, owner: Owner, cluster_id: str) -> dict[Source, ConnectionSettings]:
        """The present settings of the owner's connections to the cluster; those whose Secrets are gone are left out."""
        found = {}
        for connection in self._book:
            here = connection.engine is not None and connection.engine.cluster_id == cluster_id
            if connection.owner == owner and here and connection.needed:
                with contextlib.suppress(RebalanceError):
                    found[connection.source] = (await self.settings(connection)).settings
        return found
