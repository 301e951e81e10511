"""Whose settings an attempt to connect uses, and checks that end it: its connection has changed, or may not lead there.

They do not depend on the owner of the cluster, and read and write nothing. And what such an attempt leaves behind in
memory when it has succeeded.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kafka_rebalance.api.v1alpha1 import LET_GO_ANNOTATION, KafkaConnection
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.model.ownership import Binding
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.cluster_work import Work
from kafka_rebalance.reconcile.connection_book import NamedConnection
from kafka_rebalance.reconcile.decide.cluster_ownership import Standing


class Uids(NamedTuple):
    """The uids of the KafkaConnection that exists, and of the one that has or had the settings in use.

    They differ while the one that exists cannot be read, and work of an earlier one is ended with the settings on
    record. None: there is none, it is not known, or the connection is inline.
    """

    exists: str | None
    settings: str | None


def uids_of(connection: NamedConnection) -> Uids:
    """Those of now."""
    exists = None if connection.about is None else connection.about.uid
    return Uids(exists, (connection.last.uid or None) if connection.kafka is None else exists)


def check_same_object(connection: NamedConnection, before: Uids) -> None:
    """Abandon an attempt if the KafkaConnection was deleted or created again since, or can be read by now.

    Its settings must not be judged by who wrote those of its successor.
    """
    if uids_of(connection) != before:
        message = f"{connection.owner} was deleted, created again or corrected while its former server was asked"
        raise Transient(Reason.KAFKA_UNREACHABLE, message)


def only_to_end(connection: NamedConnection) -> bool:
    """Whether the connection is on record, and no resource has these settings: it is used only to end work."""
    return connection.kafka is None or not connection.named


def claimant(connection: NamedConnection, standing: Standing, former: Iterable[Binding]) -> Standing:
    """The standing of a claim with the settings in use. ``former``: other clusters to which the connection has led.

    Settings on record may be those of an earlier KafkaConnection. They take no cluster for the one that exists, and
    stay on record as those of the earlier one.
    """
    if connection.kafka is None:
        standing = Standing(standing.owner, named=False, edited=True, uid=connection.last.uid)
    return standing.after(former)


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
