"""kafka-rebalance: the entry point. Each command is imported only when it is called: the clients import slowly.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused (the reason on stderr, nothing on stdout), 4 the answer is no.
"""

import errno
import importlib
import os
import signal
import sys

import click
from click.shell_completion import CompletionItem

from kafka_rebalance.cli.exit_codes import EXIT_FAILED, EXIT_REFUSED
from kafka_rebalance.errors import RebalanceError, Refused
from kafka_rebalance.model.bulk import without_collector
from kafka_rebalance.reasons import Reason

# Errors of writing to a full or broken disk. Any other system error without a file name is a defect: show its stack.
_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}

_COMMANDS = {
    "approve": "Approve the plan of a KafkaRebalance.",
    "cancel": "Cancel a KafkaRebalance by deleting it.",
    "check-install": "Verify the installation of the operator.",
    "completion": "Print the completion script for a shell.",
    "diff": "Show what the plan of a KafkaRebalance changes.",
    "doctor": "Find problems that a Kafka cluster does not recover from.",
    "drain": "Empty brokers with a KafkaRebalance.",
    "execute": "Execute a reassignment file or a decommission as a KafkaRebalance.",
    "explain": "Explain why a plan moves what it moves.",
    "freeze": "Stop all rebalances of a Kafka cluster from submitting steps.",
    "history": "List the finished runs on record.",
    "lint": "Check manifest files offline.",
    "list": "List KafkaRebalances.",
    "operator": "Run the operator in the foreground.",
    "pipeline": "Sample a cluster, and compute load models with Spark.",
    "plan": "Plan offline from a cluster file.",
    "report": "Write a report of a plan or a run as a web page or Markdown.",
    "resume": "Resume a KafkaRebalance after suspend.",
    "retire": "Prepare the removal of the operator.",
    "run": "Carry out a KafkaRebalance from a file, without Kubernetes.",
    "snapshot": "Write a live cluster to a file for plan.",
    "status": "Show the progress of a KafkaRebalance.",
    "steps": "List the steps from one assignment to another.",
    "suspend": "Suspend a KafkaRebalance.",
    "throttle": "Set the throttle of a KafkaRebalance.",
    "top": "Show what is in motion, and how fast.",
    "undo": "Undo a KafkaRebalance that has succeeded.",
    "unfreeze": "Let the rebalances of a Kafka cluster continue after freeze.",
    "verify": "Verify that a reassignment file has been executed.",
    "watch": "Follow a KafkaRebalance until it ends.",
}
"""The line for --help of each command. The command x-y is in the module ``x_y_command``."""
_OPPOSITES = {"resume": "suspend", "unfreeze": "freeze"}
"""These are in the module of the other."""


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        with without_collector():
            module = importlib.import_module(f"kafka_rebalance.cli.commands.{_OPPOSITES.get(name, name)}_command")
        commands = (found for found in vars(module).values() if isinstance(found, click.Command))
        return next(found for found in commands if found.name == cmd_name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Without importing the commands, which the user would wait for."""
        named = [CompletionItem(name, help=line) for name, line in sorted(_COMMANDS.items())]
        return [item for item in named if item.value.startswith(incomplete)] + click.Command.shell_complete(
            self, ctx, incomplete
        )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as unknown:
            raise click.exceptions.NoSuchCommand(unknown.command_name, possibilities=_COMMANDS, ctx=ctx) from unknown

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kafka-rebalance-operator")
def cli() -> None:
    """Rebalance Kafka clusters with the fewest replica moves, in small steps, throttled and with rollback."""


def main() -> None:
    """Entry point: turns our own errors into exit codes and one line on stderr."""
    if os.getpid() == 1:
        # Process 1 of a container ignores signals without a handler, and would be killed after the grace period.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        sys.exit(130)
    except Refused as refused:
        click.echo(f"refused ({refused.reason}): {refused.message}", err=True)
        sys.exit(EXIT_REFUSED)
    except RebalanceError as failed:
        click.echo(f"failed ({failed.reason}): {failed.message}", err=True)
        sys.exit(EXIT_FAILED)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] == "kafka_rebalance":
            raise
        click.echo(
            f"failed ({Reason.EXTRA_MISSING}): {missing.name} is not installed: this command needs the complete "
            "program, pip install kafka-rebalance-operator",
            err=True,
        )
        sys.exit(EXIT_FAILED)
    except OSError as error:
        if error.errno in _UNWRITABLE:
            _drop_output()
            click.echo(f"failed (OutputFailed): {error.strerror}", err=True)
        elif error.filename is not None:
            click.echo(f"failed (FileFailed): {error.strerror}: {error.filename}", err=True)
        else:
            raise
        sys.exit(EXIT_FAILED)


def _drop_output() -> None:
    """Redirect stdout to /dev/null: at exit Python would fail to flush its buffer and print a traceback."""
    if sys.stdout is None:  # closed by the shell: >&-
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
