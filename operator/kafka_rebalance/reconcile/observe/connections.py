"""The settings of the Kafka clients, from a connection and the Secrets that it names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_rebalance.api.connection import ClientCertificateRef, Kafka, KafkaSource, Sasl
from kafka_rebalance.api.v1alpha1 import CONNECTIONS, parse_connection
from kafka_rebalance.errors import Permanent, Refused, Transient
from kafka_rebalance.kafka.jaas import parse_login
from kafka_rebalance.kafka.settings import ConnectionSettings, OAuthClient
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.observe.secret_text import MOST_CHAIN_BYTES, SecretText
from kafka_rebalance.reconcile.state.round_thread import computed

_JAAS = "sasl.jaas.config"
_MANY_CA_BYTES = 32 << 10
"""Of usual CAs, much less is checked in a millisecond."""


class Resolved(NamedTuple):
    """The settings of a client. ``secrets``: by name, the uids of the Secrets that they are from."""

    settings: ConnectionSettings
    secrets: Mapping[str, str]


async def connection_of(source: KafkaSource, namespace: str, kube: KubeObjects) -> tuple[Kafka, str]:
    """The connection that a resource of the namespace names, and the namespace of its Secrets.

    Refused("ConnectionNotFound") if it names a KafkaConnection that does not exist.
    """
    named = source.named
    if isinstance(named, Kafka):
        return named, namespace
    where = named.namespace or namespace
    body = await kube.get(CONNECTIONS, where, named.name)
    if body is None:
        message = f"KafkaConnection {where}/{named.name} does not exist: create it, or name another one"
        raise Refused(Reason.CONNECTION_NOT_FOUND, message)
    return parse_connection(body).spec, where


async def resolve(kafka: Kafka, namespace: str, kube: KubeObjects, only: Mapping[str, str] | None = None) -> Resolved:
    """The settings with credentials filled in.

    Transient (SecretNotFound) names the missing Secret or key, Refused (SecretInvalid) one that cannot be used.
    ``only``: by name, the uids of the Secrets that may be used; None: any. Refused (SecretNotFound) names another one.
    """
    secrets: dict[str, str] = {}

    async def read(name: str) -> SecretText:
        # Whole, in one call: the certificate and the key of one Secret always belong together, and to this uid.
        found, what = await kube.read_secret(namespace, name), f"Secret {namespace}/{name}"
        if only is not None and only.get(name) != found.uid:
            raise _another(what, recorded=name in only)
        secrets[name] = found.uid
        return SecretText(what, found.data)

    tls, sasl = kafka.tls, kafka.sasl
    ca, client = (tls.ca_secret_ref, tls.client_secret_ref) if tls else (None, None)
    pair = _pair(client, await read(client.name)) if client else (None, None)
    token_ca = sasl.ca_secret_ref if sasl else None
    token_ca_pem = await _authorities(token_ca.key, await read(token_ca.name)) if token_ca else None
    login = _login(sasl, await read(sasl.secret_ref.name), token_ca_pem) if sasl else _Login()
    settings = ConnectionSettings(
        bootstrap_servers=kafka.bootstrap_servers,
        tls=tls is not None,
        ca_pem=await _authorities(ca.key, await read(ca.name)) if ca else None,
        client_cert_pem=pair[0],
        client_key_pem=pair[1],
        sasl_mechanism=sasl.mechanism if sasl else None,
        username=login.username,
        password=login.password,
        oauth=login.oauth,
    )
    return Resolved(settings, secrets)


def _another(what: str, *, recorded: bool) -> Refused:
    """A Secret that may belong to other users than those who wrote the connection."""
    why = (
        "was created again since this connection was made" if recorded else "has no uid on record with this connection"
    )
    return Refused(
        Reason.SECRET_NOT_FOUND,
        f"{what} {why}, and no resource names the connection any more: the Secret is not used until one does",
    )


@dataclass(frozen=True, slots=True)
class _Login:
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    oauth: OAuthClient | None = None


async def _authorities(key: str, secret: SecretText) -> str:
    """The CA certificates. Many are checked in a thread: each attempt of each connection checks them again."""
    return await computed(secret.certificates, key, many=len(secret.data.get(key, b"")) > _MANY_CA_BYTES)


def _pair(ref: ClientCertificateRef, secret: SecretText) -> tuple[str, str]:
    """Certificate and key. Nothing encrypted: who wrote it also chose how long OpenSSL takes to derive its key."""
    certificate = secret.text(ref.certificate_key, MOST_CHAIN_BYTES)
    key = secret.text(ref.private_key_key)
    if "PRIVATE KEY" in certificate or "ENCRYPTED" in certificate:
        raise Permanent(
            Reason.KAFKA_SETTINGS_INVALID,
            f"key {ref.certificate_key!r} of {secret.name}, named in tls.clientSecretRef.certificateKey, contains a "
            "private key: write only certificates there, and the private key in another key of the Secret, named in "
            "tls.clientSecretRef.privateKeyKey",
        )
    if "ENCRYPTED" in key:
        raise Permanent(
            Reason.KAFKA_SETTINGS_INVALID,
            f"key {ref.private_key_key!r} of {secret.name}, named in tls.clientSecretRef.privateKeyKey, contains an "
            "encrypted private key: write it without a passphrase, as 'openssl pkey -in KEY -out PLAIN' does",
        )
    return secret.certificates(ref.certificate_key, MOST_CHAIN_BYTES), secret.private_key(ref.private_key_key)


def _login(sasl: Sasl, secret: SecretText, token_ca_pem: str | None) -> _Login:
    ref = sasl.secret_ref
    if sasl.token_endpoint is None:
        return _Login(sasl.username or _username(ref.username_key, secret), secret.line(ref.password_key or "password"))
    client = OAuthClient(
        sasl.token_endpoint,
        client_id=secret.text(ref.client_id_key or "clientId"),
        client_secret=secret.line(ref.client_secret_key or "clientSecret"),
        scope=sasl.scope,
        ca_pem=token_ca_pem,
    )
    return _Login(oauth=client)


def _username(key: str | None, secret: SecretText) -> str:
    """From the named key; where none is named, from ``username`` or else from the login of Kafka's own clients.

    The Secret of a Strimzi KafkaUser has only the latter.
    """
    if key or "username" in secret.data:
        return secret.text(key or "username")
    if _JAAS not in secret.data:
        raise Transient(
            Reason.SECRET_NOT_FOUND,
            f"{secret.name} has no key 'username' and no key {_JAAS!r}: name the key in "
            "sasl.secretRef.usernameKey of the connection, or set sasl.username",
            retry_after=15,
        )
    try:
        _, options = parse_login(secret.text(_JAAS))
    except ValueError as error:
        raise Refused(Reason.SECRET_INVALID, f"key {_JAAS!r} of {secret.name}: {error}") from None
    if not options.get("username"):
        raise Refused(Reason.SECRET_INVALID, f"key {_JAAS!r} of {secret.name} has no username")
    return options["username"]
