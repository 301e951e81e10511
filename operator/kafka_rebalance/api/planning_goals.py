"""spec.goals of KafkaRebalance as values of the planner: for the operator, and for commands without its other rules."""

from kafka_rebalance.api.rebalance_spec import GoalsSpec
from kafka_rebalance.planning.problem.request import Goals


def planning_goals(goals: GoalsSpec) -> Goals:
    """The spec's goals as input of the planner."""
    return Goals(
        rack_awareness=goals.rack_awareness,
        leaders=goals.leaders,
        follower_order=goals.follower_order,
        balance=goals.balance,
        max_replica_moves=goals.max_replica_moves,
        max_data_to_move=goals.max_data_to_move,
        minimum_gain=goals.minimum_gain,
        load=tuple(row.as_goal() for row in goals.load.resources) if goals.load is not None else (),
        counts=goals.counts,
    )
