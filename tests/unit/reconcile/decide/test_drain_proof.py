"""When brokers that are decommissioned are proved empty."""

import pytest

from kafka_rebalance.errors import Permanent
from kafka_rebalance.kafka.ports import Answers, LogDir
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.reconcile.decide.drain_proof import WAIT_SECONDS, asked_for_proof, drain_of

EMPTY, PAYROLL = (LogDir("/data"),), (LogDir("/data", {TopicPartition("payroll", 0): 1}),)


def drain(answers, *, leaving=(4,), live=(1, 2, 4), hidden=(), seconds=2.0, errors=None):
    asked = asked_for_proof(leaving, live)
    found = drain_of(leaving, Answers(answers, errors), asked, hidden, seconds)
    return found and (found.empty, found.message)


class TestLive:
    def test_empty(self):
        assert drain({4: EMPTY}) == (True, "brokers 4 held no replica at two readings, and their log dirs are empty")

    def test_a_topic_that_is_hidden_from_us(self):
        """Metadata shows neither it nor an error."""
        empty, message = drain({4: PAYROLL}, hidden={"payroll"})
        assert empty is False
        assert "payroll-0" in message
        assert "allow Describe" in message

    @pytest.mark.parametrize("answers", [{4: PAYROLL}, {}])
    def test_what_may_change_is_waited_for(self, answers):
        """Files that are about to be deleted, a broker that does not answer: but not for ever."""
        assert drain(answers) is None
        empty, message = drain(answers, seconds=WAIT_SECONDS)
        assert (empty, "payroll-0" in message) == ((False, True) if answers else (None, False))

    def test_not_permitted(self):
        """It is said instead of being taken for empty."""
        empty, message = drain({}, errors={4: Permanent("KafkaAuthorizationFailed", "may not describe log dirs")})
        assert empty is None
        assert "may not describe log dirs" in message


class TestNotLive:
    """A broker that is gone cannot be asked; the others are, whether they hold what is hidden from us."""

    def test_nothing_is_hidden(self):
        assert drain({1: PAYROLL, 2: EMPTY}, live=(1, 2))[0] is True

    def test_something_is(self):
        empty, message = drain({1: PAYROLL, 2: EMPTY}, live=(1, 2), hidden={"payroll"})
        assert empty is None
        assert "payroll" in message
