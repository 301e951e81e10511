"""No rule without a recording: the contract tests that the simulated brokers name exist."""

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CONTRACT = HERE.parent / "contract"
LOG_DIRS = ("test_log_dirs.py", "test_offline_log_dir.py")
SIMULATED = (
    "brokers.py",
    "config_rules.py",
    "controller.py",
    "faults.py",
    "fault_scenario.py",
    "log_dirs.py",
    "troubled_brokers.py",
)
_NAMED = re.compile(r"`(?:tests/contract/)?(test_\w+\.py)(?:::(\w+))?`|`(Test\w+)`")


def classes(file):
    """The test classes of a contract module."""
    return {node.name for node in ast.parse((CONTRACT / file).read_text()).body if isinstance(node, ast.ClassDef)}


@pytest.mark.parametrize("module", SIMULATED)
def test_they_exist(module):
    text = (HERE / module).read_text()
    named = [match for match in _NAMED.findall(text) if not match[0].startswith("test_recordings")]
    assert named
    for file, name, bare in named:
        if bare:
            modules = LOG_DIRS if module == "log_dirs.py" else ("test_configs.py",)
            assert any(bare in classes(each) for each in modules), bare
        else:
            assert not name or name in classes(file), f"{file}::{name}"
