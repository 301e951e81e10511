"""When copies wait for others to be sent with."""

import pytest

from kafka_rebalance.reconcile.decide.copy_pace import LastCopies

LAST = LastCopies(at=100.0, in_flight=1_000)


@pytest.mark.parametrize(
    ("now", "in_flight", "waits"),
    [
        (100.1, 1_000, True),
        (102.9, 901, True),
        (103.0, 990, False),
        (100.1, 900, False),
        (100.1, 0, False),
        (100.1, 1_200, True),
    ],
)
def test_until_a_tenth_has_arrived_or_for_three_seconds(now, in_flight, waits):
    assert LAST.may_wait(now, in_flight, brokers=60) is waits


@pytest.mark.parametrize(
    ("in_flight", "brokers", "waits"), [(499, 3, False), (500, 3, True), (799, 100, False), (800, 100, True)]
)
def test_only_while_each_broker_has_others_to_copy(in_flight, brokers, waits):
    """A broker without a copy would do nothing meanwhile."""
    assert LastCopies(100.0, in_flight).may_wait(100.1, in_flight, brokers) is waits
