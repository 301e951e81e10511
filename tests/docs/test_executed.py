"""Every command of the documentation is in a table of commands that are executed, or in one that says why not."""

import ast
import re
import shlex
from collections.abc import Iterator

import pytest
from e2e import documented_commands as tables
from e2e.commands_elsewhere import ELSEWHERE, NOT_EXECUTED
from tests.docs.pages import ROOT, Shown, commands

LOOP = re.compile(r"(for|do|done|while)\b")
"""The lines around the commands of a loop."""


def plain(command: str) -> str:
    """The command in one line, with the values of `ABBREVIATIONS`."""
    line = re.sub(r"\s+", " ", command.rstrip(" &|"))
    for short, whole in tables.ABBREVIATIONS.items():
        line = re.sub(rf"(?<!\S){re.escape(short.strip())}(?!\S)", whole.strip(), line)
    return line


def listed() -> Iterator[str]:
    """The commands of the tables of commands that are executed."""
    for name, table in vars(tables).items():
        if name.isupper() and name not in ("ABBREVIATIONS", "PLACEHOLDERS"):
            yield from (table,) if isinstance(table, str) else table


EXECUTED = {plain(command) for command in listed()}
KNOWN = EXECUTED | {plain(command) for table in (ELSEWHERE, NOT_EXECUTED) for command in table}
SHOWN = [shown for shown in commands() if not LOOP.match(shown.text)]


def in_part(text: str) -> bool:
    """Whether a text consists of words of one of the commands, in order."""
    try:
        words = shlex.split(text.replace("…", ""))
    except ValueError:
        return False
    for command in KNOWN:
        left = iter(shlex.split(command, posix=True))
        if all(word in left for word in words):
            return True
    return False


@pytest.mark.parametrize("shown", SHOWN, ids=str)
def test_a_command_is_executed_or_has_a_reason(shown: Shown) -> None:
    """A sentence may name a command in part."""
    text = plain(shown.text)
    assert text in KNOWN or (not shown.whole and in_part(text)), f"add it to e2e/documented_commands.py: {text}"


@pytest.mark.parametrize("command", sorted(KNOWN))
def test_a_command_of_the_tables_is_shown(command: str) -> None:
    assert command in {plain(shown.text) for shown in SHOWN}


def test_a_command_is_in_one_table() -> None:
    """Those that are executed need no reason."""
    assert not EXECUTED & {plain(command) for command in (*ELSEWHERE, *NOT_EXECUTED)}


def test_each_table_is_used() -> None:
    """By the test that executes them."""
    text = (ROOT / "e2e" / "test_documented_commands.py").read_text(encoding="utf-8")
    names = {name for name in vars(tables) if name.isupper()} - {"ABBREVIATIONS", "PLACEHOLDERS"}
    assert names == set(re.findall(r"shown\.([A-Z_]+)", text))


@pytest.mark.parametrize(("command", "path"), ELSEWHERE.items())
def test_the_other_test_calls_it(command: str, path: str) -> None:
    """A string in the file is the name of the command, one of its options, or the variable that it sets."""
    program, *words = shlex.split(command)
    name = words[1] if words[0] == "pipeline" else words[0].partition("=")[0]
    options = {word for word in words if program == "kafka-rebalance" and word.startswith("--")}
    strings = {
        node.value for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8"))) if type(node) is ast.Constant
    }
    assert strings & {name, *options}, f"{path} does not execute {program} {name}"
