"""Access tokens for OAUTHBEARER, requested with the credentials of an OAuth client (RFC 6749, section 4.4).

Both client libraries of a cluster take their tokens from one `TokenSource`. Tokens are kept in memory only; neither
they nor the client secret reach an error or a log line.
"""

from __future__ import annotations

import base64
import http.client
import json
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

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
"""Of the lifetime. librdkafka requests a new token at 0.8, kafka-python when 0.85 of the session is over."""
_RETRY_SECONDS = 2.0
"""After a failure; client libraries would otherwise request a token for every attempt to connect."""
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
        """A valid token; may request one, which blocks for some seconds.

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
        try:
            answer = json.loads(self._post())
            token = answer["access_token"]
            lifetime = float(answer.get("expires_in") or _DEFAULT_LIFETIME_SECONDS)
        except (ValueError, TypeError, LookupError, AttributeError):
            # Not chained: the answer may contain a token.
            raise self._refused("the answer is not JSON with an access_token") from None
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or lifetime <= 0:
            raise self._refused("the answer has no usable access_token")
        return AccessToken(token, now + _REFRESH_AT * lifetime, now + lifetime)

    def _post(self) -> bytes:
        """The body of the answer to one request of the client credentials grant."""
        client = self._client
        # RFC 6749, section 2.3.1: both are encoded first; spaces as %20, because some servers take + literally.
        login = ":".join(quote(part, safe="") for part in (client.client_id, client.client_secret)).encode()
        form = {"grant_type": "client_credentials", **({"scope": client.scope} if client.scope else {})}
        headers = {"Authorization": f"Basic {base64.b64encode(login).decode()}", "Accept": "application/json"}
        # Without redirects: the credentials are for this endpoint only.
        opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=trusting(client.ca_pem)), _NoRedirects()
        )
        try:
            request = urllib.request.Request(client.token_endpoint, urlencode(form).encode(), headers)  # noqa: S310 - OAuthClient checks the scheme
            with opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
                body: bytes = answer.read(_LONGEST_ANSWER)
                return body
        except urllib.error.HTTPError as error:
            with error:
                raise self._status(error) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._unavailable(str(getattr(error, "reason", error)) or type(error).__name__) from error

    def _status(self, error: urllib.error.HTTPError) -> RebalanceError:
        if error.code >= 500 or error.code in _TRY_LATER:
            return self._unavailable(f"HTTP status {error.code}")
        if error.code < 400:
            return self._refused(f"HTTP status {error.code}: redirects are not followed, name the final address")
        return self._refused(f"HTTP status {error.code}{_explained(error)}")

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


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: Any) -> None:
        return None


def _explained(error: urllib.error.HTTPError) -> str:
    """The error of RFC 6749, section 5.2; empty where the body has none."""
    try:
        answer = json.loads(error.read(_LONGEST_ANSWER))
        parts = [answer[name] for name in ("error", "error_description") if isinstance(answer.get(name), str)]
    except (OSError, http.client.HTTPException, ValueError, AttributeError):
        return ""
    shown = "".join(character for character in ": ".join(parts) if character.isprintable())
    return f" ({shown[:300]})" if shown else ""
