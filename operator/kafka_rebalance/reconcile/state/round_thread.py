"""Where a round computes what takes long: beside the event loop, which the rounds of all clusters share.

The rounds of inline connections have one thread for it, in which namespaces take turns. Any number of their servers can
claim clusters for which each round computes for seconds. The threads of the event loop are those of KafkaConnections.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import ParamSpec, TypeVar

from kafka_rebalance.reconcile.state.inline_thread import in_turn, with_beats
from kafka_rebalance.reconcile.state.namespace_turns import Turn

P = ParamSpec("P")
T = TypeVar("T")

_OF_INLINE_ROUNDS = ThreadPoolExecutor(1, thread_name_prefix="inline-round")
_turn = ContextVar[Turn | None]("turn", default=None)


@contextmanager
def round_of(turn: Turn | None) -> Iterator[None]:
    """Until the end of this context, ``off_the_loop`` waits for these turns of an inline connection.

    ``turn`` None: of a KafkaConnection, which waits for none. This holds for this task and those that it starts.
    """
    token = _turn.set(turn)
    try:
        yield
    finally:
        _turn.reset(token)


async def computed(work: Callable[..., T], *args: object, many: bool) -> T:
    """The result of ``work``, which a thread finds if it is for ``many``. It changes nothing that others use."""
    return await off_the_loop(work, *args) if many else work(*args)


async def off_the_loop(work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """The result of ``work``, which a thread finds. To wait for the thread of inline connections is a beat."""
    turn = _turn.get()
    if turn is None:
        return await asyncio.to_thread(work, *args, **options)
    context = copy_context()
    in_thread = in_turn(lambda: context.run(work, *args, **options), turn, _OF_INLINE_ROUNDS)
    return await with_beats(asyncio.get_running_loop().create_task(in_thread))
