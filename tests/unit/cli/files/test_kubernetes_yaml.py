"""YAML for Kubernetes: duplicate keys, aliases, and strings that stay strings."""

from __future__ import annotations

import pytest

from kafka_rebalance.cli.files.kubernetes_yaml import dump_all, load_all

NOT_TEXT_FOR_KUBECTL = [
    "12", "-3", "+5", "017", "08", "0o17", "0x1F", "0X1F", "0b11", "0B11", "1_000", "1.5", "5.", ".5", "+.5", "1e3",
    "1E-3", "12e-34", "1.5e3", "y", "Y", "yes", "On", "TRUE", "n", "no", "off", "null", "~", "1:30", "2026-11-22",
]  # fmt: skip
"""kubectl 1.36 reads these as a number, a boolean or null; YAML 1.1 does not read the last two as strings."""


class TestKeys:
    """A duplicate key is refused with its line; PyYAML would silently keep the last value."""

    @pytest.mark.parametrize(
        ("text", "key", "line"),
        [
            ("spec: {}\nspec: {}\n", "spec", 2),
            ("spec:\n  throttle: {leaderRate: 1}\n  priority: 1\n  throttle: {leaderRate: 2}\n", "throttle", 4),
            ("spec:\n  throttle: {leaderRate: 1, leaderRate: 2}\n", "leaderRate", 2),
            ("windows:\n- cron: 0 1 * * *\n  cron: 0 2 * * *\n", "cron", 3),
            ("spec: {priority: 1, 'priority': 2}\n", "priority", 1),
            ("a: 1\n---\nkind: Secret\nkind: Secret\n", "kind", 4),
        ],
    )
    def test_twice(self, text: str, key: str, line: int) -> None:
        with pytest.raises(ValueError, match=f"^not YAML: line {line}, column [0-9]+: duplicate key '{key}'"):
            load_all(text.encode())

    def test_merged_keys_may_be_overridden(self) -> None:
        text = b"a: &a {leaderRate: 1, followerRate: 1}\nb: &b {<<: *a, leaderRate: 2}\nc: {<<: *b, followerRate: 3}\n"
        assert load_all(text)[0]["c"] == {"leaderRate": 2, "followerRate": 3}


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("a: 1\nb: [}\n", "not YAML: line 2, column 5: expected the node content"),
            ("spec: " + "[" * 5000, "not YAML: nested too deeply"),
            ("spec: \x00\n", "not YAML: "),
            ("a: !!timestamp 2026-02-30\n", "not YAML: "),
            ("a: !!python/object:os.system {}\n", "not YAML: line 1, column 4: could not determine a constructor"),
            (f"a: {'x' * 2**22}\n", "larger than 3145728 bytes"),
        ],
    )
    def test_broken(self, text: str, says: str) -> None:
        with pytest.raises(ValueError, match=f"^{says}"):
            load_all(text.encode())

    @pytest.mark.parametrize("values", ["[x, x]", "{x: x}", "x"])
    def test_aliases_of_aliases(self, values: str) -> None:
        """A few lines of them expand to more than fits in memory."""
        tens = (f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 20))
        with pytest.raises(ValueError, match=r"^not YAML: line 3, column \d+: more than 12 aliases"):
            load_all(f"a0: &a0 {values}\n{''.join(tens)}".encode())


class TestText:
    def test_an_alias_may_be_used_again(self) -> None:
        assert load_all(b"{a: &a {b: [1]}, c: *a, d: *a}")[0]["d"] == {"b": [1]}

    @pytest.mark.parametrize("value", ["2026-11-22", "2026-11-22T10:00:00Z"])
    def test_dates_are_text(self, value: str) -> None:
        assert load_all(f"since: {value}\n".encode()) == [{"since": value}]

    @pytest.mark.parametrize("text", NOT_TEXT_FOR_KUBECTL)
    def test_is_written_in_quotes(self, text: str) -> None:
        """If kubectl would not read a string."""
        written = dump_all([{"a": text, text: "a"}])
        assert written == f"a: '{text}'\n'{text}': a\n"
        assert load_all(written.encode()) == [{"a": text, text: "a"}]

    def test_numbers_and_plain_text_are_not_quoted(self) -> None:
        assert dump_all([{"a": 1, "b": True, "c": "move-7", "d": 1.5}]) == "a: 1\nb: true\nc: move-7\nd: 1.5\n"
