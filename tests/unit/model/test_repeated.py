"""The value that a message names if a list has one twice."""

import pytest

from kafka_rebalance.model.repeated import repeated


@pytest.mark.parametrize(
    ("values", "found"),
    [((), None), ((1, 2, 3), None), ((1, 2, 1), 1), ((1, 2, 2, 1), 2), ((0, 0), 0)],
)
def test_the_first_that_occurs_again(values, found):
    assert repeated(values) == found
