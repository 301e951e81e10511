"""Which values of the throttle ledger Kafka has never been asked for, or has not permitted."""

import pytest

from kafka_rebalance.reconcile.throttle.unsent import Unsent


@pytest.fixture
def unsent():
    found = Unsent()
    found.recorded("key", {1, 2})
    return found


def test_what_is_sent_may_be_set(unsent):
    """Also if no answer comes. Only the first call finds out that it was never set."""
    assert unsent.sent("key", {1, 3}) == {1}
    assert unsent.sent("key", {1, 2}) == {2}
    assert unsent.sent("key", {1, 2}) == frozenset()
    assert not unsent.to_strike


def test_what_is_not_permitted_is_struck_off_the_ledger(unsent):
    """Until that is stored. What had been sent before may be set by an earlier call."""
    unsent.sent("key", {1})
    unsent.denied("key", unsent.sent("key", {1, 2}))
    assert unsent.to_strike == {"key": {2}}
    unsent.struck()
    assert not unsent.to_strike


def test_what_is_sent_again_before_that_is_judged_again(unsent):
    """It was still never set."""
    unsent.denied("key", unsent.sent("key", {1}))
    assert unsent.sent("key", {1}) == {1}
    assert not unsent.to_strike


def test_nothing_is_kept_of_what_the_ledger_has_no_more(unsent):
    unsent.recorded("other", {1})
    unsent.denied("other", unsent.sent("other", {1}))
    unsent.forget(unsent.keys)
    assert not unsent.keys
