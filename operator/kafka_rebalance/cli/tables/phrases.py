"""Numbers and lists as phrases."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kafka_rebalance import units
from kafka_rebalance.api.resource_status import PlanStatus

if TYPE_CHECKING:
    from kafka_rebalance.model.plan import Certificate

_MOST_NAMED = 12


def counted(number: int, one: str, many: str = "") -> str:
    """``1 replica``, ``2 replicas``; ``many`` where it is not ``one`` with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def few(things: Sequence[object]) -> str:
    """The first twelve, and how many more there are."""
    return units.few(things, _MOST_NAMED)


def listed(parts: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def ids(brokers: Iterable[int]) -> str:
    """``1,2,3``; empty where there is none."""
    return ",".join(map(str, brokers))


def proof(certificate: "Certificate | PlanStatus", *, budget_reached: bool) -> str:
    """What is proved about the number of moves or, if a movement budget limits the plan, about its balance."""
    if budget_reached:
        return f"{'proved' if certificate.optimal else 'not proved'} to be the best within the movement budget"
    return "proved minimal" if certificate.optimal else f"lower bound {certificate.lower_bound}"
