from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kafka_rebalance.pipeline import job_turns
from kafka_rebalance.pipeline.job_turns import JobTurns, KeptPlaces
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.sample_manifests import write_batch
from kafka_rebalance.pipeline.schema import SampleBatch

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


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


class TestKeptPlaces:
    @pytest.fixture
    def places(self, tmp_path: Path) -> KeptPlaces:
        return KeptPlaces(Lake.open(str(tmp_path)), "compact")

    @staticmethod
    def run(places: KeptPlaces, clusters: str, year: int, *, killed_at: str = "") -> list[str]:
        """A run on the first day of that year; the clusters with which it has begun."""
        begun = []
        for cluster_id in places.taken(clusters):
            places.begin(cluster_id)
            begun.append(cluster_id)
            if cluster_id == killed_at:
                break
            places.end(cluster_id)
        for mark in Path(places.lake.root).glob("turns/*/*/*"):
            if mark.stat().st_mtime > LONG_AGO.timestamp():
                at = datetime(year, 1, 2 if mark.name == "began" else 1, tzinfo=UTC).timestamp()
                os.utime(mark, (at, at))
        return begun

    def test_clusters_keep_their_places_while_the_job_is_not_killed(self, places: KeptPlaces) -> None:
        """A new cluster comes behind them, and so do those that have been placed by the same run, by their ids."""
        self.run(places, "d", 2001)
        self.run(places, "cbd", 2002)
        sampled(places, "a", NOW)
        for year in (2003, 2004):
            assert self.run(places, "abcd", year) == ["d", "b", "c", "a"]

    def test_a_cluster_at_which_the_job_was_killed_is_last(self, places: KeptPlaces) -> None:
        """Also when the Job has ended with it later: it may be killed there again."""
        self.run(places, "abc", 2001)
        assert self.run(places, "abc", 2002, killed_at="a") == ["a"]
        for year in (2003, 2004):
            assert self.run(places, "abc", year) == ["b", "c", "a"]

    def test_nor_does_one_that_takes_long_keep_its_place(
        self, places: KeptPlaces, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It may leave so little time to the others that the Job is ended while it is at one of them."""
        self.run(places, "abc", 2001)
        end = places.end

        def long_at_a(of: KeptPlaces, cluster_id: str) -> None:
            monkeypatch.setattr(job_turns, "LONG", timedelta(seconds=-1 if cluster_id == "a" else 1e6))
            end(cluster_id)

        monkeypatch.setattr(KeptPlaces, "end", long_at_a)
        assert self.run(places, "abc", 2002) == ["a", "b", "c"]
        assert self.run(places, "abc", 2003) == ["b", "c", "a"]

    def test_each_cluster_keeps_the_job_from_another_one_once(self, places: KeptPlaces) -> None:
        """However many clusters kill it, and in whichever order. All of them were there before that one."""
        self.run(places, "abcd", 2001)
        for year, killer in enumerate("abc", 2002):
            assert "d" not in self.run(places, "abcd", year, killed_at=killer)
        for year, killer in enumerate("acbabcc", 2005):
            assert self.run(places, "abcd", year, killed_at=killer)[0] == "d"

    def test_a_new_cluster_has_its_place_when_it_was_seen(self, places: KeptPlaces) -> None:
        """Not only when the Job has begun with it: until then, others may have killed the Job again."""
        self.run(places, "ab", 2001)
        sampled(places, "c", NOW)
        for year, killer in enumerate("ab", 2002):
            self.run(places, "abc", year, killed_at=killer)
        for year, killer in enumerate("abab", 2004):
            assert self.run(places, "abc", year, killed_at=killer)[0] == "c"

    def test_runs_that_do_not_come_to_a_cluster_leave_its_place(self, places: KeptPlaces) -> None:
        """Else new clusters would come before it all the time."""
        self.run(places, "bcd", 2001)
        for year, killer in enumerate("dbc", 2002):
            self.run(places, "bcd" if year < 2004 else "abcd", year, killed_at=killer)
        assert places.in_order("abcd") == ["d", "a", "b", "c"]
