"""The id that the brokers of one client answer with. It must be the same for all, or no order is sent.

A server can advertise addresses of another cluster as those of its brokers, and the address of a broker that was
replaced may belong to a broker of another cluster by now. Client libraries do not notice either (KIP-1242 is the
protocol's answer, for later brokers).
"""

import time
from collections.abc import Callable, Collection

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.topology import Broker, BrokerId
from kafka_rebalance.reasons import Reason

_REFUSED_SECONDS = 60.0
"""How long no order is sent after another id was seen."""
_BELIEVED_SECONDS = 60.0
"""How long a broker is not asked again: whether or not it has answered."""
MOST = 12
"""Brokers that are asked before one order, above those that it concerns, and at the same time in any case: brokers that
hang must leave threads free. Each names all brokers in its answer, so that of 1,000 takes milliseconds of CPU."""

_Address = tuple[BrokerId, str, int]


class AnsweringCluster:
    """The cluster of one client. Refused("OtherCluster") is raised if brokers answer with different ids.

    The first id counts for as long as the client exists, because the owner of the cluster was decided for it.
    ``known``: the id that an earlier client had read; empty: none.
    """

    def __init__(self, known: str = "", monotonic: Callable[[], float] = time.monotonic) -> None:
        self._known = known
        self._monotonic = monotonic
        self._brokers: dict[BrokerId, _Address] = {}
        self._asked: dict[_Address, float] = {}
        self._refusal: Refused | None = None
        self._refused_at = float("-inf")

    @property
    def has_been_described(self) -> bool:
        """Whether the brokers of the cluster are known."""
        return bool(self._brokers)

    def described(self, cluster_id: str, brokers: Collection[Broker]) -> None:
        """Some broker has answered with this id, and has named these brokers."""
        if self._known not in {"", cluster_id}:
            raise self._mixed("a broker", cluster_id)
        self._known = cluster_id
        self._brokers = {broker.id: (broker.id, broker.host, broker.port) for broker in brokers}
        named = set(self._brokers.values())
        self._asked = {address: at for address, at in self._asked.items() if address in named}

    def answered(self, broker: int | None, cluster_id: str) -> None:
        """This broker has answered with this id. May be called in any thread."""
        if cluster_id != self._known:
            raise self._mixed(f"broker {broker}", cluster_id)

    def check(self) -> None:
        """Raises if different ids were seen in the last minute."""
        if self._refusal is not None and self._monotonic() - self._refused_at < _REFUSED_SECONDS:
            raise Refused(self._refusal.reason, self._refusal.message)

    def to_ask(self, concerned: Collection[BrokerId]) -> list[BrokerId]:
        """The brokers to ask for their id before an order that concerns these; they count as asked from now on."""
        now = self._monotonic()
        due = [
            broker
            for broker, address in self._brokers.items()
            if now - self._asked.get(address, float("-inf")) >= _BELIEVED_SECONDS
        ]
        first = [broker for broker in due if broker in concerned]
        chosen = first + [broker for broker in due if broker not in concerned][:MOST]
        self._asked |= {self._brokers[broker]: now for broker in chosen}
        return chosen

    def not_asked(self, brokers: Collection[BrokerId]) -> None:
        """There was no time to ask these, so they are due again."""
        for broker in brokers:
            if (address := self._brokers.get(broker)) is not None:
                self._asked.pop(address, None)

    def _mixed(self, who: str, cluster_id: str) -> Refused:
        # All brokers are asked again before the next order: those that have answered rightly may have changed, too.
        self._refused_at, self._asked = self._monotonic(), {}
        self._refusal = Refused(
            Reason.OTHER_CLUSTER,
            f"{who} answers as Kafka cluster {cluster_id}, and others answered as {self._known}: nothing is sent to "
            "them. Let spec.bootstrapServers and the advertised.listeners of the brokers lead to one cluster only; if "
            "the cluster was replaced, delete all that names it, a KafkaConnection too, and create it again",
        )
        return self._refusal
