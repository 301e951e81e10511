"""The Kafka clients of the owners of clusters: from the settings and Secrets of their connections."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from functools import partial

from pydantic import ValidationError

from kafka_rebalance.api.connection import Kafka
from kafka_rebalance.errors import Permanent, RebalanceError
from kafka_rebalance.kafka.credential_rotation import CurrentSettings, Source, rotating
from kafka_rebalance.kafka.ports import KafkaAdmin
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.cluster_owners import ClusterOwners
from kafka_rebalance.reconcile.claim_checks import only_to_end
from kafka_rebalance.reconcile.connection_book import ConnectionBook, NamedConnection
from kafka_rebalance.reconcile.observe.connections import Resolved, resolve
from kafka_rebalance.reconcile.state.namespace_turns import InlineTurns
from kafka_rebalance.reconcile.state.round_thread import round_of

log = logging.getLogger(__name__)

_WARN_SECONDS = 3600.0
"""How long until a client repeats the warning about the connection on record."""

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
        only = connection.last.secrets if only_to_end(connection) else None
        return await self._resolved(kafka, connection.owner, only)

    def lasting(
        self, connection: NamedConnection, settings: ConnectionSettings, cluster_id: str, admin: KafkaAdmin
    ) -> KafkaAdmin:
        """The client of an engine, for as long as the owner has the cluster: it renews its credentials.

        If no resource has a connection to the cluster any more, it does so to restore throttles and cordons.
        """
        left = partial(self._settings_to_end, connection.owner, cluster_id, _HourlyWarning())
        return self._following(connection, settings, cluster_id, admin, left)

    def _following(
        self,
        connection: NamedConnection,
        settings: ConnectionSettings,
        cluster_id: str,
        admin: KafkaAdmin,
        current: CurrentSettings,
    ) -> KafkaAdmin:
        """The client follows the Secrets, and refuses another cluster."""
        owner = connection.owner  # the connection refers to its engine, which has this client
        return rotating(
            admin,
            (connection.source, settings),
            cluster_id,
            lambda renewed: self.connect(renewed, owner),
            current,
            partial(self._owners.recognise, owner),
        )

    async def another(self, connection: NamedConnection, cluster_id: str) -> KafkaAdmin:
        """A further client for the cluster of the owner, for readings that no round is to wait for.

        Raises why it cannot be reached, Refused if it is another cluster, or belongs to another owner by now.
        """
        settings, _ = await self.settings(connection)
        current = partial(self._settings_now, connection.owner, cluster_id)
        connected = self.connect(settings, connection.owner)
        admin = self._following(connection, settings, cluster_id, connected, current)
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
            if connection.owner == owner and _leads_to(cluster_id, connection):
                with contextlib.suppress(RebalanceError):
                    found[connection.source] = (await self.settings(connection)).settings
        return found

    async def _settings_to_end(
        self, owner: Owner, cluster_id: str, warning: "_HourlyWarning"
    ) -> dict[Source, ConnectionSettings]:
        """As ``_settings_now``; if there is none to use, those of the connection on record, as after a restart.

        Only while throttles or cordons of ours are in place, and only with the Secrets on record. No engine of inline
        connections runs where none are accepted.
        """
        found = await self._settings_now(owner, cluster_id)
        if found or any(_in_use(cluster_id, owner, connection) for connection in self._book):
            return found
        try:
            unfinished = await self._owners.left_by(owner, cluster_id)
            if unfinished is None:
                return {}
            kafka = _on_record(unfinished.binding)
            warning.log(unfinished.not_on_record if kafka is None else unfinished.on_record)
            if kafka is None:
                return {}
            settings, _ = await self._resolved(kafka, owner, unfinished.binding.secrets)
        except RebalanceError as error:
            log.warning("cluster %s: %s: %s", cluster_id, error.reason, error.message)
            return {}
        return {NamedConnection(owner, None if owner.connection else kafka).source: settings}

    async def _resolved(self, kafka: Kafka, owner: Owner, only: Mapping[str, str] | None) -> Resolved:
        with round_of(None if owner.connection else self._turns(owner.namespace).round):
            return await resolve(kafka, owner.namespace, self._kube, only)


def _on_record(binding: Binding) -> Kafka | None:
    """The last connection of the owner; None: an earlier version has stored none, or one that cannot be read."""
    try:
        return Kafka.model_validate_json(binding.connection)
    except ValidationError:
        return None


def _leads_to(cluster_id: str, connection: NamedConnection) -> bool:
    return connection.engine is not None and connection.engine.cluster_id == cluster_id and connection.needed


def _in_use(cluster_id: str, owner: Owner, connection: NamedConnection) -> bool:
    """Whether a resource has this connection to the cluster, or a rebalance of it goes on in the engine there.

    A KafkaConnection that exists counts even before it has led there: its owner is asked to correct it.
    """
    goes_on = any(
        engine.cluster_id == cluster_id and uid in engine.rebalances and engine.rebalances[uid].refusal is None
        for uid, engine in connection.placed.items()
    )
    known = connection.about is not None or (_leads_to(cluster_id, connection) and connection.reach is not None)
    return goes_on or (connection.owner == owner and known)


class _HourlyWarning:
    """A warning that one client repeats after an hour."""

    def __init__(self) -> None:
        self._next = 0.0

    def log(self, message: str) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._next:
            self._next = now + _WARN_SECONDS
            log.warning("%s", message)
