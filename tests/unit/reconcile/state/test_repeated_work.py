"""Work that many ask for at the same time."""

import asyncio

import pytest

from kafka_rebalance.reconcile.state import repeated_work
from kafka_rebalance.reconcile.state.repeated_work import RepeatedWork


class Work:
    """Each piece waits until it may end, and then fails if it is to."""

    def __init__(self):
        self.begun, self.may_end, self.error = 0, asyncio.Event(), None

    async def __call__(self):
        self.begun += 1
        await self.may_end.wait()
        if self.error is not None:
            raise self.error


async def asked(repeated, count):
    tasks = [asyncio.create_task(repeated.ask()) for _ in range(count)]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


async def test_once_more_for_all_who_ask_meanwhile():
    """What they ask for may have come after the work looked there."""
    work = Work()
    repeated = RepeatedWork(work)
    tasks = await asked(repeated, 1) + await asked(repeated, 100)
    assert work.begun == 1
    work.may_end.set()
    await asyncio.gather(*tasks)
    assert work.begun == 2


async def test_a_rest_before_it_is_done_once_more(monkeypatch):
    """Users may have it asked for without end. A single question costs no rest."""
    rests, work = [], Work()

    async def rest(seconds):
        rests.append(seconds)

    monkeypatch.setattr(repeated_work, "sleep", rest)
    monkeypatch.setattr(repeated_work, "_REST", 1e9)
    repeated = RepeatedWork(work)
    tasks = await asked(repeated, 2)
    work.may_end.set()
    await asyncio.gather(*tasks)
    assert rests == [10.0]
    await repeated.ask()
    assert rests == [10.0]


async def test_after_a_failure_it_is_done_again():
    """The caller that does the work gets the error."""
    work = Work()
    work.may_end.set()
    work.error = ValueError("once")
    repeated = RepeatedWork(work)
    with pytest.raises(ValueError, match="once"):
        await repeated.ask()
    work.error = None
    await repeated.ask()
    assert work.begun == 2
