"""Runs the programs that make parts of a release."""

import subprocess
import sys


def run_python_module(*arguments: str) -> None:
    """Run a Python module of this environment, without its output. SystemExit with the output if it fails."""
    command = [sys.executable, "-m", *arguments]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"{ran.stdout}python -m {' '.join(arguments)} failed with exit code {ran.returncode}")
