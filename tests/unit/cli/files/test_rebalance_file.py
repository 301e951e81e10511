"""The KafkaRebalance in a file: which document is used, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_rebalance.cli.files.rebalance_file import read_rebalance, read_spec, spec_of

HEAD = "apiVersion: kafkarebalance.dev/v1alpha1\nkind: KafkaRebalance\n"
KAFKA = {"bootstrapServers": "kafka:9092"}


def read(text: str) -> dict[str, Any]:
    return read_rebalance((HEAD + text).encode())


class TestDocument:
    def test_among_others(self) -> None:
        """A Secret in the same file and Strimzi's resource of the same kind are ignored."""
        others = (
            "---\nkind: Secret\n---\napiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaRebalance\nspec: {mode: full}\n"
        )
        assert read(f"spec: {{priority: 1}}\n{others}")["spec"] == {"priority": 1}

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("", "expected one KafkaRebalance, found nothing"),
            (HEAD + "spec: {a: 1}\n---\n" + HEAD, "expected one KafkaRebalance, found KafkaRebalance, KafkaRebalance"),
            ("kind: KafkaRebalance\n", "expected one KafkaRebalance, found KafkaRebalance of no apiVersion"),
            ("apiVersion: v1\nkind: Secret\n---\nabc\n", "expected one KafkaRebalance, found Secret of v1, text"),
        ],
    )
    def test_not_one(self, text: str, says: str) -> None:
        with pytest.raises(ValueError, match=f"^{says}"):
            read_rebalance(text.encode())

    @pytest.mark.parametrize(
        ("text", "field"),
        [
            ("", "spec: "),
            ("spec: {}\n", "spec: "),
            ("spec: [1]\n", "spec: "),
            ("sepc: {}\n", "sepc: unknown field"),
            ("metadata: x\n", "metadata: "),
            ("metadata: {name: Bad_Name}\n", r"metadata\.name: "),
            ("metadata: {namespace: a.b}\n", r"metadata\.namespace: "),
            ("metadata: {labels: {a: 1}}\n", r"metadata\.labels\.a: "),
            ("metadata: {annotations: [a]}\n", r"metadata\.annotations: "),
        ],
    )
    def test_the_field_is_named(self, text: str, field: str) -> None:
        with pytest.raises(ValueError, match=f"(^|; ){field}"):
            read(text)

    @pytest.mark.parametrize("value", [".nan", "!!binary aGk=", "!!set {a}", "{[a]: b}", "{{a: b}: c}"])
    def test_a_value_without_json_is_refused(self, value: str) -> None:
        with pytest.raises(ValueError, match=r".+"):
            read(f"spec: {{a: {value}}}\n")

    def test_an_alias_within_its_own_anchor(self) -> None:
        with pytest.raises(ValueError, match=r"^not JSON: "):
            read("spec: &x\n  kafka: {a: b}\n  topics: *x\n")

    def test_nulls_are_absent(self) -> None:
        """Templates render nulls for unset values; Kubernetes drops them."""
        found = read("metadata: {name: a, labels: , annotations: {}, namespace: }\nspec: {a: [{b: , c: 1}], d: }\n")
        assert found["metadata"] == {"name": "a", "annotations": {}}
        assert found["spec"] == {"a": [{"c": 1}]}


class TestSpec:
    def test_incomplete(self) -> None:
        """It can be used as a base, but not for planning."""
        text = (HEAD + "spec: {priority: 1}\n").encode()
        assert read_rebalance(text)["spec"] == {"priority": 1}
        with pytest.raises(ValueError, match=r"^spec\.kafka: "):
            read_spec(text)

    def test_complete(self) -> None:
        text = HEAD + "metadata: {name: a}\nspec: {kafka: {bootstrapServers: 'kafka:9092'}}\n"
        assert read_spec(text.encode()).kafka.bootstrap_servers == "kafka:9092"

    def test_a_window_that_never_opens(self) -> None:
        """The API server would accept it, and nothing would ever move."""
        windows = [{"cron": "0 0 30 2 *", "duration": "1h"}]
        with pytest.raises(ValueError, match=r"spec\.execution\.windows\[0\]: cron '0 0 30 2 \*': bad day-of-month"):
            spec_of({"kafka": KAFKA, "execution": {"windows": windows}})
