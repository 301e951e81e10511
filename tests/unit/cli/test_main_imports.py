"""What commands need of the libraries that are installed by default: a laptop without a solver is enough for most."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.fakes.whole_program import run_program

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
NOT_THIN = ("ortools", "numba", "numpy", "pyarrow", "pyspark", "kafka", "confluent_kafka", "kopf", "aiohttp")
"""Modules of the dependencies that the group cli lacks."""

_BLOCKED = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {NOT_THIN!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
from tests.unit.cli.commands.resource_runs import HASH, WAITING, body, program, status, world
from tests.fakes.whole_program import run_program
found = world(body({{"approval": {{"policy": "Manual"}}}}, status(WAITING)))
for arguments in (
    ("status", "r"), ("list", "-A"), ("diff", "r"), ("history",), ("approve", "r", "-y"), ("suspend", "r"),
    ("throttle", "r", "--unlimited"), ("cancel", "r", "-y"),
):
    done = program(found, *arguments)
    assert done.code == 0, (arguments, done)
drain = ("drain", "4", "--connection", "c")
for arguments in (("lint", "-"), ("--help",), ("completion", "bash"), drain, ("watch", "-h"), ("undo", "-h")):
    done = run_program(*arguments)
    assert done.code == 0, (arguments, done)
done = run_program("snapshot", "-h")
assert done.code == 1 and done.err == (
    "failed (ExtraMissing): confluent_kafka is not installed: this command needs the complete program, "
    "pip install kafka-rebalance-operator\\n"
), done
"""


def test_the_commands_of_resources_need_no_solver_and_no_kafka_client() -> None:
    """It also needs no Arrow and no Spark. The test uses a process in which these cannot be imported."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", _BLOCKED], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def imported_by(command: str) -> set[str]:
    """The modules that a new process has imported when it has loaded this command."""
    code = (
        f"import sys; from kafka_rebalance.cli.main import cli; cli.get_command(None, {command!r});"
        " print(*sys.modules, sep='\\n')"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_status_imports_no_rules_of_execution_and_no_planner() -> None:
    """Only --batch needs them: they take a tenth of the time that the command takes to start."""
    imported = imported_by("status")
    assert "kafka_rebalance.cli.tables.status_table" in imported
    ours = {".".join(name.split(".")[:2]) for name in imported if name.startswith("kafka_rebalance.")}
    assert not ours & {"kafka_rebalance.planning", "kafka_rebalance.kafka", "kafka_rebalance.reconcile"}
    assert not imported & {"kafka_rebalance.execution.partition_status", "kafka_rebalance.model.plan", "kubernetes"}


def test_plan_imports_no_rules_of_a_run() -> None:
    """Only --durations needs them: they are a quarter of what the command takes to start."""
    ours = {".".join(name.split(".")[:2]) for name in imported_by("plan") if name.startswith("kafka_rebalance.")}
    assert "kafka_rebalance.planning" in ours
    assert not ours & {"kafka_rebalance.reconcile", "kafka_rebalance.kafka", "kafka_rebalance.kube"}


def test_commands_are_imported_without_the_collector() -> None:
    """Otherwise it looks for cycles some eighty times in what is only being defined. Afterwards it is on again."""
    code = (
        "import gc; from kafka_rebalance.cli.main import cli;"
        " before = gc.get_stats()[0]['collections']; cli.get_command(None, 'status');"
        " print(gc.get_stats()[0]['collections'] - before, gc.isenabled())"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    collections, enabled = done.stdout.split()
    assert int(collections) <= 1  # the one that is due when it is on again
    assert enabled == "True"


def test_the_thin_installation_is_a_part_of_the_complete_one() -> None:
    thin = set(PROJECT["dependency-groups"]["cli"])
    assert thin < set(PROJECT["project"]["dependencies"])


def test_a_defect_of_ours_is_not_taken_for_a_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kafka_rebalance.cli.commands.steps_command", None)
    with pytest.raises(ModuleNotFoundError):
        run_program("steps", "--current", "1", "--target", "2")
