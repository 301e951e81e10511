"""The CustomResourceDefinitions and the field reference as files; ``make crds`` writes them."""

from pathlib import Path
from typing import Any

import yaml
from tests.arch import field_reference

from kafka_rebalance.api.crd import definitions

ROOT = Path(__file__).parents[2]
CRDS = ROOT / "crds"
CHART = ROOT / "charts" / "kafka-rebalance-operator" / "files" / "crds"
REFERENCE = ROOT / "docs" / "reference.md"


class PlainDumper(yaml.SafeDumper):
    """YAML without anchors: a schema that is used twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def render(definition: dict[str, Any]) -> str:
    """The text of the file of one definition."""
    text: str = yaml.dump(definition, Dumper=PlainDumper, sort_keys=False, width=120, allow_unicode=True)
    return f"# Generated from operator/kafka_rebalance/api by `make crds`; do not edit.\n{text}"


if __name__ == "__main__":
    for name, definition in definitions().items():
        for directory in (CRDS, CHART):
            (directory / f"{name}.yaml").write_text(render(definition), encoding="utf-8")
    REFERENCE.write_text(field_reference.render(), encoding="utf-8")
