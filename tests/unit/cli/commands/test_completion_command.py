"""kafka-rebalance completion: the scripts, and the program that kubectl calls."""

import os
import subprocess
import sys

import pytest
from tests.fakes.whole_program import run_program

from kafka_rebalance.cli.commands import completion_command


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_both_names_of_the_program(shell):
    done = run_program("completion", shell)
    assert done.code == 0
    for program, variable in (
        ("kafka-rebalance", "_KAFKA_REBALANCE_COMPLETE"),
        ("kubectl-kafka_rebalance", "_KUBECTL_KAFKA_REBALANCE_COMPLETE"),
    ):
        assert program in done.out
        assert f"{variable}={shell}_complete" in done.out


def test_another_shell():
    done = run_program("completion", "csh")
    assert done.code == 2
    assert "'csh' is not one of 'bash', 'zsh', 'fish'" in done.err


def completed(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-kafka_rebalance", *words])
    completion_command.complete_plugin()
    *found, directive = capsys.readouterr().out.splitlines()
    return [line.partition("\t")[0] for line in found], directive


class TestForKubectl:
    """The words after the name of the plugin; the last line is a directive of Cobra."""

    @pytest.mark.parametrize(
        ("words", "found"),
        [
            (("un",), ["undo", "unfreeze"]),
            (("list", "--all"), ["--all-namespaces"]),
            (("list", "-o", ""), ["table", "wide", "name", "json", "yaml"]),
            (("cancel", "r", "--policy", "R"), ["Rollback", "Revert"]),
        ],
    )
    def test_candidates(self, monkeypatch, capsys, words, found):
        assert completed(monkeypatch, capsys, *words) == (found, ":4")

    def test_files(self, monkeypatch, capsys):
        """The shell completes their names itself."""
        assert completed(monkeypatch, capsys, "plan", "--cluster", "") == ([], ":0")

    def test_nothing_typed_yet(self, monkeypatch, capsys):
        assert "approve" in completed(monkeypatch, capsys)[0]


def test_names_of_commands_are_completed_without_importing_them():
    """In a new process, as a shell asks."""
    env = {
        **os.environ,
        "_KAFKA_REBALANCE_COMPLETE": "bash_complete",
        "COMP_WORDS": "kafka-rebalance p",
        "COMP_CWORD": "1",
    }
    code = (
        "import sys; sys.argv = ['kafka-rebalance']\n"
        "from kafka_rebalance.cli.main import main\n"
        "try: main()\n"
        "finally: assert not [name for name in sys.modules if 'kafka_rebalance.cli.commands.' in name]"
    )
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("plain,pipeline\nplain,plan\n", "")
