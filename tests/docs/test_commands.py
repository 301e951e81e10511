"""Every command in the documentation is one that the program or the API server accepts.

`e2e/test_documented_commands.py` executes them, and `tests/chart` and `e2e/node` those of helm.
"""

import json
import shlex
from glob import glob
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from e2e.demo.next_steps import next_steps
from tests.docs.pages import ROOT, Shown, blocks, commands, lines, words

from kafka_rebalance.api.v1alpha1 import parse_rebalance, parse_throttle
from kafka_rebalance.cli.files.manifest_lint import lint
from kafka_rebalance.cli.main import cli
from kafka_rebalance.kube.merge_patch import merge_patch

BASE = {
    "krb": yaml.safe_load((ROOT / "examples" / "add-brokers.yaml").read_text(encoding="utf-8")),
    "krt": yaml.safe_load((ROOT / "examples" / "throttle.yaml").read_text(encoding="utf-8")),
}
PARSERS = {"krb": parse_rebalance, "krt": parse_throttle}
METADATA = {
    "name": "add-brokers",
    "namespace": "kafka",
    "uid": "u-1",
    "generation": 1,
    "creationTimestamp": "2026-01-01T00:00:00Z",
}
FILES = (
    "add-brokers.yaml",
    "cluster.json",
    "etc/prometheus/token",
    "first.yaml",
    "krb.yaml",
    "manifests/krb.yaml",
    "plan.json",
    "prod-eu.properties",
)
DIRECTORIES = ("snapshots", "DIR")
PLACEHOLDERS = {"$cluster": "prod-eu", " /etc/": " etc/", " RATE": " 50Mi"}

OURS = [shown for shown in commands() if shown.text.startswith("kafka-rebalance ") and words(shown.text)]
OF_THE_DEMO = [
    Shown("e2e/demo/next_steps.py", line)
    for line in lines(
        next_steps(
            kubeconfig="kubeconfig",
            path="bin",
            bootstrap="kafka:9092",
            directory=".",
            lake="lake",
            log="log",
            namespace="kafka",
            resource="krb",
        )
    )
    if line.startswith("kafka-rebalance ")
]
PATCHES = [shown for shown in commands() if shown.text.startswith("kubectl patch k") and " -p " in shown.text]


class _Parsed(Exception):
    """The command line was valid; nothing was executed."""


@pytest.fixture
def parse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Parse a command line where the files that it names exist, and execute nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}", encoding="utf-8")
    for name in DIRECTORIES:
        (tmp_path / name).mkdir()

    def stop(command: click.Command, _: click.Context) -> None:
        if not isinstance(command, click.Group):  # the group of a command is invoked before its options are parsed
            raise _Parsed

    monkeypatch.setattr(click.Command, "invoke", stop)

    def run(command: str) -> None:
        typed = command.split(" > ", maxsplit=1)[0]
        for placeholder, value in PLACEHOLDERS.items():
            typed = typed.replace(placeholder, value)
        arguments = [name for word in shlex.split(typed)[1:] for name in sorted(glob(word)) or [word]]
        with pytest.raises(_Parsed):
            cli.main(arguments, standalone_mode=False)

    return run


def test_the_commands_are_found() -> None:
    """Of the README, of the pages, in blocks and in the text."""
    pages = {shown.page for shown in OURS}
    assert {"README.md", "docs/cli.md", "docs/pipeline.md", "docs/runbook.md"} <= pages
    assert len(OURS) > 80
    assert len(PATCHES) >= 5


def test_the_demo_needs_no_kubectl() -> None:
    """The demo shows the commands that change a run."""
    typed = {words(shown.text)[1] for shown in OF_THE_DEMO}
    assert {"plan", "watch", "top", "throttle", "suspend", "resume", "cancel", "list", "history", "report"} <= typed


@pytest.mark.parametrize("shown", [*OURS, *OF_THE_DEMO], ids=str)
def test_a_command_has_the_options_that_are_shown(shown: Shown, parse: Any) -> None:
    """And their values are of the right form. A text that only names a command leaves out what the command requires."""
    try:
        parse(shown.text)
    except click.MissingParameter:
        assert not shown.whole, shown.text


@pytest.mark.parametrize("shown", PATCHES, ids=str)
def test_a_patch_gives_a_valid_resource(shown: Shown) -> None:
    """Applied to the example as the API server does."""
    arguments = shlex.split(shown.text)
    kind = arguments[2]
    body = merge_patch(BASE[kind], json.loads(arguments[arguments.index("-p") + 1]))
    PARSERS[kind]({**body, "metadata": METADATA})


FOREIGN = "scrape_configs:"
"""Prometheus reads this configuration, not the operator: `e2e/test_metrics.py` has promtool check it."""
CHART_VALUES = yaml.safe_load((ROOT / "charts/kafka-rebalance-operator/values.yaml").read_text(encoding="utf-8"))
CONNECTION = yaml.safe_load((ROOT / "examples" / "connection.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("shown", [shown for shown in blocks("yaml") if not shown.text.startswith(FOREIGN)], ids=str)
def test_a_manifest_is_valid(shown: Shown) -> None:
    """A whole resource by itself, and a part of one in an example. Values of the chart exist in it."""
    body = yaml.safe_load(shown.text)
    if "pipeline" in body:
        assert _unknown(body, CHART_VALUES) == []
        return
    if "goals" in body:
        body = merge_patch(BASE["krb"], {"spec": body})
    elif "kind" not in body:
        body = merge_patch(CONNECTION, body)
    (found,) = lint(yaml.safe_dump(body).encode())
    assert found.errors == ()


def _unknown(values: dict[str, Any], known: dict[str, Any], path: str = "") -> list[str]:
    """The keys that the chart has no value for. Below a list or an empty value it takes what is written."""
    return [
        name
        for key, value in values.items()
        for name in (
            [f"{path}{key}"]
            if key not in known
            else _unknown(value, known[key], f"{path}{key}.")
            if isinstance(value, dict) and known[key]
            else []
        )
    ]
