"""Any cluster file: a valid one is read, an invalid one is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.cluster_file import parse_cluster
from kafka_rebalance.model.json_shapes import decode_object

ODD = st.sampled_from([None, True, -1, 2**31, 2**63, 1.0, "", "x", [], {}, [True], [-1], [1, 1], [2**31], ["1"]])
KEYS = ("topic", "partition", "replicas", "size", "log_dirs", "rack")


@st.composite
def rows(draw: Any) -> dict[str, Any]:
    """Mostly valid rows; some lack a key, have an extra one, or an odd value."""
    row: dict[str, Any] = {
        "topic": draw(st.sampled_from("tuv")),
        "partition": draw(st.integers(0, 5)),
        "replicas": draw(st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True)),
    }
    if draw(st.booleans()):
        row["size"] = draw(st.integers(0, 2**63 - 1))
    if draw(st.integers(0, 9)) == 0:
        row[draw(st.sampled_from(KEYS))] = draw(ODD)
    if draw(st.integers(0, 19)) == 0:
        row.pop(draw(st.sampled_from(sorted(row))))
    return row


LISTS = st.lists(st.one_of(rows(), rows(), rows(), rows(), rows(), ODD), max_size=5) | st.lists(rows(), max_size=5)


def well_formed(listed: list[Any]) -> bool:
    """Whether a cluster can have these rows, judged row by row."""
    names = [(row.get("topic"), row.get("partition")) for row in listed if type(row) is dict]
    return all(map(_right, listed)) and len(set(names)) == len(names)


def _right(row: Any) -> bool:
    if type(row) is not dict or not row.keys() <= {*KEYS, "original_replicas"} - {"rack"}:
        return False
    replicas, size = row.get("replicas"), row.get("size")
    if type(replicas) is not list or not replicas or not all(_integer(b, 2**31 - 1) for b in replicas):
        return False
    named = type(row.get("topic")) is str and row["topic"] != "" and _integer(row.get("partition"), 2**31 - 1)
    return named and len(set(replicas)) == len(replicas) and (size is None or _integer(size, 2**63 - 1))


def _integer(value: Any, highest: int) -> bool:
    return type(value) is int and 0 <= value <= highest


class TestPartitions:
    @examples(5)
    @given(LISTS)
    def test_right_rows_are_read_and_wrong_ones_refused(self, listed: list[Any]) -> None:
        """The result matches the judgement row by row; an error names a row."""
        data = json.dumps({"brokers": [], "partitions": listed}).encode()
        if well_formed(listed):
            assert [(p.tp, list(p.replicas), p.size_bytes) for p in parse_cluster(data).partitions] == [
                ((row["topic"], row["partition"]), row["replicas"], row.get("size")) for row in listed
            ]
        else:
            with pytest.raises((ValueError, Refused), match=r"partitions\[\d+\]"):
                parse_cluster(data)


class TestDecoding:
    @examples(2)
    @given(
        st.dictionaries(
            st.text(max_size=3),
            st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3), st.lists, max_leaves=5),
            max_size=4,
        ),
        st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
        st.booleans(),
    )
    def test_as_json_is_read(self, document: dict[str, Any], encoding: str, ascii_only: bool) -> None:
        """In any encoding that JSON may have, with or without a byte order mark."""
        text = json.dumps(document, ensure_ascii=ascii_only)
        assert decode_object(text.encode(encoding, "surrogatepass")) == document

    @pytest.mark.parametrize("broken", [b"", b"{", b'{"a": 1} x', b"\xff\xfe\x00", b"[" * 100_000, b'{"a": 01}'])
    def test_what_is_not_json(self, broken: bytes) -> None:
        """The error is one line that says so."""
        with pytest.raises(ValueError, match=r"^not JSON: "):
            decode_object(broken)
