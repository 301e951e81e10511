"""Names that the servers of an inline connection claim: people see them in statuses, logs and terminals.

Topic names of Kafka have letters, digits, dots, hyphens and underscores. A server may claim others, which begin a line
or control the terminal.
"""

from collections.abc import Iterable, Iterator, Mapping

from kafka_rebalance.errors import Refused
from kafka_rebalance.kafka.ports import Answers, AuthorizedOperations, ClusterInfo, LogDir
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.printable_text import is_printable
from kafka_rebalance.reasons import Reason


def check_names(answer: object) -> None:
    """Raises Refused("InlineConnectionRefused") if a name in an answer of `KafkaAdmin` is not printable."""
    for name in _names(answer):
        if not is_printable(name):
            message = f"the servers claim a name with characters that are not printable: {name!r:.100}"
            raise Refused(Reason.INLINE_CONNECTION_REFUSED, message)


def _names(answer: object) -> Iterator[str]:
    if isinstance(answer, ClusterInfo):
        yield answer.cluster_id
        for broker in answer.brokers.values():
            yield broker.host
            yield broker.rack or ""
    elif isinstance(answer, AuthorizedOperations):
        yield from answer.topics
        yield from answer.hidden_topics
    elif isinstance(answer, Mapping):
        yield from _of_keys(answer)
        for value in answer.values():
            if isinstance(value, tuple):
                yield from _of_log_dirs(value)
            elif isinstance(value, Mapping):
                yield from _of_keys(value)
        if isinstance(answer, Answers):
            yield from _of_keys(answer.errors)


def _of_keys(found: Iterable[object]) -> Iterator[str]:
    for key in found:
        if isinstance(key, TopicPartition):
            yield key.topic
        elif isinstance(key, str):
            yield key


def _of_log_dirs(found: tuple[object, ...]) -> Iterator[str]:
    for log_dir in found:
        if isinstance(log_dir, LogDir):
            yield log_dir.path
            yield from {tp.topic for tp in (*log_dir.replica_bytes, *log_dir.future_bytes)}
