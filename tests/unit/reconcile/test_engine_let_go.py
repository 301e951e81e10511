"""A run that is let go hands its origins over to the resource that continues, also if that is not known yet."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.reconcile.renamed_resources import BEFORE, SPEC, Renamed, renamed_half_way

from kafka_rebalance.api.v1alpha1 import LET_GO_ANNOTATION, REBALANCES, UNDO_ANNOTATION
from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.run import RunOutcome


async def away():
    raise Transient("KafkaUnreachable", "no broker answers")


class LetGo(Renamed):
    """``r`` has copies in flight that cannot be cancelled, and ``new`` names it and waits for an approval."""

    async def let_go(self):
        self.order(LET_GO_ANNOTATION, "true")
        await self.until_true(lambda: not self.exists("r"))

    async def down_meanwhile(self):
        self.delete()
        for _ in range(4):
            await self.round()
        self.kube.resources[REBALANCES, "kafka", "r"]["metadata"]["annotations"] = {LET_GO_ANNOTATION: "true"}
        self.restart()
        await self.until_true(lambda: not self.exists("r"))

    async def before_the_deletion(self):
        self.order(LET_GO_ANNOTATION, "true")
        self.delete()
        await self.until_true(lambda: not self.exists("r"))

    async def killed_before_the_end_is_written(self):
        self.delete()
        for _ in range(4):
            await self.round()
        update = self.kube.replace_config_map

        async def killed(*_given, **_more):
            raise Transient("ApiServerUnreachable", "killed")

        self.kube.replace_config_map = killed
        self.order(LET_GO_ANNOTATION, "true")
        await self.round()
        self.kube.replace_config_map = update
        self.restart()
        await self.until_true(lambda: not self.exists("r"))

    async def at_the_timeout_without_kafka(self):
        """The operator starts after it."""
        self.edit(rollback={"timeout": "10m"})
        self.delete()
        await self.round()
        describe, self.kafka.describe_cluster = self.kafka.describe_cluster, away
        self.clock.at += timedelta(minutes=13)
        self.restart()
        await self.until_true(lambda: not self.exists("r"))
        self.kafka.describe_cluster = describe

    async def without_kafka(self):
        """The operator starts after it was ordered."""
        self.delete()
        await self.round()
        self.kube.resources[REBALANCES, "kafka", "r"]["metadata"]["annotations"] = {LET_GO_ANNOTATION: "true"}
        describe, self.kafka.describe_cluster = self.kafka.describe_cluster, away
        self.restart()
        await self.round()
        assert not self.exists("r")
        self.kafka.describe_cluster = describe


HOW = (
    "down_meanwhile",
    "before_the_deletion",
    "killed_before_the_end_is_written",
    "at_the_timeout_without_kafka",
    "without_kafka",
)


async def half_way(**heir):
    operator = await renamed_half_way()
    operator.__class__ = LetGo
    operator.apply_another(**SPEC, **heir, approval={"policy": "Manual"})
    await operator.until_true(lambda: operator.state_of() in {"AwaitingApproval", "Queued"})
    flying = {tp: state for tp, state in operator.kafka.states.items() if state.in_flight}
    for tp, state in flying.items():
        operator.kafka.states[tp] = replace(state, isr=frozenset(state.adding), leader=state.adding[0])
    return operator, flying


@pytest.mark.parametrize("how", HOW)
async def test_it_names_the_run(how):
    """What the run has moved, and what it had in flight, is undone with what the other one moves."""
    operator, flying = await half_way(takesOver="r")
    await getattr(operator, how)()
    ended = await RunStore(operator.kube).load("u-1")
    assert (ended.outcome, ended.successor) == (RunOutcome.ABANDONED, "u-new")
    kafka = operator.kafka
    kafka.states |= flying
    kafka.arrive()
    operator.see(operator.kube.edit(REBALANCES, "kafka", "new", approval={"policy": "Automatic"}))
    kafka.slow = set()
    await operator.until_true(lambda: operator.state_of() == "Succeeded")
    assert {frozenset(held) for held in kafka.lists("t")} == {frozenset({4, 5, 6})}
    operator.order_another(UNDO_ANNOTATION, (await RunStore(operator.kube).load("u-new")).plan_hash)
    await operator.until_true(lambda: [sorted(held) for held in kafka.lists("t")] == BEFORE)


async def test_nobody_continues():
    """It is let go at once, and nothing is sent for it."""
    operator = await renamed_half_way()
    before = len(operator.kafka.altered)
    operator.order(LET_GO_ANNOTATION, "true")
    operator.delete()
    operator.restart()
    await operator.round()
    assert not operator.exists("r")
    assert len(operator.kafka.altered) == before
    ended = await RunStore(operator.kube).load("u-1")
    assert (ended.outcome, ended.successor) == (RunOutcome.ABANDONED, None)


@pytest.mark.parametrize("seconds", [30, 90])
async def test_the_run_cannot_be_loaded(seconds):
    """A failure that passes soon is waited for. One that does not pass holds up nothing."""
    operator, _ = await half_way(takesOver="r")
    read, plans = operator.kube.get_config_map, {n for n in operator.kube.config_maps if n.startswith("plan-")}

    async def unanswered(name):
        if name in plans and operator.clock.at < until:
            raise Transient("ApiServerUnreachable", "no answer")
        return await read(name)

    operator.order(LET_GO_ANNOTATION, "true")
    operator.delete()
    operator.restart()
    operator.kube.get_config_map, until = unanswered, operator.clock.at + timedelta(seconds=seconds)
    for _ in range(20):
        await operator.round()
    assert operator.exists("r")
    await operator.until_true(lambda: not operator.exists("r"))
    ended = await RunStore(operator.kube).load("u-1")
    assert ended.successor == ("u-new" if seconds == 30 else None)


async def test_the_end_cannot_be_written_and_the_next_attempt_fails():
    """The record is read again after the first failure, and the plan with it."""
    operator, _ = await half_way(takesOver="r")
    write, failures = operator.kube.replace_config_map, []

    async def not_written(name, body):
        if "Abandoned" in str(body) and not failures:
            failures.append("write the end")
            raise Transient("ApiServerUnreachable", "no answer")
        return await write(name, body)

    terminating = operator.kube.terminating

    async def not_known(*given):
        if failures == ["write the end"]:
            failures.append("look at the namespace")
            raise Transient("ApiServerUnreachable", "no answer")
        return await terminating(*given)

    operator.order(LET_GO_ANNOTATION, "true")
    operator.delete()
    operator.restart()
    operator.kube.replace_config_map, operator.kube.terminating = not_written, not_known

    def gone():
        operator.clock.at += timedelta(seconds=4)  # the namespace is looked at again
        return not operator.exists("r")

    await operator.until_true(gone)
    assert failures == ["write the end", "look at the namespace"]
    assert (await RunStore(operator.kube).load("u-1")).successor == "u-new"


@pytest.mark.parametrize("policy", ["Rollback", "Abandon"])
async def test_the_policy_says_so(policy):
    """With the policy Abandon, no other resource takes the run over, even if it names it."""
    operator, _ = await half_way(takesOver="r")
    operator.edit(deletionPolicy=policy)
    await operator.before_the_deletion()
    ended = await RunStore(operator.kube).load("u-1")
    assert ended.successor == ("u-new" if policy == "Rollback" else None)
