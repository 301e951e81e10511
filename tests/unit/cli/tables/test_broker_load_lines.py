"""What `load-model` and `quality` say of brokers."""

from kafka_rebalance.cli.tables.broker_load_lines import known_broker_loads, unknown_broker_loads
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.pipeline.broker_loads import BrokerLoad
from kafka_rebalance.pipeline.hot_partitions import HotPartition
from kafka_rebalance.pipeline.model_file import ModelSummary


def model(*brokers):
    return ModelSummary(0, 0, 0.0, {}, {}, {}, {}, brokers)


def load(broker, p95, windows=288, known=40, resource=LoadResource.BYTES_IN, hot=()):
    return BrokerLoad(broker, resource, p95, p95, p95, windows, 288, 40, known, hot)


class TestLines:
    def test_name_the_broker_with_most_and_the_fewest_windows(self):
        """Rates as rates, sizes as sizes."""
        rates = load(1, 1024.0, 288), load(2, 3072.0, 280)
        sizes = load(1, 1024.0, resource=LoadResource.DISK), load(2, 1024.0, resource=LoadResource.DISK)
        disk, rate = known_broker_loads(model(*rates, *sizes))
        assert disk.startswith("Disk: broker 1 has most, 1.0 KiB (p95 of summed windows), 1.00 times an equal share of")
        assert rate.startswith("BytesIn: broker 2 has most, 3.0 KiB/s (p95 of summed windows), 1.50 times an equal")
        assert rate.endswith(" share of 2 brokers; known in 280 or more of 288 windows")

    def test_name_at_most_five_hot_partitions(self):
        """Those with the largest shares, of all brokers and resources."""
        hot = tuple(HotPartition("t", number, 0.1 + number / 100) for number in range(6))
        lines = list(known_broker_loads(model(load(1, 1.0, hot=hot), load(2, None, hot=None))))
        assert lines[0] == "BytesIn: hot partition t-5, 15% of what broker 1 has"
        assert lines[-1] == "1 more hot partitions are in broker-loads.parquet"
        assert len(lines) == 6

    def test_names_of_topics_control_no_terminal(self):
        """`load-model` prints these lines too."""
        hot = (HotPartition("\x1b[2Jt\n", 0, 0.5),)
        *_, line = known_broker_loads(model(load(1, 1.0, hot=hot)))
        assert line == "BytesIn: hot partition \\x1b[2Jt\\n-0, 50% of what broker 1 has"

    def test_say_why_brokers_are_unknown(self):
        """By the broker with the most unknown partitions; then nothing is said of who has most."""
        loads = load(1, 5.0), load(2, None, 0, known=39), load(3, None, 0, known=30)
        (line,) = unknown_broker_loads(model(*loads))
        assert line.startswith("BytesIn: Unknown for 2 of 3 brokers, for example broker 3: in no window are")
        assert line.endswith(" all its 40 partitions known, at most 30")
        assert list(known_broker_loads(model(*loads))) == []

    def test_a_model_of_an_older_version_says_nothing(self):
        """It has no brokers."""
        assert [*known_broker_loads(model()), *unknown_broker_loads(model())] == []
