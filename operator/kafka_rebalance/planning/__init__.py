"""Pure planning: from where replicas are to where they should be. No I/O, no clock, no randomness.

``plan`` (planner.py) is the only entry point. The steps are: instance -> balance -> placement -> order.
"""

from kafka_rebalance.planning.planner import plan
from kafka_rebalance.planning.problem.request import Goals, PartitionInput, PlanRequest, eligible_brokers

__all__ = ["Goals", "PartitionInput", "PlanRequest", "eligible_brokers", "plan"]
