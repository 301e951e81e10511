"""Pure planning: from where replicas are to where they should be. No I/O, no clock, no randomness.

``planner.plan`` makes a plan; ``planner.py`` states the objectives in order. ``log_dirs`` places the planned replicas
in log dirs, and ``explain`` says why a plan is as it is.
"""

from kafka_rebalance.planning.planner import plan
from kafka_rebalance.planning.problem.request import Goals, PartitionInput, PlanRequest, eligible_brokers

__all__ = ["Goals", "PartitionInput", "PlanRequest", "eligible_brokers", "plan"]
