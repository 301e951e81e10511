"""The generated CRDs are up to date, complete and bounded."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.arch import field_reference
from tests.arch.crd_files import CRDS, REFERENCE, render

from kafka_rebalance.api.crd import definitions, structural


def fields(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, part in schema.get("properties", {}).items():
        yield f"{path}.{name}", part
        yield from fields(part, f"{path}.{name}")
    if "items" in schema:
        yield f"{path}[]", schema["items"]
        yield from fields(schema["items"], f"{path}[]")


def all_fields() -> list[tuple[str, dict[str, Any]]]:
    result = []
    for definition in definitions().values():
        (version,) = definition["spec"]["versions"]
        root = version["schema"]["openAPIV3Schema"]
        result += list(fields(root, definition["spec"]["names"]["kind"]))
    return result


class TestCommitted:
    """The committed files match the models."""

    def test_files_are_up_to_date(self) -> None:
        expected = {f"{name}.yaml": render(definition) for name, definition in definitions().items()}
        assert {path.name: path.read_text(encoding="utf-8") for path in CRDS.iterdir()} == expected, "run `make crds`"

    def test_the_reference_is_up_to_date(self) -> None:
        assert REFERENCE.read_text(encoding="utf-8") == field_reference.render(), "run `make crds`"

    def test_files_are_plain_yaml(self) -> None:
        for name, definition in definitions().items():
            assert yaml.load((CRDS / f"{name}.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader) == definition


class TestSchema:
    """Every field has a description, every list and string has a bound, and there are no floats."""

    def test_descriptions(self) -> None:
        bare = [p for p, part in all_fields() if "description" not in part and not p.endswith(("[]", ".metadata"))]
        assert bare == []

    def test_bounds(self) -> None:
        strings = [
            path
            for path, part in all_fields()
            if part.get("type") == "string"
            and not {"maxLength", "enum", "format"} & set(part)
            and not path.endswith((".apiVersion", ".kind"))
        ]
        lists = [path for path, part in all_fields() if part.get("type") == "array" and "maxItems" not in part]
        assert (strings, lists) == ([], [])

    def test_no_floats(self) -> None:
        assert [path for path, part in all_fields() if part.get("type") == "number"] == []

    def test_fresh_objects_are_not_done(self) -> None:
        """kstatus compares the generations: this default must exist and must be the only one in the status."""
        status = dict(all_fields())["KafkaRebalance.status"]
        assert status["default"] == {"observedGeneration": -1}
        assert [path for path, part in fields(status, "status") if "default" in part] == []

    def test_short_names_leave_strimzis_alone(self) -> None:
        names = [definition["spec"]["names"] for definition in definitions().values()]
        assert [name["shortNames"] for name in names] == [["krc"], ["krb"], ["krt"]]


class TestKubectl:
    """What `kubectl get` shows."""

    def test_one_category_has_all_kinds(self) -> None:
        """Strimzi's resources are in the category "strimzi"."""
        names = [definition["spec"]["names"] for definition in definitions().values()]
        assert [name["categories"] for name in names] == [["kafka-rebalance"]] * 3

    def test_wide_columns_follow_the_others(self) -> None:
        """Column names are unique, and only those of -o wide have a priority."""
        for definition in definitions().values():
            (version,) = definition["spec"]["versions"]
            columns = version["additionalPrinterColumns"]
            priorities = [column.get("priority", 0) for column in columns]
            assert priorities == sorted(priorities)
            assert priorities[-1] == 1
            assert len({column["name"] for column in columns}) == len(columns)

    def test_selectable_fields(self) -> None:
        """What `--field-selector` takes: at most eight single values per kind, as the API server requires."""
        known = dict(all_fields())
        for definition in definitions().values():
            (version,) = definition["spec"]["versions"]
            paths = [found["jsonPath"] for found in version["selectableFields"]]
            assert ".status.clusterId" in paths
            assert len(set(paths)) == len(paths) <= 8
            for path in paths:
                assert known[f"{definition['spec']['names']['kind']}{path}"]["type"] in {"string", "boolean", "integer"}

    def test_times_are_times(self) -> None:
        """A client may sort and compare them."""
        status = dict(all_fields())
        for path in ("completedAt", "progress.estimatedCompletion", "progress.startedAt"):
            assert status[f"KafkaRebalance.status.{path}"]["format"] == "date-time"


class TestStructural:
    """The translation refuses an unknown keyword instead of dropping it."""

    def test_unknown_keyword(self) -> None:
        with pytest.raises(ValueError, match="uniqueItems"):
            structural({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, {})

    def test_union_of_kinds(self) -> None:
        union = {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}
        with pytest.raises(ValueError, match="several types"):
            structural(union, {})
