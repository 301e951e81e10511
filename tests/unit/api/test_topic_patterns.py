"""The topic filter."""

from itertools import count

import pytest

from kafka_rebalance.api import topic_patterns
from kafka_rebalance.api.fields import compile_re2
from kafka_rebalance.api.rebalance_spec import Topics
from kafka_rebalance.api.topic_patterns import MatchingTime, TopicFilter
from kafka_rebalance.errors import Refused
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
        with pytest.raises(Refused, match=r"^include\[1\]: is not a valid RE2"):
            TopicFilter(["a", "(?=a).*"]).select("a")

    @pytest.mark.parametrize("field", ["include", "exclude", "pinned"])
    def test_the_field_of_a_spec_is_named(self, field: str) -> None:
        """Each time: it is not taken for expressions that take too long."""
        topics = Topics(**{field: (".*", "(?=a)")})
        chosen = TopicFilter.of_pinned(topics) if field == "pinned" else TopicFilter.of(topics)
        for _ in range(2):
            with pytest.raises(Refused, match=rf"^spec\.topics\.{field}\[1\]: is not a valid RE2"):
                chosen.select("a")


class TestCost:
    """Nobody can write expressions that need much memory, or occupy a thread for long."""

    @pytest.fixture(autouse=True)
    def nothing_remembered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(topic_patterns, "_too_slow", type(topic_patterns._too_slow)())

    @pytest.mark.parametrize("pattern", [r"(\pL{10}\pN{10}){20}", r"\pL{190}", "(.{0,30}){30}"])
    def test_large_expressions_are_refused(self, pattern: str) -> None:
        with pytest.raises(ValueError, match="too large"):
            compile_re2(pattern)

    def test_so_are_many_unicode_classes(self) -> None:
        """They are small when they are compiled, but take long until then."""
        assert compile_re2(r"[\pL\PN]\pL\PL").fullmatch("ab.")
        with pytest.raises(ValueError, match="has more than 4 Unicode classes"):
            compile_re2(r"(?i)[\pL\PN\pN\pZ\PZ]")

    def test_compiling_counts(self) -> None:
        """Each expression may take a millisecond."""
        seconds = count(0, 1)
        with pytest.raises(Refused, match="more than 5 s"):
            TopicFilter(["a"] * 10, (), MatchingTime(lambda: next(seconds))).select("a")

    @pytest.mark.parametrize(
        "pattern", [".{0,249}", r"\pL+", "(?i)" + "a" * 500, "|".join(f"topic-{n:03d}" for n in range(50))]
    )
    def test_common_ones_are_not(self, pattern: str) -> None:
        assert compile_re2(pattern).fullmatch("aaa") is not None or not pattern.startswith((".", r"\pL"))

    def test_a_filter_that_takes_long_is_refused(self) -> None:
        """From then on at once, because a plan is tried again every few seconds."""
        seconds = count(0, 2)
        slow = TopicFilter(["a"], ["b"], MatchingTime(lambda: next(seconds)))
        with pytest.raises(Refused, match=r"spec\.topics: the expressions take more than 5 s") as refused:
            slow.select("abcdef")
        assert refused.value.reason == "InvalidSpec"
        with pytest.raises(Refused, match="more than 5 s"):
            TopicFilter(["a"], ["b"]).select("fedcba")
        assert TopicFilter(["a"]).select("abcdef") == ["a"]

    def test_only_for_the_topics_that_took_long(self) -> None:
        """The same expressions are used for other clusters, whose topics nobody else can choose."""
        seconds = count(0, 9)
        with pytest.raises(Refused):
            TopicFilter(["a"], (), MatchingTime(lambda: next(seconds))).select("abc")
        assert TopicFilter(["a"]).select("ab") == ["a"]
        assert TopicFilter(["a"]).matches("a")

    def test_a_filter_that_matches_long_enough(self) -> None:
        seconds = count(0, 1)
        assert TopicFilter(["a"], (), MatchingTime(lambda: next(seconds))).select("aba") == ["a", "a"]

    def test_many_are_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(topic_patterns, "_REMEMBERED", 2)
        seconds = count(0, 9)
        for number in range(5):
            slow = TopicFilter([f"a{number}"], (), MatchingTime(lambda: next(seconds)))
            with pytest.raises(Refused):
                slow.select("ab")
        assert len(topic_patterns._too_slow) == 2


class TestInternal:
    """Names of Kafka's internal topics begin with two underscores."""

    def test_names(self) -> None:
        assert TopicPartition("__transaction_state", 0).internal
        assert not TopicPartition("_schemas", 0).internal
