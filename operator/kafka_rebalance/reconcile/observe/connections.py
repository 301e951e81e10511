"""The settings of the Kafka clients, from a connection and the Secrets that it names."""

from __future__ import annotations

from kafka_rebalance.api.connection import Kafka, KafkaSource
from kafka_rebalance.api.v1alpha1 import CONNECTIONS, parse_connection
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.reasons import Reason


async def connection_of(source: KafkaSource, namespace: str, kube: KubeClient) -> tuple[Kafka, str]:
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


async def resolve(kafka: Kafka, namespace: str, kube: KubeClient) -> ConnectionSettings:
    """The settings with credentials filled in. Transient("SecretNotFound") names the missing Secret or key."""

    async def read(name: str, key: str) -> str:
        data = await kube.read_secret(namespace, name)
        if key not in data:
            raise Transient(Reason.SECRET_NOT_FOUND, f"Secret {namespace}/{name} has no key {key!r}", retry_after=15)
        try:
            return data[key].decode()
        except UnicodeDecodeError:
            # Without the cause: it would quote the bytes.
            raise Refused(Reason.SECRET_INVALID, f"key {key!r} of Secret {namespace}/{name} is not text") from None

    tls, sasl = kafka.tls, kafka.sasl
    ca = await read(tls.ca_secret_ref.name, tls.ca_secret_ref.key) if tls and tls.ca_secret_ref else None
    client = tls.client_secret_ref.name if tls and tls.client_secret_ref else None
    return ConnectionSettings(
        bootstrap_servers=kafka.bootstrap_servers,
        tls=tls is not None,
        ca_pem=ca,
        client_cert_pem=await read(client, "tls.crt") if client else None,
        client_key_pem=await read(client, "tls.key") if client else None,
        sasl_mechanism=sasl.mechanism if sasl else None,
        username=await read(sasl.secret_ref.name, "username") if sasl else None,
        password=await read(sasl.secret_ref.name, "password") if sasl else None,
    )
