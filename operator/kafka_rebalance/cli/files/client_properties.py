"""Converts the properties file of Kafka's own tools (``--command-config``) to settings of our clients.

Reads the properties of the connection. One that is not supported here is refused by name, because a connection must
not be less secure than configured. Other properties (timeouts, ``client.id``) are ignored, and so are, as in Kafka,
those that the security protocol does not use. Every error is a ValueError that names the property and never quotes
a value that may be a secret.
"""

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

from javaproperties import InvalidUEscapeError, KeyValue, parse

from kafka_rebalance.api.connection import SaslMechanism
from kafka_rebalance.kafka.jaas import parse_login
from kafka_rebalance.kafka.settings import ConnectionSettings, OAuthClient

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_TRUSTSTORE = "ssl.truststore"
_KEYSTORE = "ssl.keystore"
_VERIFY_NAME = "ssl.endpoint.identification.algorithm"
_READ = {
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "sasl.username",
    "sasl.password",
    f"{_TRUSTSTORE}.type",
    f"{_TRUSTSTORE}.location",
    f"{_TRUSTSTORE}.certificates",
    f"{_KEYSTORE}.type",
    f"{_KEYSTORE}.location",
    f"{_KEYSTORE}.certificate.chain",
    f"{_KEYSTORE}.key",
    _VERIFY_NAME,
    "ssl.enabled.protocols",
    "ssl.protocol",  # ignored: TLS 1.2 and 1.3 are supported
}
_OAUTH = "sasl.oauthbearer."
_TOKEN_ENDPOINT = f"{_OAUTH}token.endpoint.url"
_CLIENT_ID = f"{_OAUTH}client.credentials.client.id"
_CLIENT_SECRET = f"{_OAUTH}client.credentials.client.secret"
_SCOPE = f"{_OAUTH}scope"
_LOGIN_HANDLER = "sasl.login.callback.handler.class"
_LOGIN_HANDLERS = [
    f"org.apache.kafka.common.security.oauthbearer.{package}OAuthBearerLoginCallbackHandler"
    for package in ("", "secured.")  # the second until Kafka 3.9
]
_READ_WITH_TOKENS = {_LOGIN_HANDLER, _TOKEN_ENDPOINT, _CLIENT_ID, _CLIENT_SECRET, _SCOPE}
_FOR_BROKERS = tuple(
    f"{_OAUTH}{name}"
    for name in (
        "clock.skew.",
        "expected.",
        "header.urlencode",  # ignored: id and secret are always encoded, as RFC 6749 requires
        "jwks.",
        "jwt.validator.",
        "scope.claim.",
        "sub.claim.",
    )
)
"""Properties by which brokers verify tokens; Kafka's own clients verify theirs before they use them."""
_OF_OTHER_MECHANISMS = (
    "sasl.kerberos.",
    "sasl.login.connect.",
    "sasl.login.read.",
    "sasl.login.refresh.",
    "sasl.login.retry.",
)
_TO_PEM = {
    _TRUSTSTORE: "'keytool -list -rfc -keystore STORE > ca.pem' writes its certificates",
    _KEYSTORE: "'openssl pkcs12 -in STORE.p12 -nodes -out client.pem' writes certificate and key; of a JKS store "
    "'keytool -importkeystore -srckeystore STORE -destkeystore STORE.p12 -deststoretype PKCS12' first makes PKCS12",
}
_LOGIN_MODULES = {"PlainLoginModule", "ScramLoginModule"}

_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]+)-----END \1-----")


def parse_properties(data: bytes) -> dict[str, str]:
    """The properties, with values stripped of spaces, as in Kafka. ValueError names the line."""
    found: dict[str, str] = {}
    line = 1
    try:
        for element in parse(data):
            if isinstance(element, KeyValue):
                found[element.key] = element.value.strip()
            line += element.source.count("\n") or 1
    except InvalidUEscapeError:
        # Not chained: it quotes part of the value.
        raise ValueError(rf"line {line}: \u must be followed by four hexadecimal digits") from None
    return found


def connection_settings(properties: Mapping[str, str], bootstrap_servers: str) -> ConnectionSettings:
    """The settings for these servers and properties. Reads the PEM files that the properties name."""
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise ValueError(f"security.protocol is not one of {', '.join(_PROTOCOLS)}")
    encrypted, authenticated = protocol.endswith("SSL"), protocol.startswith("SASL")
    mechanism = _mechanism(properties) if authenticated else None
    ca = _authorities(properties) if encrypted else None
    certificate, key = _client_certificate(properties) if encrypted else (None, None)
    with_tokens = mechanism is SaslMechanism.OAUTHBEARER
    _refuse_the_rest(properties, encrypted=encrypted, authenticated=authenticated, with_tokens=with_tokens)
    username, password = _credentials(properties) if authenticated and not with_tokens else (None, None)
    return ConnectionSettings(
        bootstrap_servers=bootstrap_servers,
        tls=encrypted,
        ca_pem=ca,
        client_cert_pem=certificate,
        client_key_pem=key,
        sasl_mechanism=mechanism,
        username=username,
        password=password,
        oauth=_oauth_client(properties) if with_tokens else None,
    )


def _mechanism(properties: Mapping[str, str]) -> SaslMechanism:
    mechanism = properties.get("sasl.mechanism")
    if mechanism in list(SaslMechanism):
        return SaslMechanism(mechanism)
    unsupported = "is GSSAPI" if mechanism == "GSSAPI" else "is unknown"
    said = unsupported if mechanism else "is not set, which means GSSAPI"
    raise ValueError(f"sasl.mechanism {said}; supported are {', '.join(SaslMechanism)}")


def _credentials(properties: Mapping[str, str]) -> tuple[str, str]:
    """User name and password, from the login module or from the properties of librdkafka."""
    jaas = properties.get("sasl.jaas.config")
    if not jaas:
        username, password = properties.get("sasl.username"), properties.get("sasl.password")
        if not (username and password):
            raise ValueError(
                "user name and password are required: in sasl.jaas.config, or in sasl.username and sasl.password"
            )
        return username, password
    module, options = parse_login(jaas)
    if module not in _LOGIN_MODULES:
        raise ValueError(f"the login module in sasl.jaas.config is not one of {', '.join(sorted(_LOGIN_MODULES))}")
    if options.get("tokenauth", "").lower() == "true":
        raise ValueError("tokenauth in sasl.jaas.config is not supported: delegation tokens cannot be used")
    if lacking := [name for name in ("username", "password") if not options.get(name)]:
        raise ValueError(f"sasl.jaas.config has no {' and no '.join(lacking)}")
    return options["username"], options["password"]


def _oauth_client(properties: Mapping[str, str]) -> OAuthClient:
    """The client of the OAuth server. Properties take precedence over the options of the login module, as in Kafka."""
    if properties.get(_LOGIN_HANDLER) not in _LOGIN_HANDLERS:
        raise ValueError(
            f"{_LOGIN_HANDLER} is not {_LOGIN_HANDLERS[0]}, which requests tokens; others are not supported. Kafka's "
            "default makes unsigned tokens"
        )
    endpoint = properties.get(_TOKEN_ENDPOINT, "")
    if not endpoint.startswith(("https://", "http://")):
        raise ValueError(f"{_TOKEN_ENDPOINT} must be the https address at which the OAuth server issues tokens")
    module, options = parse_login(properties.get("sasl.jaas.config") or "")
    if module != "OAuthBearerLoginModule":
        raise ValueError("the login module in sasl.jaas.config is not OAuthBearerLoginModule, as OAUTHBEARER requires")
    stores = {name: value for name, value in options.items() if name.startswith(f"{_TRUSTSTORE}.")}
    if others := sorted(options.keys() - {"clientId", "clientSecret", "scope"} - (stores.keys() & _READ)):
        raise ValueError(f"{others[0]} in sasl.jaas.config is not supported")
    try:
        ca = _authorities(stores)
    except ValueError as error:
        raise ValueError(f"sasl.jaas.config: {error}") from error
    client_id = properties.get(_CLIENT_ID) or options.get("clientId")
    client_secret = properties.get(_CLIENT_SECRET) or options.get("clientSecret")
    if not (client_id and client_secret):
        raise ValueError(
            f"client id and secret are required: clientId and clientSecret in sasl.jaas.config, or {_CLIENT_ID} and "
            f"{_CLIENT_SECRET}"
        )
    scope = properties.get(_SCOPE) or options.get("scope") or None
    return OAuthClient(endpoint, client_id, client_secret, scope, ca)


def _authorities(properties: Mapping[str, str]) -> str | None:
    """The CA certificates in PEM; None, for those of the system, without a truststore."""
    name, text = _store(properties, _TRUSTSTORE, "certificates")
    return _certificates(name, text) if text is not None else None


def _client_certificate(properties: Mapping[str, str]) -> tuple[str, str] | tuple[None, None]:
    """Certificate chain and key, from one file or from one property each."""
    chain_name, chain = _store(properties, _KEYSTORE, "certificate.chain")
    key_name, key = _store(properties, _KEYSTORE, "key")
    if chain is None and key is None:
        return None, None
    if chain is None or key is None:
        raise ValueError(f"{chain_name} and {key_name} must be set together")
    keys = _blocks(key, "PRIVATE KEY")
    if len(keys) != 1 or "-BEGIN ENCRYPTED" in keys[0]:
        raise ValueError(
            f"{key_name} must contain one private key in PEM without a password, as written by "
            "'openssl pkey -in KEY -out PLAIN'"
        )
    return _certificates(chain_name, chain), keys[0]


def _certificates(name: str, text: str) -> str:
    if found := _blocks(text, "CERTIFICATE"):
        return "".join(found)
    raise ValueError(f"{name} contains no certificate in PEM")


def _store(properties: Mapping[str, str], store: str, part: str) -> tuple[str, str | None]:
    """The property and the PEM text of one part of a store. ValueError for a store that is not PEM."""
    location, inline = properties.get(f"{store}.location"), properties.get(f"{store}.{part}")
    if not location and not inline:
        return f"{store}.{part}", None
    if location and inline:
        raise ValueError(f"{store}.location and {store}.{part} exclude each other")
    kind = properties.get(f"{store}.type")
    if kind is None or kind.upper() != "PEM":
        said = (
            "is not set, which means JKS" if not kind else f"is {kind}" if kind in {"JKS", "PKCS12"} else "is not PEM"
        )
        raise ValueError(f"{store}.type {said}; only PEM is supported. {_TO_PEM[store]}; then {store}.type=PEM")
    if not location:
        return f"{store}.{part}", inline
    try:
        return f"{store}.location", Path(location).read_text(encoding="ascii", errors="replace")
    except OSError as unreadable:
        raise ValueError(f"{store}.location: {unreadable.strerror}: {location}") from unreadable


def _blocks(text: str, kind: str) -> list[str]:
    """The PEM blocks of a kind, with line breaks: in a property, spaces may replace them."""
    return [
        f"-----BEGIN {label}-----\n{textwrap.fill(''.join(body.split()), 64)}\n-----END {label}-----\n"
        for label, body in _PEM.findall(text)
        if label.endswith(kind)
    ]


def _refuse_the_rest(properties: Mapping[str, str], *, encrypted: bool, authenticated: bool, with_tokens: bool) -> None:
    """Refuse properties that affect security and are not supported."""
    if encrypted:
        if properties.get(_VERIFY_NAME, "https").lower() != "https":
            raise ValueError(f"{_VERIFY_NAME} is not https; the host names of brokers are always verified")
        versions = properties.get("ssl.enabled.protocols")
        if versions and "TLSv1.2" not in {version.strip() for version in versions.split(",")}:
            raise ValueError("ssl.enabled.protocols lacks TLSv1.2, which the client may use")
    read = _READ | _READ_WITH_TOKENS if with_tokens else _READ
    ignored = (*_OF_OTHER_MECHANISMS, *(_FOR_BROKERS if with_tokens else (_OAUTH,)))
    for name in sorted(name for name, value in properties.items() if value and name not in read):
        concerns_us = (
            name.startswith(("security.", "config.providers"))
            or (encrypted and name.startswith("ssl."))
            or (authenticated and name.startswith("sasl.") and not name.startswith(ignored))
        )
        if concerns_us:
            raise ValueError(f"{name} is not supported, and it affects how connections are secured")
