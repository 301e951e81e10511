"""A loop over many gives other tasks their turn, and still comes to all of them."""

import asyncio

from kafka_rebalance.reconcile.state.pauses import AT_ONCE, with_pauses


async def test_others_have_their_turn_after_every_few():
    seen, at = 0, set()

    async def other():
        while True:
            at.add(seen)
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    async for number in with_pauses(range(3 * AT_ONCE)):
        assert number == seen
        seen += 1
    task.cancel()
    assert seen == 3 * AT_ONCE
    assert at == {AT_ONCE - 1, 2 * AT_ONCE - 1, 3 * AT_ONCE - 1}


async def test_few_are_gone_through_at_once():
    assert [number async for number in with_pauses(range(3))] == [0, 1, 2]
