"""The manifest with which `kubectl krew` installs the command line as a kubectl plugin."""

from pathlib import Path

import yaml

from release.checksums import sha256
from release.command_archives import PROGRAM

NAME = "kafka-rebalance"


def write_manifest(archives: dict[tuple[str, str], Path], released: str, url: str, output: Path) -> Path:
    """The manifest for archives by platform, which will be at ``url``."""
    manifest = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": NAME},
        "spec": {
            "version": f"v{released}",
            "homepage": url,
            "shortDescription": "Rebalance Kafka with the fewest replica moves",
            "description": (
                "Follows, approves, throttles, suspends, cancels and undoes the rebalances of the Kafka\n"
                "rebalance operator. Commands that make plans need the Python package.\n"
            ),
            "caveats": "Needs Python 3.11, 3.12 or 3.13 on the PATH.\n",
            "platforms": [
                {
                    "selector": {"matchLabels": {"os": system, "arch": machine}},
                    "uri": f"{url}/{path.name}",
                    "sha256": sha256(path),
                    "bin": PROGRAM,
                    "files": [{"from": "*", "to": "."}],
                }
                for (system, machine), path in sorted(archives.items())
            ],
        },
    }
    target = output / f"{NAME}.yaml"
    target.write_text(yaml.safe_dump(manifest, sort_keys=False), encoding="utf-8")
    return target
