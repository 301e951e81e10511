"""A KafkaRebalance in a file: which document it is, and what is said of YAML that is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_rebalance.cli.files.kubernetes_yaml import dump_all, load_all
from kafka_rebalance.cli.files.rebalance_file import read_beginning, read_rebalance, read_spec, spec_of

AS_KUBECTL_READS = [
    # what is written, and what kubectl 1.36 makes of it
    ("12", 12), ("-3", -3), ("+5", 5), ("017", 15), ("08", 8), ("0o17", 15), ("0x1F", 31), ("0X1F", 31), ("0b11", 3),
    ("0B11", 3), ("1_000", 1000), ("1.5", 1.5), ("1.0", 1), ("5.", 5), (".5", 0.5), ("+.5", 0.5), ("1e3", 1000),
    ("1E-3", 0.001), ("12e-34", 1.2e-33), ("1.5e3", 1500), ("0e-1", 0), ("y", True), ("Y", True), ("yes", True),
    ("On", True), ("TRUE", True), ("n", False), ("no", False), ("off", False), ("tRUE", "tRUE"), ("=", "="),
    ("1:30", "1:30"), ("2026-11-22", "2026-11-22"), ("0o8", "0o8"), ("_1", "_1"), ("12e", "12e"), ("inf", "inf"),
]  # fmt: skip
HEAD = "apiVersion: kafkarebalance.dev/v1alpha1\nkind: KafkaRebalance\n"


def read(text: str) -> dict[str, Any]:
    return read_rebalance((HEAD + text).encode())


class TestKeys:
    """A key that is given twice is refused with its line: silently the last would count."""

    @pytest.mark.parametrize(
        ("text", "key", "line"),
        [
            ("spec: {}\nspec: {}\n", "spec", 4),
            ("spec:\n  throttle: {leaderRate: 1}\n  priority: 1\n  throttle: {leaderRate: 2}\n", "throttle", 6),
            ("spec:\n  throttle: {leaderRate: 1, leaderRate: 2}\n", "leaderRate", 4),
            ("spec:\n  execution:\n    windows:\n    - cron: 0 1 * * *\n      cron: 0 2 * * *\n", "cron", 7),
            ("spec: {priority: 1, 'priority': 2}\n", "priority", 3),
            ("---\nkind: Secret\nkind: Secret\n", "kind", 5),
        ],
    )
    def test_twice(self, text: str, key: str, line: int) -> None:
        with pytest.raises(ValueError, match=f"^not YAML: line {line}, column [0-9]+: key '{key}' is given twice"):
            read(text)

    def test_merged_keys_may_be_overridden(self) -> None:
        """That is what merge keys are for, also of what is itself merged."""
        found = read(
            "spec:\n  a: &a {leaderRate: 1, followerRate: 1}\n  b: &b {<<: *a, leaderRate: 2}\n"
            "  c: {<<: *b, followerRate: 3}\n"
        )
        assert found["spec"]["c"] == {"leaderRate": 2, "followerRate": 3}

    def test_the_same_key_in_two_mappings(self) -> None:
        assert read("spec:\n  topics: {include: [a]}\n  brokers: {include: [1]}\n")["spec"]["brokers"] == {
            "include": [1]
        }


class TestDocument:
    def test_among_others(self) -> None:
        """The Secret beside it, and Strimzi's resource of the same kind, are not meant."""
        others = (
            "---\nkind: Secret\n---\napiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaRebalance\nspec: {mode: full}\n"
        )
        assert read(f"spec: {{priority: 1}}\n{others}")["spec"] == {"priority": 1}

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("spec: {}\n---\n" + HEAD, "expected one KafkaRebalance, found KafkaRebalance, KafkaRebalance"),
            ("spec: [1]\n", r"spec: expected an object, found \[1\]"),
            ("metadata: x\n", "metadata: expected an object, found 'x'"),
            ("metadata: ''\n", "metadata: expected an object, found ''"),
            ("spec: []\n", r"spec: expected an object, found \[\]"),
            ("metadata: {bogus: }\n", "metadata.bogus: unknown field"),
            ("sepc: {}\n", "sepc: unknown field"),
            ("metadata: {name: Bad_Name}\n", "metadata.name: 'Bad_Name' is not"),
            ("metadata: {labels: {a: 1}}\n", r"metadata.labels\[a\]: expected a string, found 1"),
            ("spec: {a: [}\n", "^not YAML: line 3, column 12: expected the node content"),
            ("spec: " + "[" * 5000, "not YAML: nested too deeply"),
            ("spec: \x00\n", "^not YAML: "),
        ],
    )
    def test_refused(self, text: str, says: str) -> None:
        with pytest.raises(ValueError, match=says):
            read(text)


class TestValues:
    """As Kubernetes reads them, whatever else YAML has them be."""

    @pytest.mark.parametrize("value", ["2026-11-22", "2026-11-22T10:00:00Z", "12:30", "1:30:00", "12:30:45.5"])
    def test_dates_and_times_are_text(self, value: str) -> None:
        found = read(f"metadata: {{annotations: {{since: {value}}}}}\n")
        assert found["metadata"]["annotations"] == {"since": value}

    @pytest.mark.parametrize(("text", "value"), [row for row in AS_KUBECTL_READS if not isinstance(row[1], str)])
    def test_numbers_and_booleans_are_not(self, text: str, value: float) -> None:
        """More of what is written is one than elsewhere; whole ones are integers."""
        (read_back,) = load_all(f"a: {text}\n".encode())
        assert (read_back, type(read_back["a"])) == ({"a": value}, type(value))

    @pytest.mark.parametrize(("text", "value"), [row for row in AS_KUBECTL_READS if isinstance(row[1], str)])
    def test_all_else_is_text(self, text: str, value: str) -> None:
        assert load_all(f"a: {text}\n".encode()) == [{"a": value}]

    @pytest.mark.parametrize("text", [text for text, _ in AS_KUBECTL_READS])
    def test_text_that_is_written_is_read_as_text(self, text: str) -> None:
        """In quotes, where kubectl would read something else."""
        written = dump_all([{"a": text}])
        assert load_all(written.encode()) == [{"a": text}]
        assert not written.startswith(f"a: {text}\n") or isinstance(dict(AS_KUBECTL_READS)[text], str)

    def test_nulls_in_metadata_are_absent(self) -> None:
        """As templates render what nobody gave."""
        assert read("metadata: {name: a, labels: , annotations: {}, namespace: }\n")["metadata"] == {
            "name": "a",
            "annotations": {},
        }

    def test_an_alias_may_be_used_again(self) -> None:
        assert read("spec: {a: &a {b: [1]}, c: *a, d: *a}\n")["spec"]["d"] == {"b": [1]}

    @pytest.mark.parametrize(
        ("text", "line"),
        [("spec: &x\n  kafka: {a: b}\n  topics: *x\n", 3), ("spec:\n  windows: &x [{a: [*x]}]\n", 4)],
    )
    def test_an_alias_of_what_it_stands_in(self, text: str, line: int) -> None:
        with pytest.raises(ValueError, match=f"^not YAML: line {line}, column .*recursive"):
            read(text)


class TestAliases:
    """What a few lines have stand for more than any memory holds is refused, with its line, before it is made."""

    @staticmethod
    def repeated(levels: int, values: str) -> str:
        """Ten of ten of ten … of these, each on a line."""
        tens = (f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, levels + 1))
        return f"spec:\n  a0: &a0 {values}\n{''.join(tens)}"

    @pytest.mark.parametrize("values", ["[x, x]", "{x: x}", "x"])
    def test_of_aliases(self, values: str) -> None:
        with pytest.raises(ValueError, match=r"^not YAML: line 1[01], column \d+: aliases make more than 3145728 "):
            read(self.repeated(20, values))

    def test_of_long_text(self) -> None:
        """Little to keep, and endless to look through."""
        text = f"metadata:\n  annotations:\n    a: &a {'x' * 100_000}\n" + "".join(f"    b{n}: *a\n" for n in range(40))
        with pytest.raises(ValueError, match=r"^not YAML: line 37, column 10: aliases make more than"):
            read(text)

    def test_of_merged_keys(self) -> None:
        merged = "".join(f"  a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 21))
        with pytest.raises(ValueError, match="aliases make more than"):
            read("spec:\n  a0: &a0 {x: x}\n" + merged)

    def test_in_another_document(self) -> None:
        with pytest.raises(ValueError, match="aliases make more than"):
            read("---\n" + self.repeated(20, "[x]"))

    def test_a_large_document_without_any(self) -> None:
        """It is what it is."""
        text = f"spec: {{a: &a [1], b: *a}}\n---\nkind: Other\ntext: {'x' * 4_000_000}\nlike: &l [b]\nit: *l\n"
        assert read(text)["spec"] == {"a": [1], "b": [1]}


class TestBeginning:
    def test_a_spec_that_is_not_whole(self) -> None:
        """The options put in what lacks."""
        assert read_beginning((HEAD + "spec: {priority: 1}\n").encode())["spec"] == {"priority": 1}

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("metadata: {}\n", "has no spec"),
            ("metadata: {namespace: A}\nspec: {priority: 1}\n", "metadata.namespace: "),
        ],
    )
    def test_refused(self, text: str, says: str) -> None:
        with pytest.raises(ValueError, match=says):
            read_beginning((HEAD + text).encode())


class TestApiVersion:
    def test_without(self) -> None:
        """Nobody could apply it; one to begin with gets ours."""
        text = b"kind: KafkaRebalance\nspec: {kafka: {bootstrapServers: 'kafka:9092'}}\n"
        assert read_beginning(text)["spec"] == {"kafka": {"bootstrapServers": "kafka:9092"}}
        with pytest.raises(ValueError, match=r"^apiVersion: expected kafkarebalance\.dev/v1alpha1, found nothing"):
            read_spec(text)

    def test_of_ours(self) -> None:
        """And its metadata is judged."""
        text = HEAD + "metadata: {name: %s}\nspec: {kafka: {bootstrapServers: 'kafka:9092'}}\n"
        assert read_spec((text % "a").encode()).kafka.bootstrap_servers == "kafka:9092"
        with pytest.raises(ValueError, match=r"^metadata\.name: 'A' is not"):
            read_spec((text % "A").encode())


class TestSpec:
    def test_a_window_that_never_opens(self) -> None:
        """The API server would take it, and nothing would ever move."""
        windows = [{"cron": "0 0 30 2 *", "duration": "1h"}]
        with pytest.raises(ValueError, match=r"spec\.execution\.windows\[0\]: cron '0 0 30 2 \*': bad day-of-month"):
            spec_of({"kafka": {"bootstrapServers": "kafka:9092"}, "execution": {"windows": windows}})
