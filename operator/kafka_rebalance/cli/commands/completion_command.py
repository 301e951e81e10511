"""kafka-rebalance completion: the script that makes a shell complete commands and options.

kubectl does not complete its plugins: it calls the program ``kubectl_complete-kafka_rebalance``, which this module
provides too.
"""

import sys

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

PROGRAMS = ("kafka-rebalance", "kubectl-kafka_rebalance")


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a SHELL, for kafka-rebalance and kubectl-kafka_rebalance.

    \b
    bash: source <(kafka-rebalance completion bash)
    zsh:  source <(kafka-rebalance completion zsh)
    fish: kafka-rebalance completion fish | source
    """
    made = get_completion_class(shell)
    assert made is not None  # noqa: S101 - one of the choices, which click knows
    for program in PROGRAMS:
        click.echo(made(ctx.find_root().command, {}, program, _variable(program)).source())


def complete_plugin() -> None:
    """Entry point for kubectl: the arguments are the words after ``kubectl kafka-rebalance``, the last one incomplete.

    Prints the candidates and, as kubectl expects, a last line with what the shell is to do next.
    """
    from kafka_rebalance.cli.main import cli

    *words, incomplete = sys.argv[1:] or [""]
    found = ShellComplete(cli, {}, PROGRAMS[0], _variable(PROGRAMS[0])).get_completions(words, incomplete)
    files = [item for item in found if item.type != "plain"]
    for item in found:
        if item.type == "plain":
            click.echo(_line(item))
    click.echo(":0" if files else ":4")  # Cobra's directives: default, which completes file names, and no file names


def _line(item: CompletionItem) -> str:
    return f"{item.value}\t{item.help}" if item.help else str(item.value)


def _variable(program: str) -> str:
    """The variable by which click recognises that a shell asks for candidates."""
    return f"_{program.upper().replace('-', '_')}_COMPLETE"
