"""Shows how far a Spark job is: a bar on a terminal, else a line now and then."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kafka_rebalance.cli.tables.console import say
from kafka_rebalance.printable_text import printable

EACH_SECONDS = 30.0


def lines(
    what: str, say: Callable[[str], None], monotonic: Callable[[], float] = time.monotonic
) -> Callable[[Any], None]:
    """For logs: a line at most every half minute, so that a short job says nothing."""
    last = monotonic()

    def tell(progress: Any) -> None:
        nonlocal last
        if monotonic() - last >= EACH_SECONDS:
            last = monotonic()
            say(f"{what}: {progress.done} of {progress.tasks} tasks done, {progress.stages} stages active")

    return tell


@contextmanager
def job_progress(spark: Any, what: str) -> Iterator[None]:
    """While the body runs, on stderr. ``spark`` is the session of the job."""
    from kafka_rebalance.pipeline.stage_progress import watched

    if not sys.stderr.isatty():
        with watched(spark, lines(what, lambda line: say(line, err=True))):
            yield
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TextColumn("tasks"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(printable(what), total=None)
        with watched(spark, lambda progress: bar.update(task, completed=progress.done, total=progress.tasks)):
            yield
