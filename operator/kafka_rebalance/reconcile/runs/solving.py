"""Runs the planner without blocking the event loop.

An easy plan is made in a thread, one of each namespace at a time; a hard plan, or a plan by load, in a new process. The
solver holds the interpreter's lock: at 200,000 partitions for 18 seconds at a time, in which the operator would not
renew its lease, answer a probe or work for another cluster. The search by load holds it too, and so do parts of its
compilation (15 seconds, once for each cache). The process is killed when its plan is no longer needed.

The servers of an inline connection can claim many brokers, long replica lists and any number of replicas in a log dir.
A plan for these can take hours and gigabytes, but the threads of the event loop and the memory of the container serve
all clusters. So for an inline connection a process has limits of memory and time, and only one runs at a time; only
much smaller plans are made in a thread, which is not one of the event loop's (`inline_thread`). Namespaces take turns.
The process of a KafkaConnection gets half of what is free in the container, and half an hour: a spec that asks for 300
replicas of each partition takes gigabytes and hours in a large cluster. It has to wait for its turn (`plan_memory`),
but not while it keeps other plans of its cluster waiting (`draft_turns`). All these processes have a lower priority
than the operator.
"""

import asyncio
import contextlib
import os
import resource
import sys
from collections.abc import Callable, Sequence
from functools import partial

from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.model.goals import Balance
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.parent_process import end_with_parent
from kafka_rebalance.planning.planner import plan
from kafka_rebalance.planning.problem.request import PlanRequest
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.runs.container_memory import free_bytes
from kafka_rebalance.reconcile.runs.log_dir_search import DirAnswer, DirQuestion, answers_to, size_of
from kafka_rebalance.reconcile.runs.plan_memory import DraftMemory, PlanGrant, PlanMemory
from kafka_rebalance.reconcile.runs.plan_transport import (
    read_answer,
    read_dir_answers,
    read_dir_questions,
    read_request,
    write_answer,
    write_dir_answers,
    write_dir_questions,
    write_request,
)
from kafka_rebalance.reconcile.state.inline_thread import in_thread
from kafka_rebalance.reconcile.state.namespace_turns import InlineTurns

LARGE = 10_000
"""Partitions. A plan with this number or more is made in a process, whose start takes half a second."""
_MANY_BROKERS, _MANY_BROKERS_UNTRUSTED = 100, 20
_LONG_LIST = 10
"""Replicas of a partition."""
_MANY_PLACES = 1_000_000
"""Replicas times brokers. Below this and the limits above, a plan takes at most a few seconds, also if its brokers were
chosen to make it hard. 9,999 partitions on 49 brokers with 9 replicas each can take half a minute, in which nothing can
end the thread."""
_MANY_BY_TOPIC = 20_000
"""Partitions times brokers. From this product on, a plan that balances each topic may take minutes."""
_MANY_IN_DIRS = 5_000
"""Replicas times log dirs, of all brokers. Below it, the search between log dirs takes a second or two."""
_MANY_IN_DIRS_UNTRUSTED = 500
_UNTRUSTED = 50
"""The limits of partitions are divided by it for servers that are not trusted. They can claim what is hard to plan, and
the solver holds the interpreter's lock: 0.2 s of at most 0.4 s just below the limits, but 1.7 s of 4 s at five times as
much."""
_MEMORY_BYTES = 256 * 2**20
"""Memory limit of any plan, in addition to the memory of the process at its start."""
_PARTITION_BYTES = 1024
"""Added to the memory limit for each partition."""
_COMPILER_BYTES = 128 * 2**20
"""Added to the memory limit of a plan by load: compiling its loops takes 294 MiB if they are not in the cache."""
_LONGEST_SECONDS = 180.0
"""Time limit of a plan for an inline connection. The plans of other inline connections wait meanwhile."""
_LONGEST_TRUSTED_SECONDS = 1800.0
"""Time limit of a plan for a KafkaConnection. A large plan takes minutes."""
_RETRY_SECONDS = 60.0
_RETRY_LONG_SECONDS = 3600.0
"""After a plan for a KafkaConnection that took too long. An edit of the spec is planned at once."""
_NICER = 10
"""Added to the nice value of a process, which has a tenth of the operator's weight then."""
_PLAN, _LOG_DIRS = "plan", "log-dirs"
"""What a process is asked for: a `PlanRequest`, or the moves between log dirs."""

_memory = PlanMemory(free_bytes, _MEMORY_BYTES)


def draft_memory(namespace: str) -> DraftMemory:
    """For one draft of a plan of a resource in this namespace. Nothing is taken yet."""
    return DraftMemory(_memory, namespace)


async def run_planner(request: PlanRequest, turns: InlineTurns | None, memory: DraftMemory) -> Plan:
    """Make the plan. May be cancelled.

    Refused if the planner refuses the request; Transient("PlanningFailed") if its process dies or exceeds its limits.
    ``turns``: of the namespace, for servers that are not trusted; the process has limits then. None: it may take half
    of what is free in the container, and half an hour. Then MemoryTaken if it would have to wait for that: its caller
    waits, and has the plan made again with the ``memory`` that it got.
    """
    if _easy(request, trusted=turns is None):
        return await in_thread(partial(plan, request), turns.thread if turns else None, memory.namespace)
    what = f"{len(request.partitions)} partitions on {len(request.brokers)} brokers"
    answer = await _answer_of_process(
        _PLAN, partial(write_request, request), what, _memory_limit(request), turns, memory
    )
    made = await asyncio.to_thread(read_answer, answer, request)
    if isinstance(made, Refused):
        raise made
    return made


async def run_log_dirs(
    questions: Sequence[DirQuestion], turns: InlineTurns | None, memory: DraftMemory
) -> list[DirAnswer]:
    """The moves between log dirs, for each question. May be cancelled. Else as `run_planner`."""
    if size_of(questions) < (_MANY_IN_DIRS if turns is None else _MANY_IN_DIRS_UNTRUSTED):
        return await in_thread(partial(answers_to, questions), turns.thread if turns else None, memory.namespace)
    replicas = sum(len(question.dirs.replicas) for question in questions)
    what, write = f"the log dirs of {replicas} replicas", partial(write_dir_questions, questions)
    answer = await _answer_of_process(_LOG_DIRS, write, what, _MEMORY_BYTES, turns, memory)
    return await asyncio.to_thread(read_dir_answers, answer)


async def _answer_of_process(
    kind: str, question: Callable[[], bytes], what: str, most: int, turns: InlineTurns | None, memory: DraftMemory
) -> bytes:
    """``question`` is called when it is its turn, or the ``memory`` is taken. ``what`` is planned, for messages.

    ``most``: the bytes that a process may use for servers that are not trusted.
    """
    if turns is None:
        return await _answer_for_trusted(kind, question, what, memory)
    async with turns.process():
        try:
            async with asyncio.timeout(_LONGEST_SECONDS):
                return await _asked(kind, question, what, PlanGrant(most), "for an inline connection")
        except TimeoutError:
            message = f"planning {what} took more than {_LONGEST_SECONDS:.0f} s"
            raise _failed(f"{message}, the limit for an inline connection") from None


async def _answer_for_trusted(kind: str, question: Callable[[], bytes], what: str, memory: DraftMemory) -> bytes:
    grant = await memory.take()
    try:
        async with asyncio.timeout(_LONGEST_TRUSTED_SECONDS):
            return await _asked(kind, question, what, grant, "of what the container has left")
    except TimeoutError:
        message = (
            f"planning {what} took more than {_LONGEST_TRUSTED_SECONDS:.0f} s, the limit for a KafkaConnection: "
            "narrow spec.topics, or lower spec.replicationFactor"
        )
        raise Transient(Reason.PLANNING_FAILED, message, retry_after=_RETRY_LONG_SECONDS) from None


def _memory_limit(request: PlanRequest) -> int:
    """The bytes that a process for this request may use in addition to its memory at the start."""
    of_compiler = _COMPILER_BYTES if request.goals.load else 0
    return _MEMORY_BYTES + _PARTITION_BYTES * len(request.partitions) + of_compiler


def _failed(message: str) -> Transient:
    return Transient(Reason.PLANNING_FAILED, message, retry_after=_RETRY_SECONDS)


async def _asked(kind: str, question: Callable[[], bytes], what: str, grant: PlanGrant, why: str) -> bytes:
    """The answer of a new process. ``why``: it has the limit of this ``grant``."""
    data = await asyncio.to_thread(question)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", __name__, str(grant.limit), kind),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C at the terminal is only for the operator
    )
    grant.pid = process.pid
    try:
        answer, _ = await process.communicate(data)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        grant.pid = None
    if process.returncode:
        how = f"signal {-process.returncode}" if process.returncode < 0 else f"exit code {process.returncode}"
        limit = f" (the limit {why} is {grant.limit >> 20} MiB)" if grant.limit else ""
        raise _failed(f"planning {what} ended with {how}: short of memory{limit}, or see the log above")
    return answer


def _easy(request: PlanRequest, *, trusted: bool) -> bool:
    """Whether the plan takes little enough time and memory for a thread."""
    brokers, partitions = len(request.brokers), len(request.partitions) * (1 if trusted else _UNTRUSTED)
    if partitions >= LARGE or brokers >= (_MANY_BROKERS if trusted else _MANY_BROKERS_UNTRUSTED) or request.goals.load:
        return False
    if request.goals.balance is not Balance.TOTAL and partitions * brokers >= _MANY_BY_TOPIC:
        return False
    longest = max((len(partition.replicas) for partition in request.partitions), default=0)
    longest = max(longest, request.replication_factor or 0)
    return longest < _LONG_LIST and len(request.partitions) * longest * brokers < _MANY_PLACES


def _limit_memory(count: int) -> None:
    """Limit the data memory of this process to ``count`` bytes in addition to its present use."""
    with open("/proc/self/status", encoding="ascii") as status:
        used = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData:"))
    resource.setrlimit(resource.RLIMIT_DATA, (used + count, used + count))


def _answer() -> None:
    """The main function of the process: reads a question from stdin, and writes the answer to stdout."""
    end_with_parent()
    with contextlib.suppress(OSError):  # it is low already
        os.setpriority(os.PRIO_PGRP, 0, os.getpriority(os.PRIO_PROCESS, 0) + _NICER)  # of all its threads
    if most := int(sys.argv[1]):
        with contextlib.suppress(OSError):  # not on Linux
            _limit_memory(most)
    if sys.argv[2] == _LOG_DIRS:
        answers = answers_to(read_dir_questions(sys.stdin.buffer))
        sys.stdout.buffer.write(write_dir_answers(answers))
        return
    request = read_request(sys.stdin.buffer)
    try:
        made: Plan | Refused = plan(request)
    except Refused as refused:
        made = refused
    sys.stdout.buffer.write(write_answer(made, request))


if __name__ == "__main__":
    _answer()
