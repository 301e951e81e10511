"""A run that has given up its place in the queue, after a restart: what others copy stays, and its own does not."""

from dataclasses import replace

import pytest
from tests.fakes.configs_in_memory import Configs
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.unit.reconcile.renamed_resources import Renamed

from kafka_rebalance.api.v1alpha1 import REBALANCES, UNDO_ANNOTATION
from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.direction import at_rest

OLD, NEW, ALL = {1, 2, 3}, {4, 5, 6}, set(range(1, 7))
NEW_ONE = REBALANCES, "other", "new"
RATES = {"leaderRate": "10Mi", "followerRate": "10Mi"}
FIRST = {"throttle": RATES, "brokers": {"include": [4, 5, 6]}, "execution": {"parallelPartitionCount": 1}}
SECOND = {"throttle": RATES, "execution": {"parallelPartitionCount": 8, "maxUnhealthy": 100}}
ONLY_T = SECOND | {"topics": {"include": ["t"]}, "brokers": {"include": [2, 3, 5, 6]}}
CHANGES = {"a broker less": {"decommission": [4]}, "others": {"include": [2, 3, 5, 6]}}


def too_large(operator):
    operator.edit(**FIRST, rollback={"maxData": "1"})
    operator.delete()


def suspended(operator):
    operator.edit(**FIRST | {"execution": {"parallelPartitionCount": 1, "suspend": True}})


def suspended_and_deleted(operator):
    suspended(operator)
    operator.delete()


async def gives_way(holds, brokers):
    """``r`` is at rest half-way, and ``new`` copies some of the same partitions."""
    kafka = KafkaInMemory(ALL, t=[[1, 2, 3]] * 8)
    operator = Renamed(kafka)
    operator.apply(**FIRST)
    await operator.until_true(lambda: sum(set(held) == NEW for held in kafka.lists("t")) >= 5)
    holds(operator)
    await operator.until("RollbackTooLarge", "Suspended", "RollingBack")
    await operator.until_true(lambda: at_rest(operator.rebalance))
    operator.apply_in("other", "new", **SECOND, brokers=CHANGES[brokers])
    kafka.slow = ALL
    await operator.until_true(lambda: len(kafka.flying) >= 5)
    kafka.altered.clear()
    return operator


async def rounds(operator, count):
    for _ in range(count):
        await operator.round()
        assert not unthrottled(operator.kafka)


def unthrottled(kafka):
    """The copies in flight that are in no list of throttled replicas."""
    _, followers = Configs.lists(kafka, "t")
    copies = {f"{tp.partition}:{broker}" for tp, state in kafka.states.items() for broker in state.adding}
    return copies - set(followers or ())


def cancelled(operator):
    return [name for name, to in operator.kafka.altered if to is None]


@pytest.mark.parametrize("brokers", CHANGES)
@pytest.mark.parametrize("holds", [too_large, suspended, suspended_and_deleted])
class TestRunThatGaveWay:
    async def test_cancels_no_copy_of_the_other_run_after_a_restart(self, holds, brokers):
        """Without the places of the queue, it would take them for copies of its own."""
        operator = await gives_way(holds, brokers)
        operator.restart()
        await rounds(operator, 8)
        assert not cancelled(operator)
        assert len(operator.kafka.flying) >= 5

    async def test_the_other_run_goes_on(self, holds, brokers):
        """It keeps its copies, and ends."""
        operator = await gives_way(holds, brokers)
        operator.restart()
        await rounds(operator, 3)
        operator.kafka.arrive()
        await rounds(operator, 60)
        assert operator.state_of("new", "other") == "Succeeded"
        assert not cancelled(operator)

    @pytest.mark.parametrize("store", [RunStore, PlanStore, OriginStore])
    async def test_a_record_of_the_other_run_cannot_be_read_at_once(self, holds, brokers, store, monkeypatch):
        operator = await gives_way(holds, brokers)
        operator.restart()
        load, refused = store.load, []

        async def not_at_once(self, uid, *about):
            if uid == "u-new" and not refused:
                refused.append(uid)
                raise Transient(Reason.API_SERVER_UNREACHABLE, "no answer", 1.0)
            return await load(self, uid, *about)

        monkeypatch.setattr(store, "load", not_at_once)
        await rounds(operator, 8)
        assert refused
        assert not cancelled(operator)

    async def test_the_other_resource_joins_a_round_later(self, holds, brokers):
        """For example because the client of its KafkaConnection connects later."""
        operator = await gives_way(holds, brokers)
        operator.restart()
        late = operator.engine.rebalances.pop("u-new")
        await operator.round()
        operator.engine.rebalances["u-new"] = late
        await rounds(operator, 8)
        assert not cancelled(operator)


@pytest.mark.parametrize("brokers", CHANGES)
async def test_one_that_may_go_on_by_now(brokers):
    """It is older, so that it comes first after a restart, before the copies of the other one have ended."""
    operator = await gives_way(suspended, brokers)
    operator.edit(**FIRST)
    await rounds(operator, 2)
    operator.restart()
    await rounds(operator, 8)
    assert not cancelled(operator)
    operator.kafka.arrive()
    await operator.until("Succeeded")


@pytest.mark.parametrize("later", [0, 2])
@pytest.mark.parametrize("brokers", CHANGES)
@pytest.mark.parametrize("holds", [too_large, suspended_and_deleted])
async def test_replicas_above_the_replication_factor_are_left_to_the_other_run(holds, brokers, later):
    """Its copies have arrived while the operator was down: the run at rest would drop them. It joins ``later``."""
    operator = await gives_way(holds, brokers)
    copied = {tp: state.adding for tp, state in operator.kafka.states.items() if state.adding}
    operator.kafka.arrive()
    operator.restart()
    joins = operator.engine.rebalances.pop("u-new")
    for _ in range(later):
        await operator.round()
    operator.engine.rebalances["u-new"] = joins
    await rounds(operator, 8)
    for tp, adding in copied.items():
        assert set(adding) <= set(operator.kafka.states[tp].replicas)


async def test_one_that_goes_on_before_the_other_resource_joins():
    """It leaves what it finds in flight to the other one, and the throttle on it too."""
    operator = await gives_way(suspended, "a broker less")
    operator.edit(**FIRST)
    operator.restart()
    late = operator.engine.rebalances.pop("u-new")
    await operator.until_true(lambda: operator.run is not None and not operator.run.place_given_up)
    operator.engine.rebalances["u-new"] = late
    await rounds(operator, 8)
    assert not cancelled(operator)
    operator.kafka.slow = set()
    operator.kafka.arrive()
    await operator.until_true(lambda: {operator.state, operator.state_of("new", "other")} == {"Succeeded"})
    assert not cancelled(operator)


@pytest.mark.parametrize("restart", [False, True])
async def test_a_rollback_that_may_go_on_by_now_waits_for_the_other_run(restart):
    """Its limit is raised while the other run copies: it sends nothing before these copies have ended."""
    operator = await gives_way(too_large, "others")
    operator.edit(**FIRST, rollback={"maxData": "1Ti"})
    await rounds(operator, 3)
    if restart:
        operator.restart()
    await rounds(operator, 8)
    assert operator.run.place_given_up
    assert not operator.kafka.altered
    operator.kafka.slow = set()
    operator.kafka.arrive()
    await operator.until_true(lambda: not operator.exists("r"))
    assert not cancelled(operator)


async def test_an_edited_run_is_planned_again_although_others_have_moved_its_partitions():
    """There is nothing of it to revert, and it does not undo the order that others have set."""
    operator = await gives_way(suspended, "others")
    operator.kafka.slow = set()
    operator.kafka.arrive()
    await operator.until_true(lambda: operator.state_of("new", "other") == "Succeeded")
    operator.edit(**FIRST | {"brokers": {"include": [3, 4, 5]}})
    await operator.until("Succeeded")


@pytest.mark.parametrize("rounds_of_new", [1, 5])
@pytest.mark.parametrize("brokers", [[4, 5], [1, 4, 5, 6]])
async def test_one_that_waits_for_its_new_plan(brokers, rounds_of_new):
    """It was edited half-way, and another one goes first. Nothing is left of its old plan, as if that had ended."""
    operator = Renamed(KafkaInMemory(ALL, t=[[1, 2, 3]] * 8))
    operator.apply(**FIRST)
    await operator.until_true(lambda: sum(set(held) == NEW for held in operator.kafka.lists("t")) >= 4)
    operator.apply_in("other", "new", **SECOND, brokers={"include": [2, 3, 5, 6]})
    await operator.round()
    operator.edit(**FIRST | {"brokers": {"include": brokers}})
    await operator.until_true(lambda: operator.engine.rebalances["u-new"].memory.planning is not None)
    operator.kafka.slow = ALL
    await operator.until_true(lambda: len(operator.kafka.flying) >= 5)
    await rounds(operator, rounds_of_new)
    operator.kafka.altered.clear()
    operator.restart()
    await rounds(operator, 8)
    assert not cancelled(operator)


@pytest.mark.parametrize("how", ["hidden", "failing"])
async def test_one_with_a_topic_that_cannot_be_read(how):
    """It is at rest for the queue, so it has to be recorded too."""
    kafka = KafkaInMemory(ALL, t=[[1, 2, 3]] * 6, u=[[1, 2, 3]] * 2)
    operator = Renamed(kafka)
    operator.apply(**FIRST)
    await operator.until_true(lambda: sum(set(held) == NEW for held in kafka.lists("t")) >= 4)
    await operator.until_true(lambda: any(set(held) == NEW for held in kafka.lists("u")))
    setattr(kafka, how, {"u"})
    too_large(operator)
    await operator.until("RollbackTooLarge")
    kafka.slow = ALL
    operator.apply_in("other", "new", **ONLY_T)
    await operator.until_true(lambda: sum(str(tp).startswith("t-") for tp in kafka.flying) >= 3)
    kafka.altered.clear()
    operator.restart()
    await rounds(operator, 8)
    assert not cancelled(operator)


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(("policy", "unread"), [("Revert", "hidden"), ("Revert", "failing"), ("Rollback", "hidden")])
async def test_its_own_copies_that_cannot_be_cancelled_at_once(policy, unread, restart):
    """Their topic cannot be read for a while, so it is at rest for the queue. They are cancelled after that."""
    kafka = KafkaInMemory(ALL, t=[[1, 2, 3]] * 4)
    operator = Renamed(kafka)
    first = FIRST | {"execution": {"parallelPartitionCount": 2, "maxUnhealthy": 100}}
    operator.apply(**first)
    await operator.until_true(lambda: sum(set(held) == NEW for held in kafka.lists("t")) >= 2)
    kafka.slow = ALL
    await operator.until_true(lambda: len(kafka.flying) >= 2)
    await rounds(operator, 3)
    flying = set(kafka.flying)
    setattr(kafka, unread, {"t"})
    if restart:
        operator.restart()
    operator.edit(**first | {"execution": first["execution"] | {"suspend": True}, "deletionPolicy": policy})
    operator.delete()
    for _ in range(30):
        await operator.round()
    setattr(kafka, unread, set())
    await operator.until_true(lambda: set(cancelled(operator)) == flying)


class Lagging(KafkaInMemory):
    """A broker shows the partitions as they were, while ``outdated`` is set."""

    outdated = None

    async def describe_partitions(self, topics=None, listed=None):
        now, self.states = self.states, self.outdated or self.states
        try:
            return await super().describe_partitions(topics, listed)
        finally:
            self.states = now


@pytest.mark.parametrize("outdated_rounds", [1, 2])
async def test_an_outdated_reading_does_not_show_that_it_is_at_rest(outdated_rounds):
    """It is suspended after a copy has completed, and drops the replica above the replication factor all the same."""
    operator = Renamed(kafka := Lagging(ALL, t=[[1, 2, 3]] * 4))
    operator.apply(**FIRST | {"execution": {"parallelPartitionCount": 2, "maxUnhealthy": 100}})
    while not any(len(held) > 3 for held in kafka.lists("t")):
        before = dict(kafka.states)
        await operator.round()
    kafka.outdated = before
    suspended(operator)
    await rounds(operator, outdated_rounds)
    kafka.outdated = None
    await operator.until_true(lambda: operator.run.place_given_up)
    assert all(len(held) == 3 for held in kafka.lists("t"))


async def test_the_copies_of_one_that_goes_on_are_its_own():
    """It is deleted, and cancels them after a restart."""
    operator = Renamed(KafkaInMemory(ALL, t=[[1, 2, 3]] * 8))
    operator.apply(**FIRST)
    await operator.until_true(lambda: sum(set(held) == NEW for held in operator.kafka.lists("t")) >= 5)
    suspended(operator)
    await operator.until_true(lambda: operator.run.place_given_up)
    operator.kafka.slow = ALL
    operator.edit(**FIRST)
    await operator.until_true(lambda: operator.kafka.flying)
    flying = len(operator.kafka.flying)
    operator.restart()
    operator.delete()
    await operator.until_true(lambda: len(cancelled(operator)) == flying)


@pytest.mark.parametrize("brokers", [{"include": [2, 3, 5, 6]}, {"include": [1, 2, 3, 5]}])
async def test_turns_alternate(brokers):
    """The run that began first has the second turn. The rollback of the other one waits for a decision."""
    operator = Renamed(KafkaInMemory(ALL, t=[[1, 2, 3]] * 8))
    operator.apply(**FIRST)
    await operator.until_true(lambda: sum(set(held) == NEW for held in operator.kafka.lists("t")) >= 2)
    suspended(operator)
    await operator.until_true(lambda: operator.run.place_given_up)
    second = SECOND | {"brokers": brokers, "rollback": {"maxData": "1"}}
    operator.apply_in("other", "new", **second | {"execution": {"parallelPartitionCount": 2, "maxUnhealthy": 100}})
    await operator.until_true(lambda: len(operator.engine.rebalances["u-new"].record.origins) >= 4)
    operator.see(operator.kube.delete(*NEW_ONE, operator.clock.at.isoformat()))
    await operator.until_true(lambda: operator.state_of("new", "other") == "RollbackTooLarge")
    operator.kafka.slow = ALL
    operator.edit(**FIRST | {"execution": {"parallelPartitionCount": 3, "maxUnhealthy": 100}})
    await operator.until_true(lambda: len(operator.kafka.flying) >= 3)
    operator.kafka.altered.clear()
    operator.restart()
    await rounds(operator, 8)
    assert not cancelled(operator)
    assert len(operator.kafka.flying) >= 3


@pytest.mark.parametrize("brokers", CHANGES)
async def test_an_undo_waits_for_its_place(brokers, monkeypatch):
    """Another run copies its partitions when it is opened again. It may be killed right after that."""
    operator = Renamed(KafkaInMemory(ALL, t=[[1, 2, 3]] * 8))
    operator.apply(**FIRST)
    await operator.until("Succeeded")
    operator.apply_in("other", "new", **SECOND, brokers=CHANGES[brokers])
    operator.kafka.slow = ALL
    await operator.until_true(lambda: len(operator.kafka.flying) >= 3)
    operator.kafka.altered.clear()
    save, saved = RunStore.save, []

    async def noted(self, run, *check):
        saved.append(run)
        await save(self, run, *check)

    monkeypatch.setattr(RunStore, "save", noted)
    operator.order(UNDO_ANNOTATION, operator.run.plan_hash)
    await operator.round()
    assert next(run for run in saved if run.undo).place_given_up
    operator.restart()
    for _ in range(8):
        await rounds(operator, 1)
        assert operator.engine.rebalances["u-new"].assessment.queue.place.runs
    assert not cancelled(operator)


async def with_a_copy_that_cannot_be_cancelled(**spec):
    """``r`` has moved the topic t. Without its copy of u in flight, fewer than min.insync.replicas would be in sync."""
    kafka = KafkaInMemory(ALL, t=[[1, 2, 3]] * 6, u=[[1, 2, 3]] * 2)
    operator = Renamed(kafka)
    operator.apply(**FIRST, **spec)
    await operator.until_true(lambda: sum(set(held) == NEW for held in kafka.lists("t")) == 6)
    kafka.slow, kafka.values["u", "min.insync.replicas"] = ALL, "2"
    await operator.until_true(lambda: kafka.flying)
    await operator.round()
    tp, state = next((tp, state) for tp, state in kafka.states.items() if state.in_flight)
    kafka.states[tp] = replace(state, isr=frozenset({state.leader, *state.adding}))
    return operator, tp


async def test_a_drop_in_a_topic_that_is_unsettled():
    """It says nothing of the other topics: what moves there is still of others after a restart."""
    operator, tp = await with_a_copy_that_cannot_be_cancelled()
    too_large(operator)
    await operator.until_true(lambda: operator.run.place_given_up)
    operator.apply_in("other", "new", **ONLY_T)
    kafka = operator.kafka
    await operator.until_true(lambda: sum(name.startswith("t-") for name in kafka.flying) >= 3)
    kafka.altered.clear()
    replicas = kafka.states[tp].replicas
    kafka.states[tp] = replace(kafka.states[tp], isr=frozenset(replicas), adding=(), removing=())
    await operator.until_true(lambda: len(kafka.states[tp].replicas) < len(replicas))
    operator.restart()
    for _ in range(8):
        await operator.round()
    assert not cancelled(operator)


async def test_a_revert_that_cannot_end_yet():
    """Others move what it leaves in place when it has ended: a restart would forget that it is left in place."""
    operator, tp = await with_a_copy_that_cannot_be_cancelled(deletionPolicy="Revert")
    operator.delete()
    operator.apply_in("other", "new", **ONLY_T)
    for _ in range(12):
        await operator.round()
    assert operator.state_of("new", "other") == "Queued"
    kafka = operator.kafka
    kafka.states[tp] = replace(kafka.states[tp], isr=frozenset(kafka.states[tp].replicas))
    await operator.until_true(lambda: cancelled(operator) == [str(tp)])
    kafka.slow = set()
    await operator.until_true(lambda: operator.state_of("new", "other") == "Succeeded")
    assert cancelled(operator) == [str(tp)]
