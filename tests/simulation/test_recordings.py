"""The simulated brokers behave as recorded: the cases of `tests/contract` run against them, for each release line.

These are the very same classes. Left out are cases about a client library or Kafka's own tools, and cases about what is
not simulated; each is named with None.
"""

import pytest
from tests.contract import (
    test_cancel,
    test_configs,
    test_cordon,
    test_elections,
    test_outage,
    test_reassignment,
    test_redirect,
    test_replaced_broker,
    test_throttling,
    test_topics,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


class TestPureAdd(test_reassignment.TestPureAdd):
    pass


class TestSwap(test_reassignment.TestSwap):
    pass


class TestAtOnce(test_reassignment.TestAtOnce):
    pass


class TestInSync(test_reassignment.TestInSync):
    pass


class TestTargets(test_reassignment.TestTargets):
    pass


@pytest.mark.usefixtures("crawling")
class TestCancellationInFlight(test_cancel.TestInFlight):
    pass


@pytest.mark.usefixtures("crawling")
class TestNothingInFlight(test_cancel.TestNothingInFlight):
    pass


@pytest.mark.usefixtures("crawling")
class TestRedirects(test_redirect.TestBrokers):
    pass


class TestElectionsInFlight(test_elections.TestInFlight):
    pass


class TestElectionsAtRest(test_elections.TestAtRest):
    pass


class TestOrders(test_outage.TestOrders):
    pass


class TestAround(test_outage.TestAround):
    pass


class TestReturned(test_outage.TestReturned):
    pass


class TestReplaced(test_replaced_broker.TestReplaced):
    pass


class TestMissing(test_topics.TestMissing):
    test_librdkafka_creates_one_unless_told_otherwise = None
    test_a_listing_omits_what_is_missing_and_what_is_at_rest = None


class TestDeleted(test_topics.TestDeleted):
    pass


class TestPartitionsAdded(test_topics.TestPartitionsAdded):
    pass


class TestJustMade(test_topics.TestJustMade):
    pass


class TestThrottledReplicas(test_configs.TestThrottledReplicas):
    pass


class TestRates(test_configs.TestRates):
    test_librdkafka_takes_one_broker_per_call = None


class TestReadAfterWrite(test_configs.TestReadAfterWrite):
    pass


class TestThrottleInFlight(test_throttling.TestInFlight):
    pass


class TestSides(test_throttling.TestSides):
    pass


class TestCordonConfig(test_cordon.TestConfig):
    pass


class TestCordoned(test_cordon.TestCordoned):
    test_described_with_the_log_dirs = None
