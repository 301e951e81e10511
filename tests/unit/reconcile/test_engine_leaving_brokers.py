"""A broker that one rebalance empties or has drained is not filled by plans of others, also not by older ones."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.unit.reconcile.renamed_resources import FAST, Renamed

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.errors import Transient
from kafka_rebalance.model.topology import BrokerId

ONE = {"parallelPartitionCount": 1}
EVERY_ONE = {"include": [".*"]}
"""Selects topics, so only the proof of the end counts: nobody knows before that all of them leave the broker."""


class Older(Renamed):
    """``r`` has a plan that fills broker 2, and waits behind ``new``, which drains that broker."""

    def __init__(self, **brokers):
        super().__init__(KafkaInMemory(range(1, 7), t=[[1, 3, 4]] * 8, u=[[1, 2, 3]] * 2))
        self.brokers = brokers

    async def until_queued(self, topics):
        self.apply(topics={"include": ["t"]}, brokers=self.brokers, execution=ONE, throttle=FAST)
        await self.until_true(lambda: self.kafka.altered)
        assert any(2 in p.target for p in self.rebalance.record.loaded_run.plan.partitions)
        drain = {"brokers": {"decommission": [2]}, "strategy": "ForcedMovesOnly", "throttle": FAST}
        self.apply_another(**drain, topics=topics, priority=9)
        await self.until_true(lambda: self.state_of() == "Rebalancing")

    async def until_drained(self):
        await self.until_queued(EVERY_ONE)
        await self.until_true(lambda: self.state_of() == "Succeeded")
        assert self.drained["status"] == "True"
        assert self.run.open

    @property
    def on_broker_2(self):
        return sum(2 in held for held in self.kafka.lists("t") + self.kafka.lists("u"))

    @property
    def drained(self):
        return self.condition_of("Drained")

    def condition_of(self, kind, name="new"):
        status = self.kube.resources[REBALANCES, "kafka", name]["status"]
        return next(c for c in status["conditions"] if c["type"] == kind)


@pytest.mark.parametrize("restarted", [False, True])
async def test_an_older_plan_is_made_again_without_a_drained_broker(restarted):
    """Only the status of the other one tells that the broker is drained, so a restart does not change that."""
    operator = Older(decommission=[1])
    await operator.until_drained()
    if restarted:
        operator.restart()
    await operator.until("Succeeded")
    assert operator.on_broker_2 == 0
    assert operator.drained["status"] == "True"
    assert not any(1 in held for held in operator.kafka.lists("t"))


@pytest.mark.parametrize("restarted", [False, True])
async def test_an_older_plan_is_made_again_while_the_broker_is_drained(restarted):
    """It does not hold up the other one with new replicas there. It is made again once."""
    operator = Older(decommission=[1])
    await operator.until_queued({})
    if restarted:
        operator.restart()
    plans, held = [operator.run.plan_hash] if operator.run else [], []
    for _ in range(60):
        await operator.round()
        plans += [operator.run.plan_hash] if operator.run.plan_hash not in plans else []
        held.append(operator.on_broker_2)
    assert held == sorted(held, reverse=True)
    assert (operator.state, operator.state_of(), operator.on_broker_2) == ("Succeeded", "Succeeded", 0)
    assert operator.drained["status"] == "True"
    assert len(plans) == 2


async def test_the_status_says_why_the_broker_gets_nothing():
    operator = Older(decommission=[1])
    await operator.until_drained()
    await operator.until("Rebalancing")
    warning = operator.condition("SpecWarning")
    assert warning["reason"] == "BrokerLeaves"
    assert "kafka/new has drained broker 2" in warning["message"]


async def test_a_plan_for_the_broker_by_its_id_goes_on():
    """The spec names it. The other one says that its broker is not drained any more."""
    operator = Older(include=[2, 5, 6])
    await operator.until_drained()
    await operator.until_true(lambda: operator.on_broker_2)
    assert (operator.drained["status"], operator.drained["reason"]) == ("False", "NotDrained")
    assert operator.drained["message"] == "kafka/r moves replicas to brokers 2 again"
    await operator.until("Succeeded")
    assert operator.on_broker_2
    operator.restart()
    await operator.round()
    assert operator.drained["status"] == "False"


async def test_a_rollback_that_fills_the_broker_again():
    """Nobody can plan that again."""
    operator = Renamed(KafkaInMemory(range(1, 7), t=[[2, 3, 4]] * 4))
    operator.apply(brokers={"include": [3, 4, 5]}, throttle=FAST, execution={**ONE, "suspend": False})
    await operator.until_true(lambda: [2 in held for held in operator.kafka.lists("t")].count(True) == 2)
    operator.edit(execution={**ONE, "suspend": True})
    operator.apply_another(brokers={"decommission": [2]}, strategy="ForcedMovesOnly", throttle=FAST)
    await operator.until_true(lambda: operator.state_of() in {"Succeeded", "NothingToDo"})
    operator.edit(execution={**ONE, "suspend": False})
    operator.delete()
    await operator.until_true(lambda: any(2 in held for held in operator.kafka.lists("t")))
    status = operator.kube.resources[REBALANCES, "kafka", "new"]["status"]
    assert next(c["status"] for c in status["conditions"] if c["type"] == "Drained") == "False"


async def test_a_broker_that_is_in_use_again_is_not_avoided():
    """Kafka has placed a topic on it, or its id is that of another server now: a new plan uses it as any other."""
    operator = Older()
    operator.apply_another(brokers={"decommission": [2]}, throttle=FAST)
    await operator.until_true(lambda: operator.state_of() == "Succeeded")
    operator.kafka.create("v", [[2, 3, 4]])
    operator.apply(throttle=FAST)
    await operator.until("Succeeded")
    assert operator.on_broker_2


async def test_a_topic_that_was_created_on_the_broker():
    """Nobody can say any more that it is empty. One reading does not show that: it may be of an earlier time."""
    operator = Older()
    operator.apply_another(brokers={"decommission": [2]}, throttle=FAST)
    await operator.until_true(lambda: operator.state_of() == "Succeeded")
    operator.kafka.slow = {3, 4, 5, 6}  # something moves as long as that
    operator.apply(topics={"include": ["t"]}, brokers={"decommission": [1]}, throttle=FAST, execution=ONE)
    await operator.until_true(lambda: operator.kafka.flying)
    operator.kafka.create("v", [[2, 3, 4]])
    for _ in range(6):  # everything is read every 5 s
        await operator.round()
    assert operator.drained["status"] == "True"
    await operator.until_true(lambda: operator.drained["status"] == "False")
    assert operator.drained["message"] == "brokers 2 hold replicas again, for example of v-0"


async def test_a_new_plan_leaves_it_empty_until_the_other_one_is_deleted():
    operator = Older()
    operator.apply_another(brokers={"decommission": [2]}, throttle=FAST)
    await operator.until_true(lambda: operator.state_of() == "Succeeded")
    operator.apply(throttle=FAST)
    await operator.until("Succeeded", "NothingToDo")
    assert operator.on_broker_2 == 0
    operator.delete_another()
    await operator.until_true(lambda: not operator.exists("new"))
    operator.edit(topics={"exclude": ["none"]})
    await operator.until("Rebalancing")
    await operator.until("Succeeded")
    assert operator.on_broker_2


async def test_a_resource_that_was_created_later_fills_it():
    """It is the newer order. The status of the other one says so."""
    operator = Older()
    operator.apply_another(brokers={"decommission": [2]}, throttle=FAST)
    await operator.until_true(lambda: operator.state_of() == "Succeeded")
    await operator.round()
    operator.apply_another("later", throttle=FAST)
    await operator.until_true(lambda: operator.state_of("later") == "Succeeded")
    assert operator.on_broker_2
    assert operator.drained["status"] == "False"


async def test_what_fills_it_is_said_before_it_is_sent():
    """A kill right after the call would leave `Drained` True: nothing else is sent there."""
    operator = Older()
    operator.apply_another(brokers={"decommission": [2]}, throttle=FAST)
    await operator.until_true(lambda: operator.state_of() == "Succeeded")
    said, alter = [], operator.kafka.alter_reassignments

    async def altered(orders, *args, **options):
        said.extend(operator.drained["status"] for to in orders.values() if to and 2 in to)
        return await alter(orders, *args, **options)

    operator.kafka.alter_reassignments = altered
    operator.apply_another("later", throttle=FAST)
    await operator.until_true(lambda: operator.state_of("later") == "Succeeded")
    assert operator.on_broker_2
    assert set(said) == {"False"}


class TestStatusesThatCannotBeWritten:
    """Users can make each write to an object of theirs fail, as often as they like."""

    async def filled(self, **later):
        """``new`` has drained broker 2, and its status says so for ever. ``later`` fills the broker."""
        operator = Older()
        operator.apply_another(brokers={"decommission": [2]}, throttle=FAST)
        await operator.until_true(lambda: operator.state_of() == "Succeeded")
        await operator.round()
        operator.see(operator.kube.resources[REBALANCES, "kafka", "new"])
        write = operator.kube.patch_status

        async def failing(plural, namespace, name, patch):
            if name == "new":
                raise Transient("ApiServerUnreachable", "no answer")
            return await write(plural, namespace, name, patch)

        operator.kube.patch_status = failing
        operator.apply_another("later", throttle=FAST, execution=ONE, **later)
        return operator

    async def test_the_broker_is_filled(self):
        operator = await self.filled()
        for _ in range(60):
            await operator.round()
            operator.clock.at += timedelta(seconds=6)  # everything is read in each round
            operator.kafka.arrive()
        assert operator.state_of("later") == "Succeeded"
        assert operator.on_broker_2
        assert operator.drained["status"] == "True"

    async def test_what_goes_elsewhere_does_not_wait(self):
        operator = await self.filled(topics={"include": ["u"]}, brokers={"include": [2]}, replicationFactor=1)
        operator.apply_another("elsewhere", throttle=FAST, topics={"include": ["t"]}, brokers={"include": [4, 5, 6]})
        noted = operator.engine._rounds._drained

        async def held(*_):
            return {BrokerId(2)}

        noted.before_filling = held
        await operator.until_true(lambda: operator.state_of("elsewhere") == "Succeeded")
        assert operator.on_broker_2 == 0

    async def test_a_list_waits_once_a_minute(self):
        """Others may drain the broker anew in each round."""
        operator = await self.filled()
        drained, held = operator.engine._rounds._drained, []
        ask = drained.before_filling

        async def asked(running, orders, cluster):
            for rebalance in drained._drained:
                rebalance.assessment = replace(rebalance.assessment, drain=None)
            held.append(await ask(running, orders, cluster))
            return held[-1]

        drained.before_filling = asked
        await operator.until_true(lambda: operator.on_broker_2)
        assert held.count({BrokerId(2)}) == 1


async def test_calls_between_log_dirs_do_not_hold_up_a_proof():
    """They put no replica on another broker, and a broker that does not answer is asked again and again."""
    operator = Older()
    operator.apply_another(brokers={"decommission": [2]}, throttle=FAST)
    await operator.round()
    mine = operator.engine._rounds
    operator.apply(topics={"include": ["none"]}, throttle=FAST)
    await operator.round()
    other, new = (next(r for r in mine.rebalances.values() if r.desired.metadata.name == n) for n in ("r", "new"))
    mine._lifecycle.note_unanswered(other, between_log_dirs=True)
    assert not mine._drained.may_be_filled_late(new, mine.rebalances.values())
    mine._lifecycle.note_unanswered(other)
    assert mine._drained.may_be_filled_late(new, mine.rebalances.values())


async def test_a_call_that_fills_it_while_it_is_proved_empty():
    """Nobody has answered the call, and Kafka carries it out later."""
    operator = Renamed(KafkaInMemory(range(1, 5), t=[[1, 3], [3, 1]], u=[[3, 2]]))
    spec = {"strategy": "ForcedMovesOnly", "throttle": FAST}
    several = {"parallelPartitionCount": 100}
    named = {"topics": {"include": ["t"]}, "replicationFactor": 3, "brokers": {"include": [1, 2, 3]}}
    operator.apply(**spec, **named, execution={**several, "suspend": True})
    operator.apply_another(**spec, topics=EVERY_ONE, brokers={"decommission": [2]})
    alter, late = operator.kafka.alter_reassignments, []

    async def unanswered(orders, *args, **options):
        if not late and any(tp.topic == "t" for tp in orders):
            late.append((orders, operator.clock.at + timedelta(seconds=3)))
            raise Transient("KafkaUnreachable", "no answer")
        return await alter(orders, *args, **options)

    operator.kafka.alter_reassignments = unanswered
    new = next(r for r in operator.engine.rebalances.values() if r.desired.metadata.name == "new")
    await operator.until_true(lambda: new.memory.empty_since is not None)
    operator.edit(execution={**several, "suspend": False})
    await operator.until_true(lambda: late and operator.clock.at >= late[0][1])
    await alter(late[0][0])
    for _ in range(60):
        await operator.round()
    filled = any(2 in held for held in operator.kafka.lists("t"))
    assert said_of(operator) == ("False" if filled else "True")


def said_of(operator):
    conditions = operator.kube.resources[REBALANCES, "kafka", "new"]["status"]["conditions"]
    return next(c["status"] for c in conditions if c["type"] == "Drained")
