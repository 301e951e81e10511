"""Decides whether the user of a bearer token may see the report of a KafkaRebalance, as the API server reviews it.

The answers are cached for some seconds. Reviews are limited in rate, because they are requests of the operator's own
account: requests with invalid tokens must not use up the share of the API server that the operator needs itself.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from enum import Enum, auto

from kafka_rebalance.kube.access_reviews import AccessReviews

KEPT_SECONDS = 10.0
"""How long access lasts after the API server would no longer grant it."""
REVIEWS_PER_SECOND = 10.0
_BURST = 20.0
_MOST_ANSWERS = 1024


class Access(Enum):
    """The answer. ``BUSY``: too many reviews lately, so none was made."""

    GRANTED = auto()
    DENIED = auto()
    UNKNOWN_TOKEN = auto()
    BUSY = auto()


class ReportAccess:
    """Access through one port. ``monotonic``: the clock, in seconds."""

    def __init__(self, reviews: AccessReviews, monotonic: Callable[[], float]) -> None:
        self._reviews = reviews
        self._monotonic = monotonic
        self._answers: OrderedDict[bytes, tuple[Access, float]] = OrderedDict()
        self._allowance, self._filled_at = _BURST, monotonic()

    async def of(self, token: str, namespace: str, name: str) -> Access:
        """Passes on the errors of the API server's client; errors are not cached."""
        if not token.isascii():
            return Access.UNKNOWN_TOKEN
        # A hash, so that tokens do not stay in the memory of the operator.
        key = hashlib.sha256(f"{namespace}/{name}/{token}".encode()).digest()
        answer, until = self._answers.get(key, (Access.BUSY, float("-inf")))
        now = self._monotonic()
        if now < until:
            return answer
        if not self._one_more(now):
            return Access.BUSY
        answer = await self._reviewed(token, namespace, name)
        self._answers[key] = answer, now + KEPT_SECONDS
        self._answers.move_to_end(key)
        if len(self._answers) > _MOST_ANSWERS:
            self._answers.popitem(last=False)
        return answer

    async def _reviewed(self, token: str, namespace: str, name: str) -> Access:
        user = await self._reviews.user_of(token)
        if user is None:
            return Access.UNKNOWN_TOKEN
        return Access.GRANTED if await self._reviews.may_get(user, namespace, name) else Access.DENIED

    def _one_more(self, now: float) -> bool:
        self._allowance = min(_BURST, self._allowance + (now - self._filled_at) * REVIEWS_PER_SECOND)
        self._filled_at = now
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True
