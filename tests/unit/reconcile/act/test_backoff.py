"""The pause after failures in a row doubles, up to a minute."""

from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.backoff import LONGEST_SECONDS, Backoff, lengthen


def transient(seconds):
    """A transient error with a pause of this length."""
    error = Transient(Reason.API_SERVER_BUSY, "busy")
    error.retry_after = seconds
    return error


def test_of_brokers():
    now = [0.0]
    backoff = Backoff[int](lambda: now[0])
    pauses = []
    for _ in range(8):
        backoff.failed(1)
        before = now[0]
        while not backoff.due([1]):
            now[0] += 1
        pauses.append(now[0] - before)
    assert pauses == [1, 2, 4, 8, 16, 32, LONGEST_SECONDS, LONGEST_SECONDS]
    backoff.succeeded(1)
    assert (backoff.due([2, 1]), backoff.has_failed(1)) == ([1, 2], False)


class TestLengthen:
    def test_after_another_transient_error(self):
        error = transient(5.0)
        lengthen(error, transient(20.0))
        assert error.retry_after == 40.0

    def test_never_shortens(self):
        error = transient(90.0)
        lengthen(error, transient(20.0))
        assert error.retry_after == 90.0

    def test_after_anything_else(self):
        for before in (None, Refused(Reason.API_SERVER_BUSY, "no")):
            error = transient(5.0)
            lengthen(error, before)
            assert error.retry_after == 5.0
