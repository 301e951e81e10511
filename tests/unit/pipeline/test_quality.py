from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.pipeline.test_sample_manifests import DAY, LATER, MOMENT, batch, commits_of

from kafka_rebalance.cli.commands.pipeline_command import pipeline
from kafka_rebalance.cli.tables.quality_lines import quality_lines
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.metrics_reader import MetricPiece, store_metrics
from kafka_rebalance.pipeline.metrics_schema import MetricRow
from kafka_rebalance.pipeline.quality import Gap, QualityReport, report
from kafka_rebalance.pipeline.sample_manifests import write_batch


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Samples each minute for 10 minutes and, after 20 minutes without, for 10 more; one is damaged."""
    for number in [*range(11), *range(30, 41)]:
        missing = (3,) if number in (4, 5) else ()
        write_batch(str(tmp_path), batch(MOMENT + minutes(number), missing=missing, sequence=number))
    damaged = write_batch(str(tmp_path), batch(MOMENT + minutes(3.5), sequence=99))
    (tmp_path / damaged.path).write_bytes(b"PAR1")
    return tmp_path


@pytest.fixture
def found(lake: Path) -> QualityReport:
    return report(Lake.open(str(lake)), "c1", DAY, LATER)


class TestReport:
    def test_gaps_are_found_and_not_covered(self, found: QualityReport) -> None:
        """Twenty of forty minutes."""
        assert found.gaps == (Gap(MOMENT + minutes(10), MOMENT + minutes(30)),)
        assert found.coverage == pytest.approx(0.5)
        assert (found.samples, found.interval) == (22, minutes(1))

    def test_silent_brokers_and_skipped_files_are_counted(self, found: QualityReport) -> None:
        """A broker with the number of samples that it is missing in."""
        assert found.silent == {3: 2}
        assert ["damaged" in each.why for each in found.skipped] == [True]

    def test_of_many_silent_brokers_some_are_named(self, lake: Path) -> None:
        """And the number of the others in one sample."""
        write_batch(str(lake), batch(MOMENT + minutes(5.5), missing=tuple(range(100, 150)), sequence=99))
        found = report(Lake.open(str(lake)), "c1", DAY, LATER)
        assert (found.silent, found.silent_more) == ({3: 2} | dict.fromkeys(range(100, 120), 1), 30)
        assert "  brokers    up to 30 others did not answer in a sample" in list(quality_lines(found))

    def test_samplers_at_the_same_time_are_told(self, lake: Path) -> None:
        """The second one is left out; it may have another clock."""
        other = batch(MOMENT + minutes(5.5))
        write_batch(str(lake), type(other)(other.sampled_at, "c1", other.rows, (), "second", 0))
        found = report(Lake.open(str(lake)), "c1", DAY, LATER)
        assert (found.runs, found.left_out) == ({"run": 22}, {"second": 1})

    def test_a_lake_without_usable_samples(self, tmp_path: Path) -> None:
        """Nothing is covered, and the reason is there."""
        (tmp_path / write_batch(str(tmp_path), batch()).path).unlink()
        found = report(Lake.open(str(tmp_path)), "c1", DAY, LATER)
        assert (found.samples, found.coverage, found.start, len(found.skipped)) == (0, 0.0, None, 1)


class TestBytesOut:
    def test_the_samples_of_groups_are_counted(self, lake: Path) -> None:
        """The broker was silent in samples that count."""
        for number in (0, 1, 2):
            write_batch(str(lake), commits_of(batch(MOMENT + minutes(number), sequence=number)))
        found = report(Lake.open(str(lake)), "c1", DAY, LATER)
        assert (found.samples, found.with_groups) == (22, 3)
        assert found.to_json()["samplesOfGroups"] == 3

    @pytest.mark.parametrize(
        ("ends", "share"),
        [([], 0), ([5], 5 / 40), ([5, 10], 0.25), ([20, 10, 20], 0.5), ([35, 60], 1), ([-20, 75], 25 / 40)],
        ids=["none", "the first", "two", "twice and in disorder", "later than the samples", "a gap"],
    )
    def test_the_time_that_prometheus_was_read_for(self, lake: Path, ends: list[float], share: float) -> None:
        """Each read is of what came since the one before, but of no more than an hour; samples are of 40 minutes."""
        for end in ends:
            row = MetricRow("c1", "t", 1, MOMENT + minutes(end - 5), 1.0, 1.0, LATER)
            store_metrics(Lake.open(str(lake)), "c1", MetricPiece((row,), MOMENT + minutes(end), frozenset()))
        assert report(Lake.open(str(lake)), "c1", DAY, LATER + DAY).reported == pytest.approx(share)

    def test_text(self, lake: Path) -> None:
        """What each source has; what to do if neither has anything."""
        command = ["quality", "--lake", str(lake)]
        said = CliRunner().invoke(pipeline, command, catch_exceptions=False).stdout
        assert "groups     0 of 22 samples have what consumer groups committed: bytes out are unknown; permit" in said
        assert "metrics" not in said
        row = MetricRow("c1", "t", 1, MOMENT, 1.0, 1.0, LATER)
        store_metrics(Lake.open(str(lake)), "c1", MetricPiece((row,), MOMENT + minutes(10), frozenset()))
        said = CliRunner().invoke(pipeline, command, catch_exceptions=False).stdout
        assert "groups     0 of 22 samples have what consumer groups committed\n" in said
        assert "metrics    Prometheus was read for 25.0% of the time" in said


class TestCommand:
    def test_text(self, lake: Path) -> None:
        """A line for each finding, with what to do."""
        result = CliRunner().invoke(pipeline, ["quality", "--lake", str(lake)], catch_exceptions=False)
        lines = result.stdout.splitlines()
        assert lines[0] == "cluster c1"
        assert lines[1].endswith("one each 1m; 50.0% of the time covered")
        assert [line.split()[0] for line in lines[2:]] == ["gap", "sampler", "broker", "groups", "skipped", "model"]
        assert "run `kafka-rebalance pipeline load-model`" in lines[-1]

    def test_json(self, lake: Path) -> None:
        """The same for programs."""
        result = CliRunner().invoke(
            pipeline, ["quality", "--lake", str(lake), "--output", "json"], catch_exceptions=False
        )
        (document,) = json.loads(result.stdout)
        assert (document["coverage"], document["silentBrokers"], document["methods"]) == (0.5, {"3": 2}, None)
