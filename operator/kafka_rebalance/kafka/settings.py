"""The connection settings of one Kafka cluster, and their rendering for each of the two client libraries.

Nothing here connects. Secrets leave this module only in the two renderings, never in a repr, a log line or an error:
the adapters pass every message of a client library through `ConnectionSettings.redact`.
"""

import base64
import os
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from kafka_rebalance.api.connection import SaslMechanism
from kafka_rebalance.errors import Permanent
from kafka_rebalance.reasons import Reason

CLIENT_ID = "kafka-rebalance"
METADATA_REFRESH_MS = 3_000
"""With librdkafka's default of five minutes a client can stay with a dead controller for minutes."""
SOCKET_TIMEOUT_MS = 8_000
"""Below CALL_SECONDS, so that a client library reports its own time-out before the caller gives up."""
_TURN_SECONDS = 4.0
"""Below CALL_SECONDS: then a client decodes beside others."""
_PAUSE_SECONDS = 0.005
"""After this time, threads that wait for Python's lock ask for it again, and the next one to decode could be first."""
_decoding = threading.Lock()
_MASK = "•••"
_MASKED = "\0"


class Secret(str):
    """A string that both client libraries accept and that prints as dots: kafka-python logs its configuration."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _MASK


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """A client of an OAuth server. ``ca_pem`` verifies the server; without it the system's CAs do.

    It is not decoded before a token is requested, in a thread or in the process of an inline connection.
    """

    token_endpoint: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    ca_pem: str | None = field(default=None, repr=False)
    secret_lines: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """What is masked: the client secret, also as it is sent."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "secret_lines", _lines(self.client_secret, self._quoted_secret, self.login))
        if not (self.client_id and self.client_secret):
            raise Permanent(Reason.KAFKA_SETTINGS_INVALID, "OAUTHBEARER requires a client id and a client secret")
        if not self.token_endpoint.startswith(("https://", "http://")):
            raise Permanent(Reason.KAFKA_SETTINGS_INVALID, "the token endpoint is not an https or http address")

    @property
    def login(self) -> str:
        """The credentials of HTTP's Basic authentication.

        RFC 6749, section 2.3.1: both are encoded first; spaces as %20, because some servers take + literally.
        """
        return base64.b64encode(f"{quote(self.client_id, safe='')}:{self._quoted_secret}".encode()).decode()

    def redact(self, text: str) -> str:
        """``text`` without the client secret, also as it is sent."""
        return _masked(text, self.secret_lines)

    @property
    def _quoted_secret(self) -> str:
        return quote(self.client_secret, safe="")


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """One cluster: ``host:port,host:port``, with optional TLS and SASL.

    ``tls`` without ``ca_pem`` trusts the system's CAs; a client certificate or a CA implies ``tls``.
    ``receive_buffer_bytes``: of each connection; None: the kernel chooses, up to several MiB.
    """

    bootstrap_servers: str
    tls: bool = False
    ca_pem: str | None = field(default=None, repr=False)
    client_cert_pem: str | None = field(default=None, repr=False)
    client_key_pem: str | None = field(default=None, repr=False)
    sasl_mechanism: SaslMechanism | None = None
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    oauth: OAuthClient | None = None
    receive_buffer_bytes: int | None = None
    _secret_lines: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        of_oauth = self.oauth.secret_lines if self.oauth else ()
        object.__setattr__(self, "_secret_lines", _lines(self.password, self.client_key_pem, *of_oauth))
        if bool(self.client_cert_pem) != bool(self.client_key_pem):
            raise Permanent(
                Reason.KAFKA_SETTINGS_INVALID, "a client certificate requires its key, and a key its certificate"
            )
        if self.sasl_mechanism is SaslMechanism.OAUTHBEARER:
            if self.oauth is None:
                raise Permanent(Reason.KAFKA_SETTINGS_INVALID, "OAUTHBEARER requires an OAuth client")
        elif self.sasl_mechanism is not None and not (self.username and self.password):
            raise Permanent(Reason.KAFKA_SETTINGS_INVALID, f"{self.sasl_mechanism} requires a user name and a password")

    @property
    def encrypted(self) -> bool:
        """Whether connections use TLS."""
        return self.tls or bool(self.ca_pem or self.client_cert_pem)

    @property
    def security_protocol(self) -> str:
        """Kafka's name for the combination: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        transport = "SSL" if self.encrypted else "PLAINTEXT"
        return f"SASL_{transport}" if self.sasl_mechanism else transport

    def redact(self, text: str) -> str:
        """``text`` without the secrets, in case a client library quotes them."""
        return _masked(text, self._secret_lines)


def librdkafka_config(settings: ConnectionSettings) -> dict[str, Any]:
    """The configuration of confluent-kafka's AdminClient; the adapter adds the callbacks."""
    config: dict[str, Any] = {
        "bootstrap.servers": settings.bootstrap_servers,
        "client.id": CLIENT_ID,
        "security.protocol": settings.security_protocol,
        # Reading the metadata of a missing topic would create it, also one that was just deleted.
        "allow.auto.create.topics": False,
        "topic.metadata.refresh.interval.ms": METADATA_REFRESH_MS,
        "socket.timeout.ms": SOCKET_TIMEOUT_MS,
        "socket.connection.setup.timeout.ms": SOCKET_TIMEOUT_MS,
        "reconnect.backoff.max.ms": 1_000,
        # Errors are reported through error_cb; on stderr every attempt to reach a dead broker would show.
        "log_level": 2,
        "log.connection.close": False,
    }
    if settings.receive_buffer_bytes is not None:
        config["socket.receive.buffer.bytes"] = settings.receive_buffer_bytes
    if settings.encrypted:
        if settings.ca_pem:
            config["ssl.ca.pem"] = settings.ca_pem
        else:
            config["ssl.ca.location"] = "probe"
    if settings.client_cert_pem and settings.client_key_pem:
        config["ssl.certificate.pem"] = settings.client_cert_pem
        config["ssl.key.pem"] = Secret(settings.client_key_pem)
    if settings.sasl_mechanism:
        config["sasl.mechanism"] = settings.sasl_mechanism.value
    if settings.username and settings.password:
        config["sasl.username"] = settings.username
        config["sasl.password"] = Secret(settings.password)
    return config


def kafka_python_config(settings: ConnectionSettings) -> dict[str, Any]:
    """The keyword arguments of kafka-python's KafkaAdminClient; the adapter adds the token provider."""
    config: dict[str, Any] = {
        "bootstrap_servers": [server.strip() for server in settings.bootstrap_servers.split(",") if server.strip()],
        "client_id": CLIENT_ID,
        "security_protocol": settings.security_protocol,
        "metadata_max_age_ms": METADATA_REFRESH_MS,
        "request_timeout_ms": SOCKET_TIMEOUT_MS,
        "reconnect_backoff_max_ms": 1_000,
        "receive_buffer_bytes": settings.receive_buffer_bytes,
    }
    if settings.encrypted:
        config["ssl_context"] = _ssl_context(settings)
    if settings.sasl_mechanism:
        config["sasl_mechanism"] = settings.sasl_mechanism.value
    if settings.username and settings.password:
        config["sasl_plain_username"] = settings.username
        config["sasl_plain_password"] = Secret(settings.password)
    return config


def trusting(ca_pem: str | None, name: str = "the CA") -> ssl.SSLContext:
    """A context that verifies servers, and their names, with these CAs, or with those of the system.

    ``name``: of the CA in the message of the Permanent for what OpenSSL does not decode.
    """
    try:
        with decoding():
            return ssl.create_default_context(cadata=ca_pem or None)
    except (ssl.SSLError, ValueError) as error:
        raise Permanent(Reason.KAFKA_SETTINGS_INVALID, f"{name} is not a PEM certificate") from error


@contextmanager
def decoding() -> Iterator[None]:
    """Wait for the turn to decode certificates, but not for long, and hold it while the context is open.

    While OpenSSL decodes, no other thread of Python runs: the event loop would wait for all that are about to decode.
    It goes on in the pause between two turns.
    """
    held = _decoding.acquire(timeout=_TURN_SECONDS)
    try:
        yield
        time.sleep(_PAUSE_SECONDS)
    finally:
        if held:
            _decoding.release()


def _lines(*secrets: str | None) -> tuple[str, ...]:
    """The lines of the secrets, the longest first: one may be a part of another."""
    lines = {line for secret in secrets if secret for line in secret.splitlines() if line}
    return tuple(sorted(lines, key=len, reverse=True))


def _masked(text: str, lines: tuple[str, ...]) -> str:
    """Without any line of the secrets: line breaks may be quoted as escapes, or left out at the end.

    One character stands for a secret until all are masked: it is as long as the shortest line, so that the text does
    not become longer with each line that is in the mask itself.
    """
    for line in lines:
        text = text.replace(line, _MASKED)
    return text.replace(_MASKED, _MASK)


def _ssl_context(settings: ConnectionSettings) -> ssl.SSLContext:
    context = trusting(settings.ca_pem)
    if settings.client_cert_pem and settings.client_key_pem:
        _load_client_certificate(context, settings.client_cert_pem, settings.client_key_pem)
    return context


def _load_client_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """OpenSSL reads certificate and key only from a path: use one in memory, so that no key is written to disk."""
    memory = os.memfd_create("client-certificate")
    try:
        with os.fdopen(os.dup(memory), "w") as pem:
            pem.write(f"{certificate.strip()}\n{key.strip()}\n")
        context.load_cert_chain(f"/proc/self/fd/{memory}", password="")
    except ssl.SSLError as error:
        raise Permanent(
            Reason.KAFKA_SETTINGS_INVALID, "the client certificate and its key are not a matching, unencrypted PEM pair"
        ) from error
    finally:
        os.close(memory)
