"""How even the disks are at the end of a run."""

from kafka_rebalance.api.rebalance_spec import Topics
from kafka_rebalance.api.topic_patterns import TopicFilter
from kafka_rebalance.kafka.ports import LogDir
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.load_outcome import LoadOutcome, ResourceBalance
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reconcile.decide.disk_peak import disk_peak

SELECTED = TopicFilter.of(Topics(include=("a", "b")))


def outcome(*shares: int, resource: LoadResource = LoadResource.DISK) -> LoadOutcome:
    row = ResourceBalance(resource, 10, 250.0, 104.0, 1, 0, shares, shares, shares)
    return LoadOutcome((row,), 0, 0, tuple(BrokerId(b) for b in range(1, len(shares) + 1)))


def dirs(broker: int, *sizes: dict[str, int]) -> dict[BrokerId, tuple[LogDir, ...]]:
    """A log dir for each dict of topics."""
    found = ({TopicPartition(topic, 0): size for topic, size in each.items()} for each in sizes)
    return {BrokerId(broker): tuple(LogDir(f"/d{n}", each) for n, each in enumerate(found))}


class TestPeak:
    def test_of_all_log_dirs_and_selected_topics_only(self) -> None:
        """120 bytes of 200 are 120 % of a half; what others store is not balanced."""
        found = dirs(1, {"a": 100, "other": 900}, {"b": 20}) | dirs(2, {"a": 80})
        assert disk_peak(outcome(500, 500), SELECTED, found) == 120

    def test_shares_are_those_of_the_plan(self) -> None:
        """In proportion to capacities, if these are known: 150 of 200 bytes are what is due to three disks of four."""
        assert disk_peak(outcome(300, 100), SELECTED, dirs(1, {"a": 150}) | dirs(2, {"a": 50})) == 100

    def test_brokers_that_are_no_target_do_not_count(self) -> None:
        assert disk_peak(outcome(1, 1), SELECTED, dirs(1, {"a": 9}) | dirs(2, {"a": 9}) | dirs(3, {"a": 99})) == 100


class TestUnknown:
    """Absent, never invented."""

    def test_a_broker_did_not_answer(self) -> None:
        assert disk_peak(outcome(1, 1), SELECTED, dirs(1, {"a": 100})) is None

    def test_disks_are_no_goal(self) -> None:
        found = dirs(1, {"a": 100}) | dirs(2, {"a": 100})
        assert disk_peak(outcome(1, 1, resource=LoadResource.BYTES_IN), SELECTED, found) is None

    def test_nothing_is_stored(self) -> None:
        assert disk_peak(outcome(1, 1), SELECTED, dirs(1) | dirs(2)) is None
