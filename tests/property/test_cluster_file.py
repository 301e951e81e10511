"""Any cluster file: read column by column it says what it says read row by row, errors included."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from kafka_rebalance.errors import Refused
from kafka_rebalance.model import cluster_file
from kafka_rebalance.model.cluster_columns import plain_columns
from kafka_rebalance.model.cluster_file import parse_cluster
from kafka_rebalance.model.json_shapes import decode_object

ODD = st.sampled_from([None, True, -1, 2**31, 2**63, 1.0, "", "x", [], {}, [True], [-1], [1, 1], [2**31], ["1"]])
KEYS = ("topic", "partition", "replicas", "size", "log_dirs", "rack")


@st.composite
def rows(draw: Any) -> dict[str, Any]:
    """Mostly as they should be; some lack a key, have another one or an odd value."""
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


def told(data: bytes) -> Any:
    try:
        return parse_cluster(data)
    except (ValueError, Refused) as wrong:
        return type(wrong), str(wrong)


class TestColumns:
    @examples(5)
    @given(LISTS)
    def test_columns_say_what_rows_say(self, listed: list[Any]) -> None:
        """The faster way knows no case of its own."""
        data = json.dumps({"brokers": [], "partitions": listed}).encode()
        fast = told(data)
        with patch.object(cluster_file, "plain_columns", lambda *_: None):
            assert told(data) == fast

    @given(st.lists(rows(), max_size=20, unique_by=lambda row: repr(row)))
    def test_plain_rows_take_the_faster_way(self, listed: list[Any]) -> None:
        """Whatever can be read row by row can be read so."""
        with patch.object(cluster_file, "plain_columns", lambda *_: None):
            refused = isinstance(told(json.dumps({"brokers": [], "partitions": listed}).encode()), tuple)
        assert (plain_columns(listed, cluster_file._PARTITION_KEYS) is None) == refused


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
        """In any encoding that JSON may have, a mark at the beginning included."""
        text = json.dumps(document, ensure_ascii=ascii_only)
        assert decode_object(text.encode(encoding, "surrogatepass")) == document

    @pytest.mark.parametrize("broken", [b"", b"{", b'{"a": 1} x', b"\xff\xfe\x00", b"[" * 100_000, b'{"a": 01}'])
    def test_what_is_not_json(self, broken: bytes) -> None:
        """One line that says so."""
        with pytest.raises(ValueError, match=r"^not JSON: "):
            decode_object(broken)
