"""Brokers with cordons, and the record of the run that sets them."""

from datetime import UTC, datetime

from tests.fakes.found_by_rounds import recorded
from tests.fakes.stopped_clock import StoppedClock

from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.kafka.ports import Answers, ConfigOp, ConfigSource, ConfigValue
from kafka_rebalance.model.plan import Certificate, Plan
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.act.cordoning import CONFIG, Cordons
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import Stores, loaded_run_of

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
FOUR, FIVE = BrokerId(4), BrokerId(5)
UNSET = ConfigValue("", ConfigSource.DEFAULT)
NOT_OFFERED = ConfigValue(None, ConfigSource.DEFAULT)
OURS = ConfigValue("*", ConfigSource.DYNAMIC_BROKER)
SOMEBODYS = ConfigValue("/data", ConfigSource.DYNAMIC_BROKER)


class Cluster:
    """Broker configs and the run's record, with one list of all writes."""

    def __init__(self, **brokers):
        self.values = {BrokerId(int(name[1:])): value for name, value in brokers.items()}
        self.happened = []
        self.refuses, self.denied = None, {}
        self.saves_until_failure = 1_000
        self.save_refusal = None
        self.failure = Transient("ApiServerUnreachable", "no answer")

    async def broker_configs(self, brokers, names):
        if self.refuses:
            raise self.refuses
        return Answers({b: dict.fromkeys(names, self.values[b]) for b in brokers if b in self.values})

    async def alter_broker_configs(self, changes):
        for broker, (change,) in changes.items():
            assert change.name == CONFIG
            self.happened.append((change.op, broker, change.value))
            set_now = ConfigValue(change.value, ConfigSource.DYNAMIC_BROKER)
            if isinstance(self.denied.get(broker), Permanent):
                raise self.denied[broker]
            if broker not in self.denied:
                self.values[broker] = set_now if change.op is ConfigOp.SET else UNSET
        return {broker: self.denied.get(broker) for broker in changes}

    async def save(self, run):
        if self.save_refusal:
            raise self.save_refusal
        self.saves_until_failure -= 1
        if self.saves_until_failure == -1:
            raise self.failure
        self.happened.append(("record", run.cordoned))


def body(*, deleting=False, decommission=(4, 5)):
    metadata = {"name": "r", "namespace": "kafka", "uid": "u"}
    if deleting:
        metadata["deletionTimestamp"] = NOON.isoformat()
    spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "brokers": {"decommission": list(decommission)}}
    return {"metadata": metadata, "spec": spec}


def rebalance(cordoned=(), **spec):
    mine = Rebalance.of(body(**spec))
    plan = Plan((), Certificate(0, optimal=True))
    run = Run("u", "kafka", "r", "c", "run", mine.desired.planning_hash, plan.hash, NOON, cordoned=tuple(cordoned))
    return recorded(mine, run=run, loaded_run=loaded_run_of(run, plan, "ref", {}))


def cordons(cluster):
    return Cordons(cluster, Stores(None, None, cluster), StoppedClock())
