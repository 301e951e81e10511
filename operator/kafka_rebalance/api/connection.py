"""The connection to a Kafka cluster, which all resources share: written inline, or the name of a KafkaConnection.

It refers to Secrets and never contains them. Nothing here opens a connection.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from kafka_rebalance.api.fields import ApiModel, ObjectName, SecretKey, rule, rules

_ADDRESS = r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}"
BootstrapServers = Annotated[str, Field(min_length=3, max_length=4096, pattern=f"^{_ADDRESS}(,{_ADDRESS})*$")]


class SaslMechanism(StrEnum):
    """The SASL mechanisms that the operator supports."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


class SecretRef(ApiModel):
    """A Secret in the namespace of the resource."""

    name: ObjectName = Field(description="Name of a Secret in the namespace of this resource.")


class SecretKeyRef(ApiModel):
    """One key of a Secret in the namespace of the resource."""

    name: ObjectName = Field(description="Name of a Secret in the namespace of this resource.")
    key: SecretKey = Field(default="ca.crt", description="Key in the Secret that holds the PEM certificates.")


class Tls(ApiModel):
    """TLS encryption and, with a client certificate, mutual TLS."""

    ca_secret_ref: SecretKeyRef | None = Field(
        default=None,
        description="CA certificates that the brokers' certificates are verified with. Absent: those of the system.",
    )
    client_secret_ref: SecretRef | None = Field(
        default=None,
        description="Secret of type kubernetes.io/tls (tls.crt, tls.key) with the client certificate for the brokers.",
    )


class Sasl(ApiModel):
    """SASL authentication with a user name and password."""

    mechanism: SaslMechanism = Field(description="SASL mechanism of the brokers' listener.")
    secret_ref: SecretRef = Field(description="Secret with the keys username and password.")


class Kafka(ApiModel):
    """The connection to one Kafka cluster."""

    bootstrap_servers: BootstrapServers = Field(description="Bootstrap brokers as host:port, separated by commas.")
    tls: Tls | None = Field(default=None, description="TLS settings. Absent: connect without TLS.")
    sasl: Sasl | None = Field(default=None, description="SASL settings. Absent: connect without authentication.")


class ConnectionRef(ApiModel):
    """Names a KafkaConnection."""

    name: ObjectName = Field(description="Name of a KafkaConnection.")
    namespace: ObjectName | None = Field(
        default=None,
        description="Namespace of the KafkaConnection; its allowedNamespaces must permit the namespace of this "
        "resource. Absent: the namespace of this resource.",
    )


_ONE_OF_TWO = "requires either connectionRef, or bootstrapServers with tls and sasl as needed"


class KafkaSource(ApiModel):
    """The connection to one Kafka cluster: a KafkaConnection, or inline.

    Immutable, because a plan belongs to the cluster that it was made for; but an inline connection may be replaced by a
    connectionRef, for which the operator requires the same cluster while a run is open.
    """

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.connectionRef) ? !has(self.bootstrapServers) && !has(self.tls) && !has(self.sasl) : "
                "has(self.bootstrapServers)",
                _ONE_OF_TWO,
            ),
            rule(
                "self == oldSelf || (has(self.connectionRef) && !has(oldSelf.connectionRef))",
                "cannot be changed: create a new resource for another cluster or other credentials; only an inline "
                "connection can be replaced, by a connectionRef",
            ),
        )
    )

    connection_ref: ConnectionRef | None = Field(
        default=None, description="The KafkaConnection to use. Excludes bootstrapServers, tls and sasl."
    )
    bootstrap_servers: BootstrapServers | None = Field(
        default=None, description="Inline connection: bootstrap brokers as host:port, separated by commas."
    )
    tls: Tls | None = Field(default=None, description="Inline connection: TLS settings. Absent: connect without TLS.")
    sasl: Sasl | None = Field(
        default=None, description="Inline connection: SASL settings. Absent: connect without authentication."
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        inline = self.bootstrap_servers is not None
        if inline == (self.connection_ref is not None) or not (inline or (self.tls is None and self.sasl is None)):
            raise ValueError(_ONE_OF_TWO)
        return self

    @property
    def named(self) -> Kafka | ConnectionRef:
        """The inline connection, or the name of a KafkaConnection."""
        if self.bootstrap_servers is None and self.connection_ref is not None:
            return self.connection_ref
        return Kafka(bootstrap_servers=self.bootstrap_servers or "", tls=self.tls, sasl=self.sasl)
