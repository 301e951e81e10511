"""The errors of both adapters when a cluster cannot be used: the same three, whichever client library failed."""

from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.reasons import Reason


def unreachable(settings: ConnectionSettings, action: str, detail: object, retry_after: float = 5.0) -> Transient:
    """No answer to ``action``. If it was an order, it may have been carried out."""
    message = f"No answer from Kafka at {settings.bootstrap_servers} to {action}: {settings.redact(str(detail))}"
    return Transient(Reason.KAFKA_UNREACHABLE, message, retry_after)


def client_ended(settings: ConnectionSettings, method: str, how: str, retry_after: float) -> Transient:
    """The process of the client ended before it answered. Kafka may have executed the call if it was an order."""
    message = (
        f"No answer from Kafka at {settings.bootstrap_servers} to {method}: the process of its client ended, because "
        f"{settings.redact(how)}. The process starts again in {max(retry_after, 1.0):.0f} s. Check "
        "spec.kafka.bootstrapServers: a server may have sent an answer that the client cannot process. A cluster that "
        "is too large for an inline connection needs a KafkaConnection"
    )
    return Transient(Reason.KAFKA_CLIENT_ENDED, message, max(retry_after, 1.0))


def authentication_failed(settings: ConnectionSettings, detail: object) -> Permanent:
    """The brokers answered and rejected the credentials."""
    how = settings.sasl_mechanism or settings.security_protocol
    message = f"Kafka at {settings.bootstrap_servers} refused the credentials ({how}): {settings.redact(str(detail))}"
    return Permanent(Reason.KAFKA_AUTHENTICATION_FAILED, message)


def too_old(settings: ConnectionSettings, action: str, detail: object) -> Permanent:
    """The brokers do not know a request, or none of its versions that the client knows."""
    message = (
        f"Kafka at {settings.bootstrap_servers} cannot {action}: {settings.redact(str(detail))} "
        "The operator needs Kafka 2.8 or later: upgrade the brokers"
    )
    return Permanent(Reason.KAFKA_TOO_OLD, message)


def authorization_failed(settings: ConnectionSettings, action: str, detail: object) -> Permanent:
    """The credentials are valid; a permission is missing."""
    message = f"Kafka at {settings.bootstrap_servers} does not allow us to {action}: {settings.redact(str(detail))}"
    return Permanent(Reason.KAFKA_AUTHORIZATION_FAILED, message)
