"""Replace the client of a Kafka cluster when the brokers no longer accept its credentials.

A working client is left alone: Secrets may be deleted with their namespace while a rebalance still needs the cluster.
They are read again only after a call that failed to connect or to authenticate: with the settings that the client was
made from, if they changed or were refused, then with those of other connections of the same owner to the cluster, as
after a listener has moved.

A new client replaces the old one only if it reaches the same cluster. The cluster id that a server answered with first
is compared with every later answer: who owns the cluster was decided for that one. Its servers are on record before it
is used: what is done there may not have been done in the cluster itself.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, cast

from kafka_rebalance.api.conditions import NO_CONNECTION_REASONS
from kafka_rebalance.errors import RebalanceError, Refused, Transient
from kafka_rebalance.heartbeat import beat
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaAdmin, KafkaReader
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.reasons import Reason

log = logging.getLogger(__name__)

Connect = Callable[[ConnectionSettings], KafkaAdmin]
Source = tuple[str, str]
"""Namespace of the resources that name the cluster, and their ``spec.kafka``: together they say which Secrets."""
Used = tuple[Source, ConnectionSettings]
CurrentSettings = Callable[[], Awaitable[Mapping[Source, ConnectionSettings]]]
"""The settings of the owner's connections to the cluster, from the Secrets as they are now; missing ones left out."""
Recognise = Callable[[ClusterInfo, KafkaReader, str], Awaitable[None]]
"""Puts these bootstrap servers on record. Raises a RebalanceError if the server is not to be used."""


def rotating(
    admin: KafkaAdmin,
    used: Used,
    cluster_id: str,
    connect: Connect,
    current_settings: CurrentSettings,
    recognise: Recognise,
) -> KafkaAdmin:
    """The same cluster through a client that is replaced when its credentials stop working."""
    return cast("KafkaAdmin", _RotatingAdmin(admin, used, cluster_id, connect, current_settings, recognise))


class _RotatingAdmin:
    """`KafkaAdmin`: passes every call on to the present client and notes why calls failed.

    ``describe_cluster``, the first call of a round, replaces the client if a call failed since the last one. Failed
    calls are not repeated: whether an order was carried out is for the next round to find out.
    """

    def __init__(
        self,
        admin: KafkaAdmin,
        used: Used,
        cluster_id: str,
        connect: Connect,
        current_settings: CurrentSettings,
        recognise: Recognise,
    ) -> None:
        self._admin = admin
        self._used = used
        self._cluster_id = cluster_id
        self._connect = connect
        self._current_settings = current_settings
        self._recognise = recognise
        self._failures: set[str] = set()

    async def describe_cluster(self) -> ClusterInfo:
        failures, self._failures = self._failures & NO_CONNECTION_REASONS, set()
        if failures:
            await self._rotate(refused=Reason.KAFKA_AUTHENTICATION_FAILED in failures)
        info: ClusterInfo = await self._call("describe_cluster")
        if info.cluster_id != self._cluster_id:
            raise Refused(
                Reason.OTHER_CLUSTER,
                f"brokers that answered as Kafka cluster {self._cluster_id} before answer as {info.cluster_id} now: "
                "nothing is sent to them. Let spec.bootstrapServers lead to one cluster only; if the cluster was "
                "replaced, delete all that names it, a KafkaConnection too, and create it again",
            )
        return info

    async def close(self) -> None:
        await self._admin.close()

    def __getattr__(self, method: str) -> Callable[..., Awaitable[Any]]:
        """All other methods of the port."""
        return partial(self._call, method)

    async def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        admin = self._admin
        try:
            return await getattr(admin, method)(*arguments, **options)
        except RebalanceError as error:
            if admin is self._admin:
                self._failures.add(error.reason)
            raise
        except Exception as error:
            if admin is self._admin:
                raise
            # It was closed during the call. If that was an order, it may have been carried out.
            message = f"no answer to {method}: the client was replaced by one with the current Secrets"
            raise Transient(Reason.KAFKA_UNREACHABLE, message, 1.0) from error
        finally:
            beat()

    async def _rotate(self, *, refused: bool) -> None:
        for used in self._candidates(await self._current_settings(), refused=refused):
            admin = await self._reached_by(used[1])
            beat()
            if admin is not None:
                before, self._admin, self._used = self._admin, admin, used
                log.info("cluster %s: connected again with the current Secrets", self._cluster_id)
                await before.close()
                return

    def _candidates(self, current: Mapping[Source, ConnectionSettings], *, refused: bool) -> list[Used]:
        own, settings = self._used
        first = [(own, current[own])] if own in current and (refused or current[own] != settings) else []
        return first + [row for row in current.items() if row[0] != own]

    async def _reached_by(self, settings: ConnectionSettings) -> KafkaAdmin | None:
        """A client that reaches this very cluster with these settings, or None."""
        try:
            admin = self._connect(settings)
        except RebalanceError as error:
            log.warning("cluster %s: %s: %s", self._cluster_id, error.reason, error.message)
            return None
        try:
            info = await admin.describe_cluster()
            if info.cluster_id == self._cluster_id:
                await self._recognise(info, admin, settings.bootstrap_servers)
                return admin
        except RebalanceError as error:
            log.warning("cluster %s: %s: %s", self._cluster_id, error.reason, error.message)
        except BaseException:
            await admin.close()
            raise
        await admin.close()
        return None
