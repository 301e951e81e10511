"""What others have moved between log dirs after a run stays theirs, also if a later plan moves it on."""

import pytest
from tests.unit.reconcile.log_dir_runs import ONE, A, B, C, half_way, jbod, only_log_dirs, places
from tests.unit.reconcile.renamed_resources import Renamed
from tests.unit.reconcile.test_engine_slow_records import while_recorded

from kafka_rebalance.api.v1alpha1 import UNDO_ANNOTATION
from kafka_rebalance.errors import Transient
from kafka_rebalance.model.topology import TopicPartition


def drain(path, band="10%"):
    return {"logDirs": {"band": band, "drain": [{"broker": 1, "path": path}]}}


@pytest.fixture
async def moved():
    """The operator, the number of a partition that its run has moved, and the log dir to which others move it then."""
    kafka = jbod()
    operator = Renamed(kafka)
    await half_way(kafka, operator)
    number = next(n for n, path in enumerate(places(kafka)) if path != A)
    return operator, number, B if places(kafka)[number] == C else C


def by_others(operator, number, path):
    operator.kafka.where[TopicPartition("t", number), ONE] = path


async def ended(operator, then, name):
    """The log dirs after the end of this resource."""
    kafka, uid = operator.kafka, "u-1" if name == "r" else f"u-{name}"
    if then == "undo":
        await operator.until_true(lambda: operator.state_of(name) == "Succeeded")
        operator.order_another(UNDO_ANNOTATION, operator.engine.rebalances[uid].record.run.plan_hash, name)
        await operator.until_true(lambda: operator.state_of(name) in {"Undone", "RolledBackPartially"})
    else:
        operator.delete_another(name)
        await operator.until_true(lambda: not operator.exists(name))
    return places(kafka)


def expected(number, path):
    return [path if n == number else A for n in range(6)]


@pytest.mark.parametrize("then", ["undo", "deletion"])
@pytest.mark.parametrize("edits", [1, 2])
async def test_before_an_edit(moved, edits, then):
    """The new plan empties the log dir. It may be the second one since: the first one leaves the replica alone."""
    operator, number, path = moved
    kafka = operator.kafka
    by_others(operator, number, path)
    if edits == 2:
        operator.edit(goals={"logDirs": {"band": "90%"}}, execution={"suspend": True})
        await operator.until("Suspended")
    operator.edit(goals=drain(path), execution={"suspend": False})
    await operator.until_true(lambda: not kafka.future)
    kafka.crawling = set()
    await operator.until_true(lambda: places(kafka)[number] != path)
    assert await ended(operator, then, "r") == expected(number, path)


@pytest.mark.parametrize("then", ["undo", "deletion"])
async def test_before_a_takeover(moved, then):
    operator, number, path = moved
    kafka = operator.kafka
    operator.apply_another(takesOver="r", strategy="LogDirs", goals=drain(path))
    operator.delete()
    await operator.until_true(lambda: not operator.exists("r"))
    by_others(operator, number, path)
    kafka.crawling = set()
    kafka.copied()
    await operator.until_true(lambda: places(kafka)[number] != path)
    assert await ended(operator, then, "new") == expected(number, path)


@pytest.mark.parametrize("then", ["undo", "deletion"])
async def test_what_nobody_else_has_moved(moved, then):
    """A later plan moves it on: it goes back to where it was before the run."""
    operator, number, _ = moved
    kafka, there = operator.kafka, places(operator.kafka)[number]
    operator.edit(goals=drain(there))
    await operator.until_true(lambda: not kafka.future)
    kafka.crawling = set()
    await operator.until_true(lambda: places(kafka)[number] != there)
    assert await ended(operator, then, "r") == [A] * 6


class TestWhileTheOriginsAreWritten:
    """The API server takes 14 seconds. In the meantime others move replicas, or their broker stops to answer."""

    @staticmethod
    def about_to_move():
        kafka = jbod()
        operator = Renamed(kafka)
        only_log_dirs(operator, execution={"maxPerBroker": {"betweenLogDirs": 6}})
        asked = []
        alter = kafka.alter_log_dirs

        async def remembered(orders):
            asked.extend(tp.partition for tp, _ in orders)
            return await alter(orders)

        kafka.alter_log_dirs = remembered
        return kafka, operator, asked

    async def test_what_others_have_moved_stays(self):
        kafka, operator, asked = self.about_to_move()
        while_recorded(operator, lambda: [by_others(operator, n, C) for n in range(6)])
        await operator.until_true(lambda: operator.state_of("r") in {"Succeeded", "SucceededPartially"})
        assert not asked
        assert places(kafka) == [C] * 6
        operator.delete()
        await operator.until_true(lambda: not operator.exists("r"))
        assert not asked
        assert places(kafka) == [C] * 6

    async def test_others_do_not_wait(self):
        """The replicas that are still in their log dirs move in this round."""
        kafka, operator, asked = self.about_to_move()
        while_recorded(operator, lambda: by_others(operator, 0, C))
        await operator.until_true(lambda: asked)
        assert len(asked) == 3
        assert 0 not in asked
        assert places(kafka)[0] == C

    async def test_a_broker_that_does_not_answer_then(self):
        """They move once it answers again."""
        kafka, operator, asked = self.about_to_move()
        while_recorded(operator, lambda: setattr(kafka, "dirs_denied", Transient("KafkaUnreachable", "no answer")))
        await operator.until_true(lambda: kafka.dirs_denied)
        for _ in range(3):
            await operator.round()
        assert not asked
        kafka.dirs_denied = None
        await operator.until_true(lambda: operator.state_of("r") == "Succeeded")
        assert len(set(places(kafka))) == 3
