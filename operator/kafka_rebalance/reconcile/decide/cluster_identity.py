"""Whether a server is the Kafka cluster that is on record, by what cannot differ between two listeners of one. Pure.

Addresses and ports differ between listeners. Broker ids and topic ids do not. At addresses that the owner has used
before, the owner is believed if a broker is known: all topics on record may have been deleted since.

Every user of a cluster knows these ids and can run a server that shows them. Only the addresses distinguish that server
from the cluster, and it may advertise addresses of the cluster as its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from heapq import nsmallest

from kafka_rebalance.model.ownership import Binding
from kafka_rebalance.model.topology import Broker, BrokerId
from kafka_rebalance.units import few

SAMPLE_TOPICS = 20
"""How many topics are on record."""
_MANY_BROKERS = 1000
_MANY_SERVERS = 100
_MOST_LETTERS = 16 * 1024
"""Of all bootstrap servers on record: a namespace may have 20 records, and all are read at once."""
_HASH_DIGITS = 16
"""Another address with the same hash gains nothing: a server may advertise any addresses as its own."""


def servers_of(bootstrap_servers: str) -> frozenset[str]:
    """The addresses in spec.bootstrapServers, as host:port."""
    return frozenset(server.strip().lower() for server in bootstrap_servers.split(",") if server.strip())


def at_known_address(binding: Binding, servers: frozenset[str], brokers: frozenset[BrokerId]) -> bool:
    """Whether the addresses are proof enough, without topics: all of them are on record, and a broker id is too.

    Any of the addresses may have answered, and a host name may point to another cluster by now.
    """
    return bool(servers) and servers <= binding.servers and (not binding.brokers or bool(binding.brokers & brokers))


def advertised_by(brokers: Mapping[BrokerId, Broker]) -> frozenset[str]:
    """The addresses of these brokers, as host:port."""
    return frozenset(f"{broker.host}:{broker.port}".lower() for broker in brokers.values())


def hashes_of(addresses: Iterable[str]) -> frozenset[str]:
    """What is on record of advertised addresses: little of each, since a server may advertise 1,500 long ones."""
    return frozenset(sha256(address.encode()).hexdigest()[:_HASH_DIGITS] for address in addresses)


def led_here(binding: Binding, servers: frozenset[str], advertised: frozenset[str], *, as_created: bool) -> bool:
    """Whether it is proved that the owner on record has worked only in the cluster of this server.

    ``servers``: the bootstrap servers of this server, ``advertised``: the addresses of its brokers. Each of the two
    connections must know all bootstrap servers of the other one, since either may lead to a server that only claims to
    be the cluster. ``as_created``: an administrator has written ``servers``, who knows that they are of one cluster.
    """
    if not binding.servers or binding.more_servers:
        return False
    if as_created and binding.servers <= servers:
        return True
    return binding.servers <= servers | advertised and servers <= binding.servers | _advertised_before(binding, servers)


def _advertised_before(binding: Binding, servers: frozenset[str]) -> frozenset[str]:
    return frozenset(server for server in servers if not binding.advertised.isdisjoint({server, *hashes_of({server})}))


def confirmed(binding: Binding, servers: frozenset[str]) -> bool:
    """Whether an administrator has confirmed all these bootstrap servers."""
    return bool(servers) and servers <= servers_of(binding.confirmed)


def proved(binding: Binding, servers: frozenset[str], advertised: frozenset[str], *, as_created: bool) -> bool:
    """Whether the work that the owner on record started is in the cluster of this server."""
    if confirmed(binding, servers):
        return True
    return bool(binding.topics) and led_here(binding, servers, advertised, as_created=as_created)


def reached_by(binding: Binding, servers: frozenset[str]) -> Binding:
    """The new record: the owner reaches the cluster by these addresses too."""
    known = servers | binding.servers
    if len(known) > _MANY_SERVERS or sum(map(len, known)) > _MOST_LETTERS:
        return replace(binding, servers=servers, more_servers=True)
    return replace(binding, servers=known)


def contradiction(binding: Binding, brokers: frozenset[BrokerId], topics: Mapping[str, str]) -> str:
    """Why this cannot be the cluster on record; empty: it can.

    One broker and one topic seen again are enough: brokers may be down or replaced, and topics deleted.
    """
    if binding.brokers and brokers and not binding.brokers & brokers:
        return f"its brokers are {_ids(brokers)}, those on record are {_ids(binding.brokers)}"
    if binding.topics and not _seen_again(binding, topics):
        return f"none of the topics on record ({few(sorted(binding.topics))}) is there with the id that it had"
    return ""


def renewed(binding: Binding, brokers: frozenset[BrokerId], topics: Mapping[str, str]) -> Binding:
    """The new record: all brokers ever seen, and a few topics.

    Topics that were seen again come first. Kafka's internal topics come before others, since users do not delete them.
    """
    known = brokers | binding.brokers
    kept = _seen_again(binding, topics)
    # Of all topics of a large cluster a few are enough: to sort 100,000 takes a fifth of a second.
    internal = nsmallest(SAMPLE_TOPICS, (name for name in topics if name.startswith("__") and name not in kept))
    others = nsmallest(SAMPLE_TOPICS, (name for name in topics if not name.startswith("__") and name not in kept))
    sample = {**kept, **{name: topics[name] for name in (*internal, *others)}}
    names = list(sample)[:SAMPLE_TOPICS]
    return replace(
        binding,
        brokers=known if len(known) <= _MANY_BROKERS else brokers,
        topics={name: sample[name] for name in sorted(names)},
    )


def _seen_again(binding: Binding, topics: Mapping[str, str]) -> dict[str, str]:
    return {name: topic_id for name, topic_id in binding.topics.items() if topics.get(name) == topic_id}


def _ids(brokers: frozenset[BrokerId]) -> str:
    return few(sorted(brokers))
