"""How much may still come to the disks of a broker."""

import pytest

from kafka_rebalance.execution.disk_space import DiskSpace


class TestDiskSpace:
    @pytest.mark.parametrize(
        ("space", "percent", "below", "kept_free"),
        [
            (DiskSpace(fullest=100, usable=300, total=1000), None, 300, 0),
            (DiskSpace(fullest=300, usable=300, total=1000), 80, 100, 200),
            (DiskSpace(fullest=100, usable=300, total=1000), 80, 100, 0),
            (DiskSpace(fullest=100, usable=300, total=1000), 71, 10, 90),
            (DiskSpace(fullest=100, usable=100, total=1000), 80, -100, 200),
            (DiskSpace(fullest=300, usable=300, total=1000), 100, 300, 0),
            (DiskSpace(fullest=5, usable=5, total=15), 70, 0, 5),
            (DiskSpace(fullest=100, usable=300, total=0), 80, 300, 0),
        ],
        ids=["no-limit", "one-dir", "fullest-dir-binds", "both-bind", "above", "all", "rounded-up", "total-unknown"],
    )
    def test_limits(self, space, percent, below, kept_free):
        """The limit is of all log dirs together, and a copy may go to the fullest one."""
        assert (space.below(percent), space.kept_free(percent)) == (below, kept_free)
