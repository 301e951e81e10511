"""The topic filter."""

import pytest

from kafka_rebalance.api.topic_patterns import TopicFilter
from kafka_rebalance.model.topology import TopicPartition


class TestTopicFilter:
    """Patterns match whole names; exclude wins over include; an empty include matches every topic."""

    def test_matches_the_whole_name(self) -> None:
        chosen = TopicFilter(["orders-.*", "a|b"])
        assert chosen.select(["orders-1", "my-orders-1", "orders", "a", "ab", "b"]) == ["orders-1", "a", "b"]

    def test_exclude_wins(self) -> None:
        assert TopicFilter([".*"], ["legacy-.*"]).select(["legacy-1", "x"]) == ["x"]

    def test_empty_include_takes_internal_topics_too(self) -> None:
        assert TopicFilter().matches("__consumer_offsets")

    def test_internal_topics_only_where_include_matches(self) -> None:
        assert not TopicFilter(["orders.*"]).matches("__consumer_offsets")
        assert TopicFilter(["__consumer_.*"]).matches("__consumer_offsets")

    def test_re2_not_re(self) -> None:
        """Look-ahead and back references exist only in Python's dialect."""
        with pytest.raises(ValueError, match="not a valid RE2"):
            TopicFilter(["(?=a).*"])


class TestInternal:
    """Names of Kafka's internal topics begin with two underscores."""

    def test_names(self) -> None:
        assert TopicPartition("__transaction_state", 0).internal
        assert not TopicPartition("_schemas", 0).internal
