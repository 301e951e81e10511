"""Valid settings that are probably mistakes."""

from typing import Any

import pytest

from kafka_rebalance.api import topic_patterns
from kafka_rebalance.api.rebalance_spec import Topics
from kafka_rebalance.api.spec_warnings import LOW_RATE, low_rate, throttle_warnings, unmatched_patterns
from kafka_rebalance.api.v1alpha1 import parse_throttle
from kafka_rebalance.reasons import Reason


class TestPatterns:
    @pytest.mark.parametrize(
        ("pattern", "meant"),
        [
            ("__*", "'__.*'"),
            ("orders-*", "'orders-.*'"),
            ("a.*", ""),
            ("[ab]*", ""),
            ("(ab)*c", ""),
            (r"x\.y", ""),
        ],
    )
    def test_what_looks_like_a_glob_is_translated(self, pattern: str, meant: str) -> None:
        (said,) = unmatched_patterns(Topics(exclude=(pattern,)), {"t"})
        assert said.startswith(f"spec.topics.exclude[0]: {pattern!r} matches no topic")
        assert said.endswith(f"write {meant}" if meant else "matches no topic")

    def test_what_matches_is_not_mentioned(self) -> None:
        topics = Topics(include=("t", "u"), exclude=("u",), pinned=("v.*",))
        assert [said.partition(":")[0] for said in unmatched_patterns(topics, {"t", "u"})] == ["spec.topics.pinned[0]"]

    def test_in_a_limited_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A missing warning stops nothing."""
        monkeypatch.setattr(topic_patterns, "_too_slow", type(topic_patterns._too_slow)())
        monkeypatch.setattr(topic_patterns, "_MOST_SECONDS", -1.0)
        assert not list(unmatched_patterns(Topics(include=("a", "b")), {"t", "u"}))


class TestRates:
    def test_a_low_one(self) -> None:
        assert low_rate(LOW_RATE) is None
        assert "1 GiB takes 2h54m" in (low_rate(LOW_RATE - 1) or "")

    @pytest.mark.parametrize(
        ("spec", "fields"),
        [
            ({"leaderRate": 50, "followerRate": "50Mi"}, ["spec.leaderRate"]),
            ({"leaderRate": -1}, []),
            (
                {"brokers": [{"id": 1, "leaderRate": "1Gi"}, {"id": 2, "leaderRate": -1, "followerRate": 9}]},
                ["spec.brokers[1].followerRate"],
            ),
        ],
    )
    def test_of_a_throttle(self, spec: dict[str, Any], fields: list[str]) -> None:
        """-1 means unset, not a low rate."""
        metadata = {"name": "a", "namespace": "n", "uid": "u"}
        throttle = parse_throttle({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "k:1"}, **spec}})
        found = throttle_warnings(throttle.spec)
        assert [(reason, text.partition(": ")[0]) for reason, text in found] == [
            (Reason.VERY_LOW_RATE, field) for field in fields
        ]
