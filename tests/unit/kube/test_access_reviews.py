"""The reviews that the operator requests for a token, and how it reads the answers.

`tests/kube/test_report_port.py` asks a real one.
"""

import pytest
from tests.fakes.reviewing_api_server import ReviewingApiServer

from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.access_reviews import AccessReviews


@pytest.fixture
def server():
    return ReviewingApiServer()


class TestUser:
    async def test_a_known_token(self, server):
        user = await AccessReviews(server).user_of("token-of-ann")
        assert user is not None
        assert user.attributes["username"] == "ann"
        assert server.reviews == [("TokenReview", {"token": "token-of-ann"})]

    async def test_an_unknown_or_expired_token(self, server):
        assert await AccessReviews(server).user_of("another") is None

    async def test_for_another_audience(self, server):
        """A token for the report is not accepted for the API server, nor the other way round."""
        server.tokens["for-the-report"] = ("ann", "report")
        assert await AccessReviews(server).user_of("for-the-report") is None
        assert await AccessReviews(server, "report").user_of("token-of-ann") is None
        assert await AccessReviews(server, "report").user_of("for-the-report") is not None

    async def test_an_authenticator_without_audiences(self, server, monkeypatch):
        """If the answer has no audiences, the token is for the API server."""
        monkeypatch.setattr(server, "_TokenReview", lambda _: {"authenticated": True, "user": {"username": "ann"}})
        assert await AccessReviews(server, "report").user_of("t") is None
        assert await AccessReviews(server).user_of("t") is not None

    async def test_a_failure_is_no_answer(self, server):
        server.failures = [Transient("ApiServerUnreachable", "no answer")]
        with pytest.raises(Transient):
            await AccessReviews(server).user_of("token-of-ann")


class TestMayGet:
    async def test_everything_about_the_user_is_repeated(self, server):
        """Authorizers may decide by group, uid and extra."""
        reviews = AccessReviews(server)
        user = await reviews.user_of("token-of-ann")
        assert await reviews.may_get(user, "kafka", "r")
        assert server.reviews[-1] == (
            "SubjectAccessReview",
            {
                "resourceAttributes": {
                    "verb": "get",
                    "group": "kafkarebalance.dev",
                    "version": "v1alpha1",
                    "resource": "kafkarebalances",
                    "namespace": "kafka",
                    "name": "r",
                },
                "user": "ann",
                "uid": "uid-ann",
                "groups": ["system:authenticated"],
                "extra": {"k": ["v"]},
            },
        )

    async def test_no_permission(self, server):
        reviews = AccessReviews(server)
        for token, namespace, name in (
            ("token-of-bob", "kafka", "r"),
            ("token-of-ann", "kafka", "other"),
            ("token-of-ann", "payments", "r"),
        ):
            user = await reviews.user_of(token)
            assert not await reviews.may_get(user, namespace, name)
