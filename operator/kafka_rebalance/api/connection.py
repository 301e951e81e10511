"""The connection to a Kafka cluster, which both resources share.

It refers to Secrets and never contains them. Nothing here opens a connection.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from kafka_rebalance.api.fields import ApiModel, ObjectName, SecretKey, rule, rules

_ADDRESS = r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}"


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
    """The connection to one Kafka cluster. Immutable, because a plan belongs to the cluster that it was made for."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("self == oldSelf", "cannot be changed: create a new resource for another cluster or other credentials")
        )
    )

    bootstrap_servers: Annotated[str, Field(min_length=3, max_length=4096, pattern=f"^{_ADDRESS}(,{_ADDRESS})*$")] = (
        Field(description="Bootstrap brokers as host:port, separated by commas.")
    )
    tls: Tls | None = Field(default=None, description="TLS settings. Absent: connect without TLS.")
    sasl: Sasl | None = Field(default=None, description="SASL settings. Absent: connect without authentication.")
