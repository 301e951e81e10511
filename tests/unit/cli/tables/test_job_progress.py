from __future__ import annotations

from kafka_rebalance.cli.tables.job_progress import EACH_SECONDS, lines
from kafka_rebalance.pipeline.stage_progress import StageProgress


class TestLines:
    def test_now_and_then(self) -> None:
        """A short job prints nothing, a long one prints a line each half minute, however often Spark reports."""
        said: list[str] = []
        now = 0.0
        tell = lines("cluster c1", said.append, lambda: now)
        for now in (1, EACH_SECONDS - 1, EACH_SECONDS, EACH_SECONDS + 1, 2 * EACH_SECONDS):  # noqa: B007 - read by tell
            tell(StageProgress.of([(3, 8), (0, 2)]))
        assert said == ["cluster c1: 3 of 10 tasks done, 2 stages active"] * 2
