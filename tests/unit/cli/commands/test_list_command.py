"""kafka-rebalance list: the columns of kubectl get, and the outputs of kubectl."""

import json
import shutil
from datetime import UTC, datetime
from unittest.mock import patch

import pytest
import yaml
from tests.unit.cli.commands.resource_runs import HASH, RUNNING, body, program, status, world

from kafka_rebalance.api.resource_status import Display
from kafka_rebalance.cli.tables import console
from kafka_rebalance.cli.tables.resource_table import print_resources

SHOWN = Display(progress="37%", moved="1.0 GiB/3.0 GiB", eta="12m-25m", throttle="50.0 MiB/s")


def running(**metadata):
    return body({}, status(RUNNING, display=SHOWN) | {"clusterId": "c-1"}, **metadata)


@pytest.fixture
def kube():
    return world(running(name="b"), running(name="a"), body(name="c", namespace="other"))


def rows(text):
    return [line.split() for line in text.splitlines()]


class TestTable:
    def test_the_namespace_of_the_scope(self, kube):
        """By name; the age changes with the clock."""
        header, *found = rows(program(kube, "list").out)
        assert header == ["NAME", "STATE", "PROGRESS", "MOVED", "ETA", "THROTTLE", "AGE"]
        assert [row[:-1] for row in found] == [
            [name, "Rebalancing", "37%", "1.0", "GiB/3.0", "GiB", "12m-25m", "50.0", "MiB/s"] for name in "ab"
        ]

    def test_all_namespaces(self, kube):
        header, *found = rows(program(kube, "list", "-A").out)
        assert header[:2] == ["NAMESPACE", "NAME"]
        assert [row[:3] for row in found] == [
            ["kafka", "a", "Rebalancing"],
            ["kafka", "b", "Rebalancing"],
            ["other", "c", "Pending"],
        ]

    def test_wide(self, kube):
        header, row, _ = rows(program(kube, "list", "-o", "wide").out)
        assert header[-4:] == ["CLUSTER", "MOVES", "BYTES", "PLAN"]
        assert row[-5:] == ["c-1", "2", "2.0", "KiB", HASH[:19]]

    def test_one_that_this_version_cannot_read_is_listed_too(self):
        broken = body({"strategy": "OfTheFuture"}, {"conditions": [], "novelty": 1}, name="x")
        assert rows(program(world(broken), "list").out)[1][:2] == ["x", "Pending"]

    def test_none(self, kube):
        done = program(kube, "list", "-n", "empty")
        assert (done.code, done.out, done.err) == (0, "", "no KafkaRebalance in namespace empty\n")
        assert program(world(), "list", "-A").err == "no KafkaRebalance in any namespace\n"

    @pytest.mark.parametrize("columns", [80, 100])
    def test_it_fits_a_terminal(self, columns, capsys):
        """Cells are folded: nothing of a name is hidden."""
        name = "a-rebalance-with-a-rather-long-name-of-sixty-characters-or-so"
        found = [running(name=name)]
        size = shutil.os.terminal_size((columns, 24))
        with (
            patch.object(console, "_at_terminal", lambda: True),
            patch.dict("os.environ", {"COLUMNS": str(columns)}),
            patch("shutil.get_terminal_size", lambda *_: size),
        ):
            print_resources(found, datetime.now(UTC), namespaces=True, wide=True)
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= columns
        assert "…" not in "".join(lines)

    def test_piped_output_has_one_line_for_each(self, kube):
        assert len(program(kube, "list", "-A", "-o", "wide").out.splitlines()) == 4


class TestForPrograms:
    def test_names(self, kube):
        done = program(kube, "list", "-o", "name")
        assert done.out == "kafkarebalance.kafkarebalance.dev/a\nkafkarebalance.kafkarebalance.dev/b\n"

    @pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
    def test_documents(self, kube, output, read):
        """A List, as kubectl prints it."""
        found = read(program(kube, "list", "-A", "-o", output).out)
        assert (found["apiVersion"], found["kind"]) == ("v1", "List")
        assert [row["metadata"]["name"] for row in found["items"]] == ["a", "b", "c"]
