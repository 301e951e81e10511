"""kafka-rebalance execute --rebalance: a KafkaRebalance as the base."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.cli.commands.execute_runs import FROM_FILE, World

BASE = {
    "apiVersion": "kafkarebalance.dev/v1alpha1",
    "kind": "KafkaRebalance",
    "metadata": {
        "name": "standing",
        "namespace": "kafka",
        "labels": {"team": "a", "kafkarebalance.dev/x": "z"},
        "annotations": {
            "argocd.argoproj.io/sync-options": "Prune=confirm",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "kafkarebalance.dev/undo": "sha256:0",
        },
        "finalizers": ["kafkarebalance.dev/rollback"],
        "uid": "u",
    },
    "spec": {"priority": 5},
}


@pytest.fixture
def world() -> World:
    return World()


class TestBeginning:
    """A KafkaRebalance as the base: which parts are used, and which are refused."""

    @pytest.fixture
    def base(self, tmp_path: Path) -> Callable[[str], tuple[str, ...]]:
        def written(text: str) -> tuple[str, ...]:
            file = tmp_path / "base.yaml"
            file.write_text(text)
            return ("--rebalance", str(file))

        return written

    def test_the_persons_metadata_is_kept(self, world: World, base: Callable[[str], tuple[str, ...]]) -> None:
        """The copy has a new name, because the old one exists, and no metadata about the old object itself."""
        made = world.printed(*FROM_FILE, *base(yaml.safe_dump(BASE)))
        for each in made:
            assert each["metadata"].pop("name").startswith("reassign-")
        kept = {
            "namespace": "kafka",
            "labels": {"team": "a"},
            "annotations": {"argocd.argoproj.io/sync-options": "Prune=confirm"},
        }
        assert made[1]["metadata"] == kept
        assert made[0]["metadata"] == {**kept, "labels": {"team": "a", "kafkarebalance.dev/written-by": "execute"}}

    def test_the_namespace_can_be_another(self, world: World, base: Callable[[str], tuple[str, ...]]) -> None:
        (made,) = world.printed("--decommission-broker", "4", "-n", "other", *base(yaml.safe_dump(BASE)))
        assert made["metadata"]["namespace"] == "other"

    def test_lists_are_no_plan(self, world: World, base: Callable[[str], tuple[str, ...]]) -> None:
        """The options would have no effect: the lists decide."""
        spec = {"strategy": "Assignment", "assignment": {"configMapRef": {"name": "lists"}}}
        code, out, err = world.run("--decommission-broker", "4", *base(yaml.safe_dump({**BASE, "spec": spec})))
        assert (code, out) == (2, "")
        assert "Invalid value for --rebalance: its strategy is Assignment" in err

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (
                {"spec": {"priority": "5"}},
                "spec.priority: must be an integer, found '5' (merged with the options)",
            ),
            ({"spec": {"goals": {"balance": "Both"}}}, "spec: goals.balance, load, maxReplicaMoves, maxDataToMove"),
            ({"spec": {"exection": {}}}, "spec.exection: unknown field"),
            (
                {"spec": {"execution": {"windows": [{"cron": "0 0 31 2 *", "duration": "1h"}]}}},
                "spec.execution.windows[0]: cron '0 0 31 2 *': bad day-of-month",
            ),
            ({"spec": None}, "spec: is required"),
            ({"spce": {}}, "spce: unknown field"),
            ({"metadata": {"labels": {"a": 1}}}, "metadata.labels.a: must be text: put it in quotes, found 1"),
            ({"apiVersion": "kafka.strimzi.io/v1beta2"}, "expected one KafkaRebalance, found KafkaRebalance of kafka."),
        ],
    )
    def test_refused_before_anything_is_printed(
        self, world: World, base: Callable[[str], tuple[str, ...]], change: dict[str, Any], says: str
    ) -> None:
        """The message names the option and the field."""
        code, out, err = world.run(*FROM_FILE, *base(yaml.safe_dump({**BASE, **change})))
        assert (code, out) == (2, "")
        assert f"Invalid value for --rebalance: {says}" in err
        assert "Current partition" not in err
