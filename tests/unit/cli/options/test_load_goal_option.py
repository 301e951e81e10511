"""The option --load: what is read, and what is refused with which words."""

import pytest

from kafka_rebalance.cli.options.load_goal_option import load_goal
from kafka_rebalance.model.goals import LoadGoal, LoadResource, LoadStatistic


class TestLoadGoal:
    def test_read(self) -> None:
        """As in the resource, with its defaults."""
        assert load_goal("Disk") == LoadGoal(LoadResource.DISK, 10, 80, LoadStatistic.P95)
        found = load_goal("BytesIn,band=5%,capacityLimit=100%,statistic=Max")
        assert found == LoadGoal(LoadResource.BYTES_IN, 5, 100, LoadStatistic.MAX, minimum_coverage_seconds=900)
        assert load_goal("BytesIn,minimumCoverage=1m30s").minimum_coverage_seconds == 90

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("Disc", "name: must be 'Disk', 'BytesIn', 'BytesOut' or 'LeaderBytesIn', found 'Disc'"),
            ("Disk,band=5", "band: must be a percentage from 1% to 100%, like 10%"),
            ("Disk,bnd=5%", "bnd: unknown field; did you mean band?"),
            ("Disk,5%", "'5%' is not a setting like band=5%, given once"),
            ("Disk,band=5%,band=6%", "'band=6%' is not a setting like band=5%, given once"),
            ("Disk,statistic=P95", "statistic and minimumCoverage are not allowed for Disk: sizes have"),
        ],
    )
    def test_refused(self, text: str, says: str) -> None:
        with pytest.raises(ValueError, match=f"^{says}".replace("?", r"\?")):
            load_goal(text)
