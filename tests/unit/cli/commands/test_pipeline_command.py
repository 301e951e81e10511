from __future__ import annotations

import pytest
from click.testing import CliRunner

from kafka_rebalance.cli.commands.pipeline_command import _sample_regularly, pipeline
from kafka_rebalance.errors import Permanent, RebalanceError, Transient


class Sampling:
    """A sample that fails as specified, call by call; None means success."""

    def __init__(self, *failures: RebalanceError | None) -> None:
        self.failures = list(failures)

    async def __call__(self) -> None:
        failure = self.failures.pop(0)
        if failure is not None:
            raise failure


def away(number: int) -> Transient:
    return Transient("KafkaUnreachable", f"time-out {number}")


class TestBeat:
    async def test_a_time_out_costs_one_sample(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The next samples are taken, and the lost one is reported."""
        take = Sampling(None, away(1), None)
        await _sample_regularly(take, interval=0.001, count=3)
        assert take.failures == []
        assert capsys.readouterr().err == "no sample (KafkaUnreachable): time-out 1\n"

    async def test_no_sample_at_all_is_a_failure(self) -> None:
        """With the reason of the last failure."""
        with pytest.raises(Transient, match="time-out 2"):
            await _sample_regularly(Sampling(away(1), away(2)), interval=0.001, count=2)

    async def test_what_will_not_heal_ends_it(self) -> None:
        """Wrong credentials do not become valid."""
        take = Sampling(Permanent("AuthenticationFailed", "wrong password"), None)
        with pytest.raises(Permanent, match="wrong password"):
            await _sample_regularly(take, interval=0.001, count=0)
        assert take.failures == [None]


class TestUsage:
    @pytest.mark.parametrize(
        ("option", "value", "why"),
        [("--interval", "0s", "less than 1s"), ("--interval", "fast", "not a duration"), ("--count", "-1", "x>=0")],
    )
    def test_a_bad_option_is_named(self, option: str, value: str, why: str) -> None:
        """Exit code 2, before any request or write."""
        command = ["sample", "--bootstrap-servers", "127.0.0.1:1", "--lake", "lake", option, value]
        result = CliRunner().invoke(pipeline, command)
        assert result.exit_code == 2
        assert option in result.stderr
        assert why in result.stderr
