"""Merge patches, and the patch that leads from one value to another."""

from hypothesis import given
from hypothesis import strategies as st

from kafka_rebalance.kube.merge_patch import merge_difference, merge_patch

VALUES = st.recursive(
    st.booleans() | st.integers(0, 2) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_the_difference_leads_from_one_to_the_other(before, after):
    assert merge_patch(before, merge_difference(before, after)) == after


@given(OBJECTS)
def test_no_difference(value):
    assert merge_difference(value, value) == {}


def test_only_what_differs_is_named():
    """So that the rest of what the patch is applied to stays."""
    before, after = {"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 1, "c": 4}}
    assert merge_difference(before, after) == {"a": {"c": 4}, "d": None}
