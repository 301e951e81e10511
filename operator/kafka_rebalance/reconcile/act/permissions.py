"""Who may use a connection: the permissions of a KafkaConnection, and whether inline connections are accepted."""

import logging
from collections.abc import Mapping

from kafka_rebalance.api.connection import Kafka
from kafka_rebalance.api.v1alpha1 import KafkaConnection
from kafka_rebalance.errors import RebalanceError, Refused, Transient
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.model.ownership import Owner
from kafka_rebalance.reasons import Reason

log = logging.getLogger(__name__)


class PermissionUnknown(Transient):
    """The labels of a namespace or the KafkaConnection have not been read yet, or may not be read any more.

    The namespace begins nothing, and what it has begun does not end.
    """


class Permissions:
    """``inline``: whether inline connections are accepted."""

    def __init__(self, kube: KubeObjects, *, inline: bool) -> None:
        self._kube = kube
        self._inline = inline
        self._labels: dict[str, Mapping[str, str]] = {}

    def check_inline(self, kafka: Kafka | None) -> None:
        """Refused("InlineConnectionRefused") if this is an inline connection and none is accepted."""
        if kafka is not None and not self._inline:
            raise Refused(
                Reason.INLINE_CONNECTION_REFUSED,
                "this operator runs with --require-connections: name a KafkaConnection in spec.kafka.connectionRef "
                "instead of bootstrapServers, or have an administrator create one",
            )

    async def denied(
        self, owner: Owner, connection: KafkaConnection | None, namespace: str, *, unread: bool
    ) -> Refused | PermissionUnknown | None:
        """Why resources of the namespace may not use the KafkaConnection; None: they may.

        ``unread``: whether there is one that has never been readable since the start.
        """
        if connection is None and unread:
            return PermissionUnknown(
                Reason.CONNECTION_NOT_FOUND, f"{owner} cannot be read: correct it, its status says what is wrong"
            )
        if connection is None:
            return Refused(
                Reason.CONNECTION_NOT_FOUND,
                f"{owner} does not exist: create it, or name another one in spec.kafka.connectionRef",
            )
        allowed = connection.spec.allowed_namespaces
        if allowed.permit(owner.namespace, namespace, {}):
            return None
        if allowed.selector is not None:
            labels = await self._labels_of(namespace)
            if isinstance(labels, PermissionUnknown):
                return labels
            if allowed.permit(owner.namespace, namespace, labels):
                return None
        return Refused(
            Reason.CONNECTION_NOT_PERMITTED,
            f"{owner} does not permit namespace {namespace}: have its spec.allowedNamespaces extended",
        )

    async def _labels_of(self, namespace: str) -> Mapping[str, str] | PermissionUnknown:
        """The current labels; if the API server does not answer, the previous ones, if there are any.

        They do not count any more if the API server refuses to show them: until it does again, a change is not seen.
        """
        try:
            self._labels[namespace] = await self._kube.namespace_labels(namespace)
        except RebalanceError as error:
            log.warning("labels of namespace %s not read: %s", namespace, error.message)
            if not isinstance(error, Transient):
                self._labels.pop(namespace, None)
            if namespace not in self._labels:
                return PermissionUnknown(error.reason, f"labels of namespace {namespace} not read: {error.message}")
        return self._labels[namespace]
