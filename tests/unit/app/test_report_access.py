"""Access to a report: reviews of the API server, cached for a bounded time, at a bounded rate."""

import pytest
from tests.fakes.reviewing_api_server import ReviewingApiServer
from tests.fakes.settable_clock import SettableClock

from kafka_rebalance.app import report_access
from kafka_rebalance.app.report_access import Access, ReportAccess
from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.access_reviews import AccessReviews


@pytest.fixture
def clock():
    return SettableClock(100.0)


@pytest.fixture
def server():
    return ReviewingApiServer()


@pytest.fixture
def access(server, clock):
    return ReportAccess(AccessReviews(server), clock)


class TestAnswers:
    async def test_by_token_and_resource(self, access):
        assert await access.of("token-of-ann", "kafka", "r") is Access.GRANTED
        assert await access.of("token-of-bob", "kafka", "r") is Access.DENIED
        assert await access.of("token-of-ann", "kafka", "other") is Access.DENIED
        assert await access.of("made-up", "kafka", "r") is Access.UNKNOWN_TOKEN

    async def test_are_kept_for_seconds(self, access, server, clock):
        """Revoked and granted rights take effect within this time."""
        assert await access.of("token-of-ann", "kafka", "r") is Access.GRANTED
        server.readers = {("bob", "kafka", "r")}
        clock.now += 9.9
        assert await access.of("token-of-ann", "kafka", "r") is Access.GRANTED
        assert len(server.reviews) == 2
        clock.now += 0.2
        assert await access.of("token-of-ann", "kafka", "r") is Access.DENIED

    async def test_a_token_that_has_expired(self, access, server, clock):
        assert await access.of("token-of-ann", "kafka", "r") is Access.GRANTED
        del server.tokens["token-of-ann"]
        clock.now += 10
        assert await access.of("token-of-ann", "kafka", "r") is Access.UNKNOWN_TOKEN

    async def test_a_failure_is_not_kept(self, access, server):
        server.failures = [Transient("ApiServerUnreachable", "no answer")]
        with pytest.raises(Transient):
            await access.of("token-of-ann", "kafka", "r")
        assert await access.of("token-of-ann", "kafka", "r") is Access.GRANTED

    async def test_bytes_that_no_token_has(self, access, server):
        """A header may have them; neither a review nor an error follows."""
        assert await access.of("a\udcff", "kafka", "r") is Access.UNKNOWN_TOKEN
        assert server.reviews == []

    async def test_no_token_is_kept(self, access):
        await access.of("token-of-ann", "kafka", "r")
        assert b"token-of-ann" not in b"".join(access._answers)


class TestBounds:
    async def test_the_rate_of_reviews(self, access, server, clock):
        """Invalid tokens cause a bounded rate of reviews. Users with a cached answer keep their access meanwhile."""
        assert await access.of("token-of-ann", "kafka", "r") is Access.GRANTED
        found = [await access.of(f"made-up-{n}", "kafka", "r") for n in range(100)]
        reviewed = found.count(Access.UNKNOWN_TOKEN)
        assert reviewed == report_access._BURST - 1
        assert found[reviewed:] == [Access.BUSY] * (100 - reviewed)
        assert await access.of("token-of-ann", "kafka", "r") is Access.GRANTED
        clock.now += 1
        again = [await access.of(f"other-{n}", "kafka", "r") for n in range(100)]
        assert again.count(Access.UNKNOWN_TOKEN) == report_access.REVIEWS_PER_SECOND

    async def test_the_number_of_answers(self, access, clock, monkeypatch):
        monkeypatch.setattr(report_access, "_MOST_ANSWERS", 5)
        for n in range(12):
            await access.of(f"made-up-{n}", "kafka", "r")
        assert len(access._answers) == 5
