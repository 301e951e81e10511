"""Runs the planner where it blocks nothing: a small plan in a thread, one that is large or by load in its own process.

The solver keeps the interpreter's lock. At 200,000 partitions it stood still for 18 seconds at a time: no renewal of
the lease, no answer to a probe, no round of another cluster. The search by load keeps it too, and so do parts of its
compilation (15 seconds, once for each cache). A process can also be ended when its plan is not needed.
"""

import asyncio
import contextlib
import sys

from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.planning.planner import plan
from kafka_rebalance.planning.problem.request import PlanRequest
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.runs.plan_transport import read_answer, read_request, write_answer, write_request

LARGE = 10_000
"""Partitions from which on the start of a process (half a second) is the smaller evil."""
_RETRY_SECONDS = 60.0


async def run_planner(request: PlanRequest) -> Plan:
    """The plan. Refused as the planner says; Transient("PlanningFailed") where its process died. May be cancelled."""
    if len(request.partitions) < LARGE and not request.goals.load:
        return await asyncio.to_thread(plan, request)
    question = await asyncio.to_thread(write_request, request)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", __name__),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C at the terminal is for us
    )
    try:
        answer, _ = await process.communicate(question)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        how = f"signal {-process.returncode}" if process.returncode < 0 else f"exit code {process.returncode}"
        message = (
            f"planning {len(request.partitions)} partitions ended with {how}: short of memory, or see the log above"
        )
        raise Transient(Reason.PLANNING_FAILED, message, retry_after=_RETRY_SECONDS)
    made = await asyncio.to_thread(read_answer, answer, request)
    if isinstance(made, Refused):
        raise made
    return made


def _answer() -> None:
    """The process: a PlanRequest on stdin; on stdout a Plan, or what was refused."""
    try:
        made: Plan | Refused = plan(read_request(sys.stdin.buffer))
    except Refused as refused:
        made = refused
    sys.stdout.buffer.write(write_answer(made))


if __name__ == "__main__":
    _answer()
