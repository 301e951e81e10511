"""The brokers of a demo, and where replicas are at its start."""

from dataclasses import dataclass

BYTES_PER_PARTITION = 875_000
RACKS = 3


@dataclass(frozen=True)
class Layout:
    """Brokers 1 to `brokers` in racks r1, r2, r3 in turn, and topics on the first `hosts` of them."""

    brokers: int
    hosts: int
    topics: int
    partitions_per_topic: int

    @property
    def partitions(self) -> int:
        """All partitions that hold records from the start."""
        return self.topics * self.partitions_per_topic

    @property
    def megabytes(self) -> int:
        """The records from the start, without their replicas."""
        return self.partitions * BYTES_PER_PARTITION // 1_000_000


def spread_over(hosts: int, partitions: int) -> list[list[int]]:
    """Three replicas in different racks for each partition, leader first.

    Brokers lead equally many partitions if `hosts` divides their number, and have equally many replicas if
    `hosts` times the square of the brokers of a rack does.
    """
    in_rack = hosts // RACKS

    def row(leader: int, turn: int) -> list[int]:
        turns = (leader // RACKS, turn % in_rack, turn // in_rack % in_rack)
        return [(leader + at) % RACKS + RACKS * which + 1 for at, which in enumerate(turns)]

    return [row(number % hosts, number // hosts) for number in range(partitions)]
