"""How much of each resource the brokers have: as configured, and disks as they are. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from kafka_rebalance.api.connection_resource import Capacity
from kafka_rebalance.kafka.ports import LogDir
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.topology import BrokerId


def broker_capacities(
    configured: Capacity | None, brokers: Iterable[BrokerId], dirs: Mapping[BrokerId, Collection[LogDir]]
) -> dict[BrokerId, Mapping[LoadResource, int]]:
    """By broker and resource; what is not known is absent.

    The reported total of a broker's log dirs (since Kafka 3.3) overrides the configured size, so a replaced disk needs
    no edit. Log dirs that share a file system count it more than once, because they look like separate disks of the
    same size.
    """
    known = Capacity() if configured is None else configured
    found = {broker: known.of(broker) for broker in brokers}
    disks = {broker: disk for broker in found if (disk := _disk(dirs.get(broker, ()))) is not None}
    found |= {broker: replace(found[broker], disk=disk) for broker, disk in disks.items()}
    return {broker: capacity.by_resource() for broker, capacity in found.items()}


def _disk(dirs: Collection[LogDir]) -> int | None:
    """Bytes of all disks of a broker; None: it does not report them."""
    if not dirs or any(log_dir.total_bytes <= 0 for log_dir in dirs):
        return None
    return sum(log_dir.total_bytes for log_dir in dirs)
