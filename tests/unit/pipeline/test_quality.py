from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.pipeline.test_sample_manifests import DAY, LATER, MOMENT, batch

from kafka_rebalance.cli.commands.pipeline_command import pipeline
from kafka_rebalance.pipeline.lake import Lake
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


class TestCommand:
    def test_text(self, lake: Path) -> None:
        """A line for each finding, with what to do."""
        result = CliRunner().invoke(pipeline, ["quality", "--lake", str(lake)], catch_exceptions=False)
        lines = result.stdout.splitlines()
        assert lines[0] == "cluster c1"
        assert lines[1].endswith("one each 1m; 50.0% of the time covered")
        assert [line.split()[0] for line in lines[2:]] == ["gap", "sampler", "broker", "skipped", "model"]
        assert "run `kafka-rebalance pipeline load-model`" in lines[-1]

    def test_json(self, lake: Path) -> None:
        """The same for programs."""
        result = CliRunner().invoke(
            pipeline, ["quality", "--lake", str(lake), "--output", "json"], catch_exceptions=False
        )
        (document,) = json.loads(result.stdout)
        assert (document["coverage"], document["silentBrokers"], document["methods"]) == (0.5, {"3": 2}, None)
