"""Checks that end an attempt to connect because its connection has changed, or may not lead to another cluster.

They do not depend on the owner of the cluster, and read and write nothing. And what such an attempt leaves behind in
memory when it has succeeded.
"""

from kafka_rebalance.api.v1alpha1 import LET_GO_ANNOTATION, KafkaConnection
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.model.ownership import Binding
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.cluster_work import Work
from kafka_rebalance.reconcile.connection_book import NamedConnection


def check_same_object(connection: NamedConnection, uid: str | None) -> None:
    """Abandon an attempt with the settings of the KafkaConnection ``uid``, if it was deleted or created again since.

    Its settings must not be judged by who wrote those of its successor.
    """
    if uid_of(connection) != uid:
        message = f"{connection.owner} was deleted or created again while its former server was asked"
        raise Transient(Reason.KAFKA_UNREACHABLE, message)


def only_to_end(connection: NamedConnection) -> bool:
    """Whether the connection is on record, and no resource has these settings: it is used only to end work."""
    return connection.kafka is None or not connection.named


def check_unfinished(connection: NamedConnection, cluster_id: str) -> None:
    """Refuse another cluster if the connection is only used to end work."""
    if only_to_end(connection) and cluster_id != connection.unfinished:
        message = f"leads to Kafka cluster {cluster_id} now, and not to {connection.unfinished}"
        raise Refused(Reason.OTHER_CLUSTER, message)


def forget_last_settings(connection: NamedConnection, own: KafkaConnection | None, cluster_id: str) -> None:
    """After ``own`` has led to this cluster. If it is deleted then, its work there ends with what is on record by then.

    The former settings may be those of a server that others have by now.
    """
    if own is not None and connection.unfinished == cluster_id:
        connection.unfinished = ""


def check_nothing_left(former: Binding, work: Work, cluster_id: str, by_hand: str) -> None:
    """Refuse another cluster while there is work in the former one. ``by_hand``: how to restore throttles there."""
    if work.keeps(former.owner):
        by_annotation = f"delete these resources with the annotation {LET_GO_ANNOTATION}=true"
        without = by_annotation if work.open_runs else by_hand
        raise Refused(
            Reason.CLUSTER_CHANGED,
            f"leads to Kafka cluster {cluster_id}, but {work} in cluster {former.cluster_id}, which it led to "
            "before: set spec back, or end these first. Until then the former connection is used, as long as "
            f"this operator runs. If cluster {former.cluster_id} cannot be reached any more, {without}",
        )


def uid_of(connection: NamedConnection) -> str | None:
    """Of the KafkaConnection; None: there is none, or the connection is inline."""
    return None if connection.about is None else connection.about.uid
