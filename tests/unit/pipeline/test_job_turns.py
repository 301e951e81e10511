from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kafka_rebalance.pipeline.job_turns import JobTurns
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.sample_manifests import write_batch
from kafka_rebalance.pipeline.schema import SampleBatch

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def turns(tmp_path: Path) -> JobTurns:
    return JobTurns(Lake.open(str(tmp_path)), "windows")


def began(turns: JobTurns, cluster_id: str, at: datetime) -> None:
    turns.begin(cluster_id)
    os.utime(f"{turns.lake.root}/turns/windows/cluster={cluster_id}/began", (at.timestamp(), at.timestamp()))


def sampled(turns: JobTurns, cluster_id: str, at: datetime) -> None:
    write_batch(turns.lake.root, SampleBatch(at, cluster_id, (), run_id="r"))


class TestOrder:
    def test_a_cluster_that_has_killed_the_job_is_last(self, turns: JobTurns) -> None:
        """The Job has not ended with it, and it has begun with no other since."""
        for age, cluster_id in enumerate("cba"):
            began(turns, cluster_id, NOW - timedelta(hours=age))
        assert turns.in_order("abc") == ["a", "b", "c"]
        turns.begin("a")
        assert turns.in_order("abc") == ["b", "c", "a"]

    def test_a_cluster_with_which_it_has_never_begun_waits_since_its_first_sample(self, turns: JobTurns) -> None:
        """Servers may claim a new id before each run, and none of them comes before what has waited longer."""
        began(turns, "known", NOW)
        for cluster_id, at in (("made-up", NOW + timedelta(minutes=1)), ("made-up", NOW), ("old", NOW)):
            sampled(turns, cluster_id, at + timedelta(minutes=1) if cluster_id == "made-up" else at - timedelta(days=1))
        assert turns.in_order(["known", "made-up", "old"]) == ["old", "known", "made-up"]

    def test_jobs_have_turns_of_their_own(self, turns: JobTurns) -> None:
        began(turns, "a", NOW)
        assert JobTurns(turns.lake, "compact").in_order("ba") == ["a", "b"]
        assert turns.in_order("ba") == ["b", "a"]

    def test_an_id_of_any_length_and_content_has_a_turn(self, turns: JobTurns) -> None:
        """A lake has directories of such names, and one that has no mark would end the Job for all."""
        cluster_id = "../" + "x" * 230
        turns.begin(cluster_id)
        assert turns.in_order([cluster_id, "b"]) == ["b", cluster_id]
