"""A reader of the documentation: a terminal in a clone, with the programs that the pages use."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from e2e.bench.helm_build import helm_binary
from e2e.bench.kube import KubeCluster
from e2e.bench.process import Child
from e2e.documented_commands import PLACEHOLDERS

ROOT = Path(__file__).parents[1]
CLONE = ("charts", "crds", "deploy")


class Reader:
    """Executes command lines in `directory`, with the names of the test servers instead of those of the pages.

    `names` has a value for each name in braces of `PLACEHOLDERS`; without names the lines are executed as they are.
    """

    def __init__(self, directory: Path, kube: KubeCluster | None = None, **names: str) -> None:
        self.directory = directory
        self.names = defaultdict(str, names)
        self._kube = kube
        self._env = {**os.environ, "KUBECONFIG": os.devnull, "HOME": str(directory)}
        programs = directory / "programs"
        programs.mkdir()
        self._env["PATH"] = os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"]))
        (programs / "helm").symlink_to(helm_binary())
        if kube is not None:
            (programs / "kubectl").symlink_to(kube.kubectl_path)
            self._env["KUBECONFIG"] = str(self._kubeconfig(kube, names.get("namespace", "default")))
        for name in CLONE:
            (directory / name).symlink_to(ROOT / name)
        shutil.copytree(ROOT / "examples", directory / "examples")

    def installs(self, name: str, *program: str, after: Sequence[str] = ()) -> None:
        """Put a program on the path, with options that are always added to those that the reader types."""
        path = self.directory / "programs" / name
        path.write_text(f'#!/bin/sh\nexec {shlex.join(program)} "$@" {shlex.join(after)}\n', encoding="utf-8")
        path.chmod(0o755)

    def line(self, shown: str) -> str:
        """The command line that the reader types for a command of the pages."""
        for pattern, value in PLACEHOLDERS if self.names else ():
            shown = re.sub(pattern, lambda found, value=value: found.expand(value).format_map(self.names), shown)
        return shown

    def types(self, *shown: str, code: int = 0, answer: str = "", **env: str) -> str:
        """Execute these commands, one after the other in one shell; returns the output.

        AssertionError if the exit code of the last one is another.
        """
        script = "set -eo pipefail\n" + "\n".join(self.line(command) for command in shown)
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.directory,
            env={**self._env, **env},
            input=answer,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            start_new_session=True,  # without a terminal, programs read passwords from stdin
        )
        assert done.returncode == code, (
            f"{script}\nends with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}"
        )
        return done.stdout + done.stderr

    def starts(self, shown: str) -> Child:
        """Execute a command in the background."""
        return Child(
            shlex.split(self.line(shown)), log=self.directory / "background.log", env=self._env, cwd=self.directory
        )

    def writes(self, name: str, body: Mapping[str, Any], **spec: Any) -> None:
        """Write a manifest of the pages, with the names of the test servers, and with these fields of the spec."""
        changed = {**body, "spec": {**body["spec"], **spec}}
        text = yaml.safe_dump(changed, sort_keys=False)
        text = re.sub(PLACEHOLDERS[0][0], self.names["bootstrap"], text)
        text = re.sub(r"namespace: (kafka|default)$", f"namespace: {self.names['namespace']}", text, flags=re.MULTILINE)
        path = self.directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def example(self, name: str, /, **spec: Any) -> None:
        """Write an example of the repository as `writes` does."""
        body = yaml.safe_load((ROOT / "examples" / name).read_text(encoding="utf-8"))
        self.writes(f"examples/{name}", body, **spec)

    def _kubeconfig(self, kube: KubeCluster, namespace: str) -> Path:
        """That of the administrator, with the namespace in its context."""
        view = json.loads(kube.kubectl("config", "view", "--raw", "--flatten", "-o", "json"))
        for context in view["contexts"]:
            context["context"]["namespace"] = namespace
        path = self.directory / "kubeconfig"
        path.write_text(json.dumps(view), encoding="utf-8")
        return path
