"""The arrays of a planning problem."""

import pytest
from tests.unit.planning.replicas.test_fewer_bytes import instance


@pytest.mark.parametrize(
    ("sizes", "differ"),
    [([1000, 1000], False), ([1000, 990], False), ([1000, 989], True), ([0, 0], False), ([0, 1], True)],
)
def test_sizes_within_one_percent_count_as_equal(sizes: list[int], differ: bool) -> None:
    """Otherwise a plan would change with each record that is written to partitions of the same size."""
    assert instance([[0], [1]], sizes, [True, True]).sizes_differ is differ


def test_no_partitions_have_no_sizes_that_differ() -> None:
    assert not instance([], [], [True, True]).sizes_differ
