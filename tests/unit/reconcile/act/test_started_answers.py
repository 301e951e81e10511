"""Whether a run started in a cluster is not found out again at each edit of its resource."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.errors import Transient
from kafka_rebalance.model.ownership import Owner
from kafka_rebalance.model.run import Run
from kafka_rebalance.reconcile.act.started_answers import StartedAnswers
from kafka_rebalance.reconcile.act.started_runs import Started

RUN = Run("u", "kafka", "r", "c", "run", "h", "sha256:a", NOON)
OWNER, OTHER = Owner("a"), Owner("b")


class Engine:
    """Of the cluster that is asked."""


class Asked:
    """``answer`` is given, or raised, after ``seconds``."""

    def __init__(self):
        self.clock, self.times = StoppedClock(), 0
        self.answer, self.seconds = Started.ELSEWHERE, 0.0
        self.answers, self.engine = StartedAnswers(self.clock.monotonic), Engine()

    async def ask(self):
        self.times += 1
        self.later(self.seconds)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def later(self, seconds):
        self.clock.at += timedelta(seconds=seconds)

    async def of(self, run=RUN, owner=OWNER, engine=None):
        return await self.answers.of(run, owner, engine or self.engine, self.ask)


@pytest.fixture
def asked():
    return Asked()


@pytest.mark.parametrize("answer", list(Started))
async def test_edits_do_not_ask_again(asked, answer):
    asked.answer = answer
    for _ in range(10):
        assert (await asked.of()).started is answer
        asked.later(0.9)
    assert asked.times == 1


async def test_it_is_asked_again_later(asked):
    """Topics may have been deleted since. The age of an answer counts from when it was given."""
    first = await asked.of()
    asked.later(10)
    asked.answer = Started.UNKNOWN
    second = await asked.of()
    assert (second.started, second.at - first.at) == (Started.UNKNOWN, 10)
    asked.later(5)
    assert (await asked.of()) is second


@pytest.mark.parametrize(
    "changed",
    [{"run": replace(RUN, unproved=True)}, {"run": replace(RUN, plan_hash="sha256:b")}, {"engine": Engine()}],
    ids=["doubted", "planned", "engine"],
)
async def test_a_change_of_what_it_depends_on_is_noticed_at_once(asked, changed):
    asked.seconds = 100
    await asked.of()
    asked.answer = Started.HERE
    assert (await asked.of(**changed)).started is Started.HERE


class TestAnotherOwner:
    """Anyone may edit the connection that a resource names, and with it the owner."""

    async def test_is_noticed_at_once(self, asked):
        await asked.of()
        asked.answer = Started.HERE
        assert (await asked.of(owner=OTHER)).started is Started.HERE

    async def test_has_not_started_it_because_the_former_one_has(self, asked):
        asked.answer, asked.seconds = Started.HERE, 5
        await asked.of()
        asked.answer = Started.ELSEWHERE
        assert (await asked.of(owner=OTHER)).started is Started.ELSEWHERE

    async def test_is_not_asked_for_more_than_a_fifth_of_the_time(self, asked):
        asked.seconds = 0.5
        for turn in range(100):
            await asked.of(owner=(OWNER, OTHER)[turn % 2])
            asked.later(0.1)
        assert asked.seconds * asked.times <= asked.clock.monotonic() / 5 + asked.seconds


async def test_a_slow_answer_is_kept_for_longer(asked):
    """Up to a limit: the end of the run may be needed."""
    asked.seconds = 5
    await asked.of()
    asked.later(19)
    await asked.of()
    assert asked.times == 1
    asked.later(1)
    asked.seconds = 1000
    await asked.of()
    asked.later(30)
    await asked.of()
    assert asked.times == 3


async def test_that_it_is_not_known_is_kept_too(asked):
    """Without what the traceback refers to."""
    asked.answer = Transient("KafkaUnreachable", "no broker answered")
    first = await asked.of()
    assert (first.started, first.unknown) == (Started.ELSEWHERE, asked.answer)
    assert first.unknown.__traceback__ is None
    assert (await asked.of()) is first


async def test_nothing_is_kept_for_ever(asked):
    """Users may create and delete any number of resources."""
    for count in range(20):
        await asked.of(replace(RUN, uid=f"u-{count}"))
        asked.later(1)
    kept = asked.answers._kept[asked.engine]
    assert len(kept) <= 10
    asked.engine = Engine()
    assert len(asked.answers._kept) == 0
