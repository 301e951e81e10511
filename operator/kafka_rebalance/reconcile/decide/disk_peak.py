"""How even the disks are at the end of a run, to be compared with what the plan has predicted. Pure."""

from collections.abc import Collection, Mapping

from kafka_rebalance.api.topic_patterns import TopicFilter
from kafka_rebalance.kafka.ports import LogDir
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.load_outcome import LoadOutcome
from kafka_rebalance.model.topology import BrokerId


def disk_peak(outcome: LoadOutcome, selected: TopicFilter, dirs: Mapping[BrokerId, Collection[LogDir]]) -> int | None:
    """The highest use by the selected topics of a target broker, in percent of its share.

    None if disks are no goal of the plan, nothing is stored, or a target broker did not answer: the share cannot be
    computed from the others alone.
    """
    row = next((row for row in outcome.resources if row.resource is LoadResource.DISK), None)
    if row is None or not dirs.keys() >= set(outcome.brokers):
        return None
    sizes = {broker: _by_topic(dirs[broker]) for broker in outcome.brokers}
    chosen = set(selected.select(set().union(*sizes.values())))
    return row.peak_of([sum(size for topic, size in sizes[b].items() if topic in chosen) for b in outcome.brokers])


def _by_topic(dirs: Collection[LogDir]) -> dict[str, int]:
    found: dict[str, int] = {}
    for log_dir in dirs:
        for tp, size in log_dir.replica_bytes.items():
            found[tp.topic] = found.get(tp.topic, 0) + size
    return found
