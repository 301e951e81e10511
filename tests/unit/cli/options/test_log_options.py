"""--log-level and --log-format: the choices of a command, and what it gets."""

import click
import pytest
from click.testing import CliRunner

from kafka_rebalance.cli.options.log_options import log_options


@click.command()
@log_options(["debug", "info"], "info")
def command(log_level: str, log_format: str) -> None:
    click.echo(f"{log_level} {log_format}")


@pytest.mark.parametrize(
    ("options", "given"),
    [([], "info text\n"), (["--log-level", "debug", "--log-format", "json"], "debug json\n")],
)
def test_given_to_the_command(options: list[str], given: str) -> None:
    assert CliRunner().invoke(command, options).output == given


def test_another_level_is_refused() -> None:
    assert CliRunner().invoke(command, ["--log-level", "error"]).exit_code == 2
