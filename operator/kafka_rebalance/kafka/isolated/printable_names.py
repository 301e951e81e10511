"""Names that the servers of an inline connection claim: people see them in statuses, logs and terminals.

Topic names of Kafka have at most 249 letters, digits, dots, hyphens and underscores. A server may claim others, which
begin a line, control the terminal, or take minutes to match.
"""

from collections.abc import Iterable, Iterator, Mapping

from kafka_rebalance.errors import Refused
from kafka_rebalance.kafka.ports import Answers, AuthorizedOperations, ClusterInfo, LogDir
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.printable_text import is_printable
from kafka_rebalance.reasons import Reason

_LONGEST_NAME = 255
"""Characters. One expression may take 6 s of CPU time to match 256 KiB, and the time is checked only between names."""
_LONGEST_PATH = 4096


def check_names(answer: object) -> None:
    """Raises Refused("InlineConnectionRefused") if a name in an answer of `KafkaAdmin` is not printable or too long."""
    for name in _names(answer):
        _check(name, _LONGEST_NAME)
    if isinstance(answer, Mapping):
        for value in answer.values():
            for path in _paths_of(value):
                _check(path, _LONGEST_PATH)


def _check(name: str, longest: int) -> None:
    if len(name) > longest:
        limit = f"with an inline connection, the limit is {longest}"
        message = f"the servers claim a name of {len(name)} characters, {name!r:.100}; {limit}"
        raise Refused(Reason.INLINE_CONNECTION_REFUSED, message)
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


def _paths_of(value: object) -> Iterator[str]:
    if isinstance(value, tuple):
        yield from (log_dir.path for log_dir in value if isinstance(log_dir, LogDir))


def _of_log_dirs(found: tuple[object, ...]) -> Iterator[str]:
    for log_dir in found:
        if isinstance(log_dir, LogDir):
            yield from {tp.topic for tp in (*log_dir.replica_bytes, *log_dir.future_bytes)}
