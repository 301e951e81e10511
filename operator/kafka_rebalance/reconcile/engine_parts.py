"""The parts of an engine: its cluster, the client, the stores and other parts of the operator."""

from collections.abc import Callable
from dataclasses import dataclass

from kafka_rebalance.clock import Clock
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaAdmin
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.report.run_recorder import NO_HISTORY, RunHistory
from kafka_rebalance.reconcile.runs.plan_maker import ConfiguredCapacity, LoadModels
from kafka_rebalance.reconcile.state.held_plans import HeldPlans
from kafka_rebalance.reconcile.state.namespace_turns import InlineTurns
from kafka_rebalance.reconcile.state.record import Stores
from kafka_rebalance.reconcile.throttle.throttle_keeper import ThrottleKeeper


@dataclass(frozen=True, slots=True)
class EngineParts:
    """The parts do not change while the engine runs. ``info``: the cluster when the engine started.

    ``turns``: those of an inline connection; None for a KafkaConnection. ``on_record``: the brokers by which the
    cluster is known, also those that are not live. ``throttles_placed``: whether the engine has all
    KafkaReassignmentThrottles that it is going to have.
    """

    info: ClusterInfo
    admin: KafkaAdmin
    resources: Resources
    stores: Stores
    keeper: ThrottleKeeper
    load_models: LoadModels
    capacity: ConfiguredCapacity
    clock: Clock
    history: RunHistory = NO_HISTORY
    turns: InlineTurns | None = None
    on_record: frozenset[BrokerId] = frozenset()
    throttles_placed: Callable[[], bool] = lambda: False

    @property
    def held_plans(self) -> HeldPlans:
        """The plans in memory that share a limit with those of this engine."""
        return self.turns.plans if self.turns is not None else HeldPlans()
