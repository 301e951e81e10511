"""How much of each resource the brokers have: disks as they are, the rest as configured."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.api.connection_resource import Capacity
from kafka_rebalance.api.validation import validate
from kafka_rebalance.kafka.ports import Answers, LogDir
from kafka_rebalance.model.topology import replicas_of
from kafka_rebalance.reconcile.decide.broker_capacities import broker_capacities
from kafka_rebalance.reconcile.runs import plan_request

ONE, TWO = replicas_of(1, 2)
CONFIGURED = validate(Capacity, {"default": {"disk": 500, "networkIn": 10, "networkOut": 20}}, "")


class TestBrokerCapacities:
    def test_disks_as_they_are(self):
        """The reported size of all log dirs overrides the configured size, unless a log dir reports none."""
        dirs = {ONE: [LogDir("/a", total_bytes=100), LogDir("/b", total_bytes=200)]}
        found = broker_capacities(CONFIGURED, [ONE, TWO], dirs)
        assert (found[ONE]["Disk"], found[TWO]["Disk"]) == (300, 500)
        dirs[ONE] += [LogDir("/c")]
        assert broker_capacities(CONFIGURED, [ONE], dirs)[ONE]["Disk"] == 500

    def test_the_network(self):
        """What producers write to leaders comes in over the same network as what followers fetch."""
        assert broker_capacities(CONFIGURED, [ONE], {})[ONE] == {
            "Disk": 500,
            "BytesIn": 10,
            "LeaderBytesIn": 10,
            "BytesOut": 20,
        }

    @pytest.mark.parametrize("dirs", [{}, {ONE: []}, {ONE: [LogDir("/a")]}])
    def test_nothing_is_known(self, dirs):
        """An unknown capacity is absent: zero would be a broker that can hold nothing."""
        assert broker_capacities(None, [ONE], dirs) == {ONE: {}}


class TestOperator:
    async def test_the_planner_gets_them(self, monkeypatch):
        """The capacities are those at planning, since both disks and the KafkaConnection may change."""
        asked, run = [], plan_request.run_planner

        async def run_planner(request, *turns):
            asked.append(request.capacities)
            return await run(request, *turns)

        async def log_dirs(brokers):
            return Answers({b: (LogDir("/data", total_bytes=100 * b),) for b in brokers})

        monkeypatch.setattr(plan_request, "run_planner", run_planner)
        kafka = KafkaInMemory([1, 2], t=[[1], [2]])
        kafka.log_dirs = log_dirs
        operator = OperatorInMemory(kafka)
        operator.apply()
        operator.capacity = validate(Capacity, {"brokers": [{"ids": [2], "networkOut": 7}]}, "")
        await operator.until("NothingToDo")
        assert asked == [{1: {"Disk": 100}, 2: {"Disk": 200, "BytesOut": 7}}]
