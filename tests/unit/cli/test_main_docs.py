"""docs/cli.md documents every command and every option, so that no new one is left undocumented."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.fakes.whole_program import run_program

from kafka_rebalance.cli.main import cli

TEXT = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")
SECTIONS = {
    title: body
    for title, _, body in (section.partition("\n") for section in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:])
}
FOR_ALL = ("How to reach Kafka", "Common options")
_OPTIONS_OF = re.compile(r"the options of `([a-z-]+)`")


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that is not a group, with its path."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


COMMANDS = dict(commands(cli))


def about(path: str) -> str:
    """The text about a command: its section, those of the commands whose options it shares, and the common ones."""
    own = SECTIONS.get(path.split(maxsplit=1)[0], "")
    return "\n".join([own, *(SECTIONS.get(name, "") for name in (*_OPTIONS_OF.findall(own), *FOR_ALL))])


@pytest.mark.parametrize("path", COMMANDS)
def test_a_command_has_a_section(path: str) -> None:
    """And a row in the table at the top."""
    name, *words = path.split()
    assert f"| `{name}` |" in TEXT.partition("\n## ")[0]
    assert name in SECTIONS
    assert all(f"`{word}`" in SECTIONS[name] or f"{name} {word}" in SECTIONS[name] for word in words)


@pytest.mark.parametrize(
    ("path", "option"),
    [
        (path, option)
        for path, command in COMMANDS.items()
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
    ],
)
def test_an_option_is_named(path: str, option: str) -> None:
    """By each of its names, where its command is documented."""
    assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", about(path))


def test_no_section_is_about_a_command_that_is_gone() -> None:
    """A heading in lower case is a command's name."""
    assert {title for title in SECTIONS if title.islower()} == {path.split(maxsplit=1)[0] for path in COMMANDS}


_EXAMPLE = re.compile(r"^\$ kafka-rebalance ((?:plan|explain|steps) .*)\n((?:(?!\$ |```).*\n)+)", re.MULTILINE)
EXAMPLES = dict(_EXAMPLE.findall(TEXT))


def comparable(output: str) -> list[str]:
    """The lines without trailing spaces and without the planning time."""
    return [re.sub(r"in \d+\.\d+ s", "in … s", line.rstrip()) for line in output.strip("\n").splitlines()]


def test_there_are_examples() -> None:
    """The outputs of each command that needs no server."""
    assert {command.split()[0] for command in EXAMPLES} == {"plan", "explain", "steps"}


@pytest.mark.parametrize("command", EXAMPLES)
def test_an_example_shows_what_is_printed(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the root of a clone, with the files in examples/."""
    monkeypatch.chdir(Path(__file__).parents[3])
    code, out, err = run_program(*command.split())
    assert code == 0, err
    assert comparable(EXAMPLES[command]) == comparable(out)
