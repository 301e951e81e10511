"""The connection to a Kafka cluster, which all resources share: written inline, or the name of a KafkaConnection.

It refers to Secrets and never contains them. Nothing here opens a connection.
"""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from kafka_rebalance.api.fields import ApiModel, Form, ObjectName, SecretKey, rule, rules

_ADDRESS = r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}"
_MAX_ADDRESSES = 20
"""Each costs every client a thread. Clients learn of all brokers from any one of them."""
ADDRESSES = Form(
    f"{_ADDRESS}(,{_ADDRESS}){{0,{_MAX_ADDRESSES - 1}}}",
    f"must be host:port, or up to {_MAX_ADDRESSES} separated by commas without spaces, like kafka-1:9092,kafka-2:9092",
)
HttpUrl = Annotated[
    str,
    Field(max_length=2048),
    Form(
        r"https?://[^\s/?#@\\]+(/[^\s#\\]*)?", "must be a URL like https://login.example.org/token, without a user name"
    ),
]
BootstrapServers = Annotated[str, Field(min_length=1, max_length=4096), ADDRESSES]


class SaslMechanism(StrEnum):
    """The SASL mechanisms that the operator supports."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"

    @property
    def sends_secret(self) -> bool:
        """Whether who reads the connection can log in afterwards: with the password, or with the token."""
        return self in {SaslMechanism.PLAIN, SaslMechanism.OAUTHBEARER}


class SecretKeyRef(ApiModel):
    """One key of a Secret in the namespace of the resource."""

    name: ObjectName = Field(description="Name of a Secret in the namespace of this resource.")
    key: SecretKey = Field(default="ca.crt", description="Key in the Secret that holds the PEM certificates.")


class ClientCertificateRef(ApiModel):
    """The Secret with a client certificate and its private key."""

    name: ObjectName = Field(description="Name of a Secret in the namespace of this resource.")
    certificate_key: SecretKey = Field(
        default="tls.crt",
        description="Key in the Secret that holds the PEM certificate. In the Secret of a Strimzi KafkaUser: user.crt.",
    )
    private_key_key: SecretKey = Field(
        default="tls.key",
        description="Key in the Secret that holds the PEM private key, without a passphrase. In the Secret of a "
        "Strimzi KafkaUser: user.key.",
    )


class Tls(ApiModel):
    """TLS encryption and, with a client certificate, mutual TLS."""

    ca_secret_ref: SecretKeyRef | None = Field(
        default=None,
        description="CA certificates that the brokers' certificates are verified with. Absent: those of the system.",
    )
    client_secret_ref: ClientCertificateRef | None = Field(
        default=None,
        description="Secret with the client certificate for the brokers, by default of type kubernetes.io/tls.",
    )


class CredentialsRef(ApiModel):
    """The Secret with a user name and password, or with the credentials of an OAuth client."""

    name: ObjectName = Field(description="Name of a Secret in the namespace of this resource.")
    username_key: SecretKey | None = Field(
        default=None,
        description="Key in the Secret that holds the user name. Absent: username; a Secret without that key may have "
        "the user name in sasl.jaas.config, as the Secrets of Strimzi's KafkaUsers do.",
    )
    password_key: SecretKey | None = Field(
        default=None, description="Key in the Secret that holds the password. Absent: password."
    )
    client_id_key: SecretKey | None = Field(
        default=None, description="Key in the Secret that holds the OAuth client id. Absent: clientId."
    )
    client_secret_key: SecretKey | None = Field(
        default=None, description="Key in the Secret that holds the OAuth client secret. Absent: clientSecret."
    )


_ENDPOINT_OF_OAUTH = "tokenEndpoint is required with the mechanism OAUTHBEARER and not allowed with others"
_OF_OAUTHBEARER = (
    "scope, caSecretRef, secretRef.clientIdKey and secretRef.clientSecretKey require the mechanism OAUTHBEARER"
)
_OF_PASSWORDS = (
    "username, secretRef.usernameKey and secretRef.passwordKey are not allowed with the mechanism OAUTHBEARER: its "
    "credentials are in secretRef.clientIdKey and secretRef.clientSecretKey"
)
_ONE_USERNAME = "username and secretRef.usernameKey exclude each other"
_HTTPS = (
    "tokenEndpoint is not https: the client secret would be sent in clear text. Use https, or set "
    "allowPlaintextCredentials: true"
)
_TLS = (
    "sasl.mechanism PLAIN or OAUTHBEARER without tls sends the password or the token in clear text: add tls, or set "
    "sasl.allowPlaintextCredentials: true"
)
_OAUTH = "self.mechanism == 'OAUTHBEARER'"


class Sasl(ApiModel):
    """SASL authentication: with a user name and password, or with the token of an OAuth client."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(f"({_OAUTH}) == has(self.tokenEndpoint)", _ENDPOINT_OF_OAUTH),
            rule(
                f"{_OAUTH} || (!has(self.scope) && !has(self.caSecretRef) && !has(self.secretRef.clientIdKey)"
                " && !has(self.secretRef.clientSecretKey))",
                _OF_OAUTHBEARER,
            ),
            rule(
                f"!({_OAUTH}) || (!has(self.username) && !has(self.secretRef.usernameKey)"
                " && !has(self.secretRef.passwordKey))",
                _OF_PASSWORDS,
            ),
            rule("!has(self.username) || !has(self.secretRef.usernameKey)", _ONE_USERNAME),
            rule(
                "!has(self.tokenEndpoint) || self.tokenEndpoint.startsWith('https:') || self.allowPlaintextCredentials",
                _HTTPS,
            ),
        )
    )

    mechanism: SaslMechanism = Field(description="SASL mechanism of the brokers' listener.")
    secret_ref: CredentialsRef = Field(
        description="Secret with the user name and password or, for OAUTHBEARER, with the OAuth client id and secret."
    )
    username: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        default=None, description="User name, where the Secret does not contain it. Absent: the one in the Secret."
    )
    token_endpoint: HttpUrl | None = Field(
        default=None,
        description="URL at which the OAuth server issues tokens for client credentials (RFC 6749, section 4.4). "
        "Required with OAUTHBEARER.",
    )
    scope: Annotated[str, Field(min_length=1, max_length=1024)] | None = Field(
        default=None, description="Scope of the requested tokens. Absent: the OAuth server's default."
    )
    ca_secret_ref: SecretKeyRef | None = Field(
        default=None,
        description="CA certificates that the OAuth server's certificate is verified with. Absent: those of the "
        "system.",
    )
    allow_plaintext_credentials: bool = Field(
        default=False,
        description="Allow credentials to be sent without TLS: PLAIN's password and OAUTHBEARER's token to the "
        "brokers, the client secret to the token endpoint. Anyone who can read the network traffic can use them.",
    )

    @model_validator(mode="after")
    def _fields_of_the_mechanism(self) -> Self:
        keys, oauth = self.secret_ref, self.mechanism is SaslMechanism.OAUTHBEARER
        if oauth != (self.token_endpoint is not None):
            raise ValueError(_ENDPOINT_OF_OAUTH)
        if not oauth and (self.scope or self.ca_secret_ref or keys.client_id_key or keys.client_secret_key):
            raise ValueError(_OF_OAUTHBEARER)
        if oauth and (self.username or keys.username_key or keys.password_key):
            raise ValueError(_OF_PASSWORDS)
        if self.username and keys.username_key:
            raise ValueError(_ONE_USERNAME)
        if self.token_endpoint and not (self.token_endpoint.startswith("https:") or self.allow_plaintext_credentials):
            raise ValueError(_HTTPS)
        return self


_SECRETS_ENCRYPTED = rule(
    "!has(self.sasl) || has(self.tls) || !(self.sasl.mechanism in ['PLAIN', 'OAUTHBEARER'])"
    " || self.sasl.allowPlaintextCredentials",
    _TLS,
)


def _require_encrypted_secrets(tls: Tls | None, sasl: Sasl | None) -> None:
    if sasl and not tls and sasl.mechanism.sends_secret and not sasl.allow_plaintext_credentials:
        raise ValueError(_TLS)


def _unchanged(path: str, *, required: bool) -> str:
    new, old = f"self.{path}", f"oldSelf.{path}"
    return f"{new} == {old}" if required else f"has({new}) == has({old}) && (!has({new}) || {new} == {old})"


_ALLOWS_MORE = " && ".join(
    [
        "has(self.sasl) && has(oldSelf.sasl) && self.sasl.allowPlaintextCredentials",
        _unchanged("bootstrapServers", required=False),
        _unchanged("tls", required=False),
        *(
            _unchanged(f"sasl.{field.alias}", required=field.is_required())
            for name, field in Sasl.model_fields.items()
            if name != "allow_plaintext_credentials"
        ),
    ]
)
"""A resource from before the rule about credentials in clear text can be made valid without losing its run."""


class Kafka(ApiModel):
    """The connection to one Kafka cluster."""

    model_config = ConfigDict(json_schema_extra=rules(_SECRETS_ENCRYPTED))

    bootstrap_servers: BootstrapServers = Field(description="Bootstrap brokers as host:port, separated by commas.")
    tls: Tls | None = Field(default=None, description="TLS settings. Absent: connect without TLS.")
    sasl: Sasl | None = Field(default=None, description="SASL settings. Absent: connect without authentication.")

    @model_validator(mode="after")
    def _secrets_encrypted(self) -> Self:
        _require_encrypted_secrets(self.tls, self.sasl)
        return self


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
                f"self == oldSelf || (has(self.connectionRef) && !has(oldSelf.connectionRef)) || ({_ALLOWS_MORE})",
                "cannot be changed: create a new resource for another cluster or other credentials; only an inline "
                "connection can be replaced, by a connectionRef, and sasl.allowPlaintextCredentials can be set to true",
            ),
            _SECRETS_ENCRYPTED,
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
        _require_encrypted_secrets(self.tls, self.sasl)
        return self

    @property
    def named(self) -> Kafka | ConnectionRef:
        """The inline connection, or the name of a KafkaConnection."""
        if self.bootstrap_servers is None and self.connection_ref is not None:
            return self.connection_ref
        return Kafka(bootstrap_servers=self.bootstrap_servers or "", tls=self.tls, sasl=self.sasl)
