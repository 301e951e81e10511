"""How much of each resource a broker has."""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_rebalance.model.goals import LoadResource


@dataclass(frozen=True, slots=True)
class BrokerCapacity:
    """``disk`` in bytes; ``network_in`` and ``network_out`` in bytes per second; None: not known."""

    disk: int | None = None
    network_in: int | None = None
    network_out: int | None = None

    def by_resource(self) -> Mapping[LoadResource, int]:
        """The known capacities. Produced records arrive over the same network as replication."""
        capacities = {
            LoadResource.DISK: self.disk,
            LoadResource.BYTES_IN: self.network_in,
            LoadResource.BYTES_OUT: self.network_out,
            LoadResource.LEADER_BYTES_IN: self.network_in,
        }
        return {resource: capacity for resource, capacity in capacities.items() if capacity is not None}
