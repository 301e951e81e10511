"""The log that a test captures (``caplog`` of conftest.py) is its own."""

import asyncio
import gc

import pytest


@pytest.fixture
async def left() -> None:
    """As an earlier test leaves it: a task that nothing can wake up."""
    task = asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)
    assert not task.done()


def test_garbage_of_earlier_tests_is_not_in_it(left: None, caplog: pytest.LogCaptureFixture) -> None:
    """When it is collected depends on all tests before."""
    gc.collect()
    assert caplog.records == []
