"""How far Spark is: tasks of its active stages, for somebody who waits. Nothing here prints.

In this process Spark's status tracker is asked each second; a Spark Connect server reports by itself.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EACH_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class StageProgress:
    """The progress of all active stages at one moment."""

    stages: int
    done: int
    tasks: int

    @staticmethod
    def of(counts: Iterable[tuple[int, int]]) -> "StageProgress":
        """The sum over stages, given by their done tasks and all tasks."""
        listed = list(counts)
        return StageProgress(len(listed), sum(done for done, _ in listed), sum(tasks for _, tasks in listed))


@contextmanager
def watched(spark: "SparkSession", tell: Callable[[StageProgress], None]) -> Iterator[None]:
    """Report the progress from another thread while the body runs. There is no report while no stage is active."""

    def told(counts: Iterable[tuple[int, int]]) -> None:
        progress = StageProgress.of(counts)
        if progress.tasks:
            tell(progress)

    from pyspark.sql.utils import is_remote

    if is_remote():

        def handler(stages: Iterable[Any], **_: Any) -> None:
            told((stage.num_completed_tasks, stage.num_tasks) for stage in stages or ())

        spark.registerProgressHandler(handler)  # type: ignore[arg-type] # it has a class, and takes any callable
        try:
            yield
        finally:
            spark.removeProgressHandler(handler)  # type: ignore[arg-type]
        return
    ended = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def ask() -> None:
        while not ended.wait(_EACH_SECONDS):
            infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            told((info.numCompletedTasks, info.numTasks) for info in infos if info is not None)

    asking = threading.Thread(target=ask, name="spark-progress", daemon=True)
    asking.start()
    try:
        yield
    finally:
        ended.set()
        asking.join(timeout=5)
