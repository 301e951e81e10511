"""A rollback that was asked for is carried out, unless a resource takes over that is the same under another name."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.unit.reconcile.renamed_resources import BEFORE, FAST, SPEC, Renamed, arrived, renamed_half_way

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.reconcile.decide import teardown
from kafka_rebalance.reconcile.runs import plan_maker


@pytest.fixture
async def half_moved():
    return await renamed_half_way()


class TestRename:
    @pytest.mark.parametrize("first", ["applied", "deleted"])
    async def test_goes_on(self, half_moved, first):
        """Nothing is moved back; the deletion of the new one leads to before the old one."""
        operator, kafka = half_moved, half_moved.kafka
        there = arrived(kafka)
        if first == "applied":
            operator.apply_another(**SPEC)
            await operator.round()
        operator.delete()
        if first == "deleted":
            operator.apply_another(**SPEC)
        sent = len(kafka.altered)
        await operator.until_true(lambda: not operator.exists("r"))
        kafka.arrive()
        await operator.until_true(lambda: operator.state_of() == "Succeeded")
        assert operator.ends == ["TakenOver"]
        assert not {f"t-{n}" for n in there} & {tp for tp, to in kafka.altered[sent:]}
        operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
        assert all(set(held) == {4, 5, 6} for held in kafka.lists("t"))  # it had succeeded

    async def test_goes_on_where_planning_has_to_be_repeated(self, half_moved, monkeypatch):
        """Metadata were stale at the first attempt."""
        operator = half_moved
        make_plan, stale = plan_maker.make_plan, [Transient("MetadataStale", "reading again", 1.0)]

        async def stale_once(*arguments):
            if stale:
                raise stale.pop()
            return await make_plan(*arguments)

        monkeypatch.setattr(plan_maker, "make_plan", stale_once)
        operator.delete()
        operator.apply_another(**SPEC)
        await operator.until_true(lambda: not operator.exists("r"))
        assert operator.ends == ["TakenOver"]

    async def test_deleting_the_new_one_leads_to_before_the_old_one(self, half_moved):
        """While it runs, or before it has a plan of its own."""
        operator, kafka = half_moved, half_moved.kafka
        operator.delete()
        operator.apply_another(**SPEC)
        await operator.until_true(lambda: not operator.exists("r"))
        kafka.arrive()
        await operator.until_true(lambda: operator.state_of() == "Rebalancing")
        operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
        assert operator.ends == ["TakenOver", "RolledBack"]
        assert kafka.lists("t") == BEFORE

    @pytest.mark.parametrize("then", ["goes on", "deleted"])
    async def test_killed_when_the_old_run_was_handed_over(self, half_moved, then):
        """The plan that the new one had made before is not carried out without the origins that it inherits."""
        operator, kafka = half_moved, half_moved.kafka
        operator.delete()
        operator.apply_another(**SPEC)
        await operator.until_true(lambda: not operator.exists("r"))
        operator.restart()
        kafka.arrive()
        if then == "goes on":
            await operator.until_true(lambda: operator.state_of() == "Rebalancing")
        operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
        assert kafka.lists("t") == BEFORE

    @pytest.mark.parametrize("then", ["goes on", "deleted"])
    async def test_no_answer_when_the_run_was_stored(self, half_moved, monkeypatch, then):
        """It is not begun a second time: that one would inherit nothing, and nothing would be moved back."""
        operator, kafka, lost = half_moved, half_moved.kafka, []
        operator.delete()
        operator.apply_another(**SPEC)
        await operator.until_true(lambda: not operator.exists("r"))
        save = RunStore.save

        async def without_answer(store, run, *check):
            await save(store, run, *check)
            if run.uid == "u-new" and not lost:
                lost.append(run)
                raise Transient("ApiServerUnreachable", "no answer")

        monkeypatch.setattr(RunStore, "save", without_answer)
        if then == "goes on":
            await operator.until_true(lambda: bool(lost))
            kafka.arrive()
            await operator.until_true(lambda: operator.state_of() == "Rebalancing")
        operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
        assert lost
        assert kafka.lists("t") == BEFORE


class TestOthers:
    async def four_hours_into_the_rollback(self, operator):
        operator.kafka.slow = {1, 2, 3}
        operator.delete()
        for _ in range(8):
            await operator.round()
        operator.clock.at += timedelta(hours=4)

    async def test_hours_later_nobody_takes_over(self, half_moved):
        """The nightly job is applied four hours into the rollback."""
        operator, kafka = half_moved, half_moved.kafka
        await self.four_hours_into_the_rollback(operator)
        operator.apply_another(strategy="PreferredLeaders")
        for _ in range(3):
            await operator.round()
        assert operator.state_of() == "Queued"
        assert operator.exists("r")
        kafka.arrive()
        await operator.until_true(lambda: not operator.exists("r"))
        assert operator.ends == ["RolledBack"]
        assert kafka.lists("t") == BEFORE

    async def test_one_that_plans_something_else(self, half_moved):
        """Created in the same minute, for the same topics: its plan leaves the partitions where a rollback leads to."""
        operator, kafka = half_moved, half_moved.kafka
        operator.delete()
        operator.apply_another(strategy="PreferredLeaders")
        kafka.arrive()
        await operator.until_true(lambda: not operator.exists("r"))
        assert operator.ends == ["RolledBack"]
        assert [sorted(held) for held in kafka.lists("t")] == BEFORE

    async def test_one_that_names_it(self, half_moved):
        """At any time before the rollback has ended."""
        operator, kafka = half_moved, half_moved.kafka
        await self.four_hours_into_the_rollback(operator)
        operator.apply_another(**SPEC, takesOver="r")
        await operator.until_true(lambda: not operator.exists("r"))
        kafka.arrive()
        await operator.until_true(lambda: operator.state_of() == "Succeeded")
        assert operator.ends == ["TakenOver"]
        assert all(set(held) == {4, 5, 6} for held in kafka.lists("t"))

    async def test_one_that_names_it_and_wants_other_topics(self, half_moved):
        """It begins nothing before it has inherited the origins: its own deletion moves everything back."""
        operator, kafka = half_moved, half_moved.kafka
        kafka.create("u", [[1, 2, 3]] * 2)
        operator.apply_another(**SPEC, topics={"include": ["u"]}, takesOver="r", approval={"policy": "Manual"})
        await operator.until_true(lambda: operator.state_of() == "AwaitingApproval")
        operator.delete()
        operator._see(operator.kube.edit(REBALANCES, "kafka", "new", approval={"policy": "Automatic"}))
        await operator.until_true(lambda: not operator.exists("r"))
        kafka.arrive()
        await operator.until_true(lambda: operator.state_of() == "Rebalancing")
        operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
        assert operator.ends == ["TakenOver", "RolledBack"]
        assert kafka.lists("t") == BEFORE
        assert kafka.lists("u") == [[1, 2, 3]] * 2

    async def test_the_one_that_takes_over_waits_until_the_other_has_ended(self, half_moved):
        """Reassignments in flight cannot be cancelled yet; the new resource has other partitions, and is approved."""
        operator, kafka = half_moved, half_moved.kafka
        kafka.create("u", [[1, 2, 3]] * 2)
        operator.apply_another(**SPEC, topics={"include": ["u"]}, takesOver="r", approval={"policy": "Manual"})
        await operator.until_true(lambda: operator.state_of() == "AwaitingApproval")
        flying = {tp: state for tp, state in kafka.states.items() if state.in_flight}
        for tp, state in flying.items():
            kafka.states[tp] = replace(state, isr=frozenset(state.adding), leader=state.adding[0])
        operator.delete()
        operator._see(operator.kube.edit(REBALANCES, "kafka", "new", approval={"policy": "Automatic"}))
        for _ in range(10):
            await operator.round()
        assert (operator.state_of("r"), operator.state_of()) == ("TakenOver", "Queued")
        assert not any(tp.startswith("u-") for tp, _ in kafka.altered)
        kafka.states |= flying
        await operator.until_true(lambda: not operator.exists("r"))
        assert operator.ends == ["TakenOver"]
        kafka.arrive()
        await operator.until_true(lambda: operator.state_of() == "Succeeded")


class TestMany:
    """The records of a run that was handed over are kept until the new resource begins, which may never happen."""

    @pytest.fixture
    async def taken_over(self):
        """Some runs have been handed over to a resource that never has a plan."""
        operator = Renamed(KafkaInMemory(range(1, 7), t=BEFORE))
        gone = {"configMapRef": {"name": "gone", "key": "k"}}
        operator.apply_another(strategy="Assignment", assignment=gone, takesOver="r", topics={"include": ["u"]})
        for number in range(teardown.MOST_TAKEN_OVER):
            await self.deleted_in_mid_run(operator, number)
            await operator.until_true(lambda: not operator.exists("r"))
        assert (operator.ends, operator.state_of()) == (["TakenOver"], "ConfigMapNotFound")
        return operator

    @staticmethod
    async def deleted_in_mid_run(operator, number):
        """Created again under its name, and deleted when some partitions have arrived."""
        kafka = operator.kafka
        kafka.arrive()
        for partition, held in enumerate(BEFORE):
            kafka.assign("t", partition, *held)
        metadata = {"name": "r", "namespace": "kafka", "uid": f"u-{number}"}
        metadata["creationTimestamp"] = operator.clock.at.isoformat()
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, **SPEC}
        operator._see(operator.kube.create(REBALANCES, {"metadata": metadata, "spec": spec}))
        await operator.until_true(lambda: bool(arrived(kafka)))
        kafka.slow = {1, 2, 3}
        operator.delete()

    @pytest.mark.parametrize("restarted", [False, True])
    async def test_one_that_never_begins_takes_over_a_few(self, taken_over, restarted):
        """The next ones are rolled back, as if it did not name them, and their status says so."""
        operator, kafka = taken_over, taken_over.kafka
        if restarted:
            operator.restart()
        for number in (100, 101):
            await self.deleted_in_mid_run(operator, number)
            message = await operator.until("RollingBack")
            assert message.endswith("kafka/new has taken over 10 runs and takes over no more until it begins")
            kafka.arrive()
            await operator.until_true(lambda: not operator.exists("r"))
            assert kafka.lists("t") == BEFORE
        assert operator.ends == ["TakenOver", "RolledBack"]
        kept = [run.uid for run in await RunStore(operator.kube).list_all()]
        assert sorted(kept) == sorted(f"u-{number}" for number in range(teardown.MOST_TAKEN_OVER))

    async def test_its_deletion_moves_all_of_them_back(self, taken_over):
        """Then none of them has a successor any more: the limit on the records of deleted resources counts them."""
        operator, kafka = taken_over, taken_over.kafka
        assert arrived(kafka)
        kafka.arrive()
        operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
        assert kafka.lists("t") == BEFORE
        assert not [run for run in await RunStore(operator.kube).list_all() if run.successor]


async def test_a_rollback_that_waits_for_a_word_cancels_nothing_of_others():
    """It has left its moves in place, so another rebalance may move these partitions, also back."""
    operator = await renamed_half_way()
    kafka = operator.kafka
    operator.edit(rollback={"maxData": "1"})
    operator.delete()
    await operator.until("RollbackTooLarge")
    for _ in range(3):
        await operator.round()
    kafka.slow = {1, 2, 3}
    operator.apply_another(throttle=FAST, brokers={"include": [1, 2, 3]})
    await operator.until_true(lambda: bool(kafka.flying))
    sent = len(kafka.altered)
    for _ in range(5):
        await operator.round()
    assert [call for call in kafka.altered[sent:] if call[1] is None] == []
    kafka.arrive()
    await operator.until_true(lambda: operator.state_of() == "Succeeded")


async def test_what_a_rollback_moves_is_found_once_for_all_new_resources(half_moved, monkeypatch):
    """With 100,000 partitions that takes a while on the event loop, and users create any number of resources."""
    operator, asked, moved_back = half_moved, [], teardown.moved_back
    operator.kafka.create("other", BEFORE)
    operator.delete()
    for number in range(10):
        operator.apply_another(f"new-{number}", topics={"include": ["other"]}, **SPEC)

    def counted(record, assessment):
        asked.append(record.run.name)
        return moved_back(record, assessment)

    monkeypatch.setattr(teardown, "moved_back", counted)
    await operator.round()
    assert asked == ["r"]


@pytest.mark.parametrize("rounds", [1, 2])
async def test_one_that_ends_in_the_round_of_the_takeover_takes_nothing_over(half_moved, rounds):
    """Its plan moves nothing. It has ended when the rollback would be handed over to it."""
    operator = half_moved
    operator.kafka.create("other", BEFORE[:1])
    operator.apply_another(topics={"include": ["other"]}, brokers={"include": [1, 2, 3]}, takesOver="r", throttle=FAST)
    for _ in range(rounds):
        await operator.round()
    operator.delete()
    for _ in range(60):
        await operator.round()
        operator.kafka.arrive()
    assert not operator.exists("r")
    assert operator.state_of() == "NothingToDo"
    assert [sorted(held) for held in operator.kafka.lists("t")] == BEFORE


async def test_the_new_one_does_not_end_before_it_has_taken_over():
    """All has arrived, but a call of the old one without an answer holds up its end. It would roll back afterwards."""
    operator = Renamed(KafkaInMemory(range(1, 6), t=[[1, 2, 3]] * 4))
    spec = {"brokers": {"include": [2, 3, 4, 5]}, "strategy": "ForcedMovesOnly", "throttle": FAST}
    alter, lost = operator.kafka.alter_reassignments, []

    async def unanswered(orders, *args, **options):
        answers = await alter(orders, *args, **options)
        if not lost and not any(1 in held for held in operator.kafka.lists("t")):
            lost.append(orders)
            raise Transient("KafkaUnreachable", "no answer")
        return answers

    operator.kafka.alter_reassignments = unanswered
    operator.apply(**spec)
    await operator.until_true(lambda: lost)
    targets = operator.kafka.lists("t")
    operator.delete()
    operator.apply_another(**spec)
    await operator.until_true(lambda: not operator.exists("r"))
    await operator.until_true(lambda: operator.state_of() == "Succeeded")
    assert (operator.kafka.lists("t"), operator.ends) == (targets, ["TakenOver"])
