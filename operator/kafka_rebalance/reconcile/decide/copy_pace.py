"""When copies are chosen again, while very many partitions are in flight. Pure.

A round that chooses copies reads them, extends their throttle and sends them, which takes twice the requests of a round
that does not. Of many partitions in flight a few arrive in each round, and the others use the bandwidth meanwhile. So
those that have arrived are replaced together.
"""

from dataclasses import dataclass

_MANY = 500
_MANY_PER_BROKER = 8
"""In flight in the cluster. With fewer, copies are chosen in each round, because brokers may have nothing to copy."""
_SECONDS = 3.0
"""Copies wait no longer than this."""
_ARRIVED = 0.1
"""They do not wait either once this part of what was in flight has arrived."""


@dataclass(frozen=True, slots=True)
class LastCopies:
    """When all chosen copies were sent last, by a monotonic clock, and the partitions in flight in the cluster then.

    If one of them could not be sent, or there are more than a round sends, there is no such value: they wait for the
    next round and not for others.
    """

    at: float
    in_flight: int

    def may_wait(self, now: float, in_flight: int, brokers: int) -> bool:
        """Whether copies may wait for a later round. ``in_flight``: the partitions of the cluster in flight now."""
        if in_flight < max(_MANY, _MANY_PER_BROKER * brokers) or now - self.at >= _SECONDS:
            return False
        return in_flight > (1 - _ARRIVED) * self.in_flight
