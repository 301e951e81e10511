"""How targets are chosen: the choices of ``spec.strategy`` and ``spec.goals``, as the planner takes them too."""

from enum import StrEnum


class RackAwareness(StrEnum):
    """How the rack rule ranks.

    Enforced: above balance; violations are only those that no placement avoids. Preferred: below balance, above
    moves. Disabled: racks are not looked at.
    """

    ENFORCED = "Enforced"
    PREFERRED = "Preferred"
    DISABLED = "Disabled"


class Strategy(StrEnum):
    """How targets are chosen."""

    MINIMAL_MOVEMENT = "MinimalMovement"
    FORCED_MOVES_ONLY = "ForcedMovesOnly"
    GENERATE = "Generate"
    ASSIGNMENT = "Assignment"
    PREFERRED_LEADERS = "PreferredLeaders"


class Balance(StrEnum):
    """Over what replicas are counted: all selected partitions, those of each topic, or both at once."""

    TOTAL = "Total"
    PER_TOPIC = "PerTopic"
    BOTH = "Both"
