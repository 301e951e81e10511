"""Whose Kafka cluster it is: the owner, with whose client everything is done there, and the record of that.

A cluster id is only what a server claims. The record says by what else the cluster was known when it was bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_rebalance.model.topology import BrokerId


@dataclass(frozen=True, slots=True, order=True)
class Owner:
    """A KafkaConnection, or all inline connections of one namespace (``connection`` empty)."""

    namespace: str
    connection: str = ""

    def __str__(self) -> str:
        if self.connection:
            return f"KafkaConnection {self.namespace}/{self.connection}"
        return f"the inline connections of namespace {self.namespace}"


@dataclass(frozen=True, slots=True)
class Binding:
    """The owner of a cluster on record.

    ``topics``: ids of a few topics by name; empty: none was known. ``servers``: the bootstrap servers by which the
    owner reaches it, as host:port; ``more_servers``: it may have reached it by others too. ``advertised``: hashes of
    the addresses that its brokers advertised to the owner, or the addresses if an earlier version has stored them.
    ``recognised``: former owners with work there, when the cluster that they had was seen to be this one, by a topic.
    ``connection``: the last connection of the owner that led there, as JSON of ``spec.kafka``, which names Secrets;
    empty: not known. ``secrets``: by name, the uids of these Secrets; one that is missing was not stored by an earlier
    version. ``confirmed``: the bootstrap servers that an administrator has confirmed for this cluster. ``uid``: of the
    KafkaConnection; empty: not known, or the owner has none.
    """

    cluster_id: str
    owner: Owner
    brokers: frozenset[BrokerId] = frozenset()
    topics: Mapping[str, str] = field(default_factory=dict)
    servers: frozenset[str] = frozenset()
    more_servers: bool = False
    advertised: frozenset[str] = frozenset()
    recognised: frozenset[Owner] = frozenset()
    connection: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict)
    confirmed: str = ""
    uid: str = ""
