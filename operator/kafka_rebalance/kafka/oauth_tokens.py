"""Access tokens for OAUTHBEARER, requested with the credentials of an OAuth client (RFC 6749, section 4.4).

Both client libraries of a cluster take their tokens from one `TokenSource`. Tokens are kept in memory only; neither
they nor the client secret reach an error or a log line.
"""

import asyncio
import json
import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kafka_rebalance.errors import Permanent, RebalanceError, Transient
from kafka_rebalance.kafka.settings import OAuthClient, trusting
from kafka_rebalance.reasons import Reason

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 4.0
"""Below the time of a call to Kafka, so that the call reports why it has no token."""
_LONGEST_ANSWER = 1_000_000
_DEFAULT_LIFETIME_SECONDS = 300.0
"""Where the answer does not contain ``expires_in``, which RFC 6749 only recommends."""
_REFRESH_AT = 0.75
"""A fraction of the lifetime. librdkafka requests a new token at 0.8, kafka-python when 0.85 of the session is over."""
_RETRY_SECONDS = 2.0
"""After a failure; client libraries would otherwise request a token for every attempt to connect."""
_CA = "the CA of the OAuth server, in sasl.caSecretRef or in the truststore of sasl.jaas.config,"
_TRY_LATER = {408, 425, 429}


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A bearer token; times are seconds since the epoch."""

    value: str = field(repr=False)
    refresh_at: float
    expires_at: float


class TokenSource:
    """The present token of one OAuth client; thread-safe.

    A token is replaced before it expires. If that fails it is used until it expires.
    """

    def __init__(self, client: OAuthClient, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._token: AccessToken | None = None
        self._failed: RebalanceError | None = None
        self._retry_at = 0.0

    @property
    def failure(self) -> RebalanceError | None:
        """Why there is no valid token; None if there is one, or if none was requested yet."""
        return None if self._valid(self._token) else self._failed

    def token(self) -> AccessToken:
        """A valid token; may request one, which blocks for some seconds: never in an event loop.

        Permanent("KafkaAuthenticationFailed") if the token endpoint refuses the client, Transient("TokenUnavailable")
        if it does not answer.
        """
        with self._lock:
            now = self._clock()
            if (self._token is None or now >= self._token.refresh_at) and now >= self._retry_at:
                self._replace(now)
            if self._token is None or not self._valid(self._token):
                raise self._failed or self._unavailable("the token has expired")
            return self._token

    def for_librdkafka(self, _configured: str | None) -> tuple[str, float]:
        """Token and end of its lifetime, for ``oauth_cb``."""
        token = self.token()
        return token.value, token.expires_at

    def _valid(self, token: AccessToken | None) -> bool:
        return token is not None and self._clock() < token.expires_at

    def _replace(self, now: float) -> None:
        try:
            self._token, self._failed = self._requested(now), None
        except RebalanceError as failed:
            self._failed, self._retry_at = failed, now + _RETRY_SECONDS
            if self._token is not None and self._valid(self._token):
                log.warning("%s; the present token is valid for %.0f s", failed, self._token.expires_at - now)

    def _requested(self, now: float) -> AccessToken:
        import aiohttp

        try:
            status, body = asyncio.run(_asked(self._client))
        except TimeoutError as error:
            raise self._unavailable(f"no answer in {_TIMEOUT_SECONDS:.0f} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise self._unavailable(_said(error)) from error
        if status >= 500 or status in _TRY_LATER:
            raise self._unavailable(f"HTTP status {status}")
        if 300 <= status < 400:
            raise self._refused(f"HTTP status {status}: redirects are not followed, name the final address")
        if status != 200:
            raise self._refused(f"HTTP status {status}{self._explained(body)}")
        try:
            answer = json.loads(body)
            token = answer["access_token"]
            lifetime = float(answer.get("expires_in") or _DEFAULT_LIFETIME_SECONDS)
        except (ValueError, TypeError, LookupError, AttributeError):
            # Not chained: the answer may contain a token.
            raise self._refused("the answer is not JSON with an access_token") from None
        except (OverflowError, RecursionError):
            raise self._unavailable("the answer is nested too deeply, or its expires_in is too large") from None
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not 0 < lifetime < math.inf:
            raise self._refused("the answer has no usable access_token")
        return AccessToken(token, now + _REFRESH_AT * lifetime, now + lifetime)

    def _explained(self, body: bytes) -> str:
        """The error of RFC 6749, section 5.2; empty where the body has none. It may quote the request."""
        try:
            answer = json.loads(body)
            parts = [answer[name] for name in ("error", "error_description") if isinstance(answer.get(name), str)]
        except (ValueError, AttributeError, RecursionError):
            return ""
        shown = "".join(character for character in ": ".join(parts) if character.isprintable())
        # Without secrets before it is cut: the beginning of one is not found any more.
        return f" ({self._client.redact(shown)[:300]})" if shown else ""

    def _refused(self, why: str) -> Permanent:
        return Permanent(
            Reason.KAFKA_AUTHENTICATION_FAILED,
            f"{self._client.token_endpoint} issues no token to this OAuth client: {self._client.redact(why)}. Check "
            "its id, its secret and the scope",
        )

    def _unavailable(self, why: str) -> Transient:
        return Transient(
            Reason.TOKEN_UNAVAILABLE, f"No token from {self._client.token_endpoint}: {self._client.redact(why)}"
        )


async def _asked(client: OAuthClient) -> tuple[int, bytes]:
    """Status and body of the answer to one request of the client credentials grant."""
    import aiohttp

    form = {"grant_type": "client_credentials", **({"scope": client.scope} if client.scope else {})}
    headers = {"Authorization": f"Basic {client.login}", "Accept": "application/json"}
    # Without redirects: the credentials are for this endpoint only.
    context = trusting(client.ca_pem, _CA)
    options: dict[str, Any] = {"data": form, "ssl": context, "allow_redirects": False}
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS), trust_env=True) as session,
        session.post(client.token_endpoint, headers=headers, **options) as answer,
    ):
        body = b""
        async for chunk in answer.content.iter_any():
            body += chunk
            if len(body) > _LONGEST_ANSWER:
                raise ValueError("the answer is too long")
        return answer.status, body


def _said(error: Exception) -> str:
    """The error as text; only its type if aiohttp quotes the server's answer.

    The answer is not trusted, because the author of a resource chooses the server.
    """
    import aiohttp

    quotes = isinstance(error, aiohttp.ClientError) and not isinstance(error, (OSError, aiohttp.InvalidURL))
    if quotes:
        return f"no readable HTTP answer ({type(error).__name__})"
    text = str(error) or type(error).__name__
    # It contains the address of the context in our memory, so that each text would be another one.
    return text.replace(f" ssl:{error.ssl}", "") if isinstance(error, aiohttp.ClientConnectorError) else text
