"""JSON of the API server: what is nested too deeply is left out, and nothing else."""

import json

import pytest

from kafka_rebalance.kube.object_json import MAX_DEPTH, read_object_json, without_ballast


def nested(depth, inner="{}"):
    """As fieldsV1 of managedFields."""
    return '{"f:a]\\"":' * depth + inner + "}" * depth


def depth_of(value):
    depth = 0
    while value:
        value, depth = next(iter(value.values())), depth + 1
    return depth


def test_as_json():
    document = {"items": [{"metadata": {"name": "r"}, "n": [1, -2.5, 1e300, True, None, "ü\u2028\\"]}]}
    assert read_object_json(json.dumps(document).encode()) == document
    assert read_object_json(json.dumps(document, ensure_ascii=False).encode()) == document


@pytest.mark.parametrize("depth", [150, 250, 2000, 9990])
def test_what_is_beside_it_is_read(depth):
    """With any text in the strings."""
    text = f'{{"items":[{{"a":1,"m":{nested(depth)},"b":[{{}},"}}{{"]}},{{"c":2}}]}}'
    found = read_object_json(text.encode())
    deep = found["items"][0].pop("m")
    assert found == {"items": [{"a": 1, "b": [{}, "}{"]}, {"c": 2}]}
    assert MAX_DEPTH - 4 <= depth_of(deep) <= 200


def test_several():
    text = f"[{nested(500)},{nested(300, '[[1]]')},1]"
    found = read_object_json(text.encode())
    assert [type(value) for value in found] == [dict, dict, int]


@pytest.mark.parametrize("text", ["", "<html>", "[" * 100_000, nested(2000)[:-1500], nested(2000)[:-1], "[1,]"])
def test_no_json(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the parsers' own
        read_object_json(text.encode())


def test_a_lone_surrogate():
    """As the standard library reads it."""
    assert read_object_json(b'{"a": "\\ud800"}') == {"a": "\ud800"}


def test_items_one_after_the_other():
    """As the API server writes lists: of resources in this order, of its own kinds with the metadata first."""
    items = [{"a": {"b": [{}, 1, '"}]{[\\']}}, {}, {"c": [[], {"d": {"e": []}}]}]
    ours = {"apiVersion": "v1", "items": items, "kind": "L", "metadata": {"continue": "x"}}
    theirs = {"kind": "L", "apiVersion": "v1", "metadata": {"continue": "x"}, "items": items}
    for document in (ours, theirs, {**ours, "items": []}, {"groups": [{}]}):
        for separators in ((",", ":"), None):
            seen = []
            text = json.dumps(document, separators=separators)
            assert read_object_json(text.encode(), lambda item, seen=seen: seen.append(item) or item) == document
            assert seen == document.get("items", [])


def test_a_deep_item():
    """The others are read."""
    text = f'{{"apiVersion":"v1","items":[{{"m":{nested(5000)}}},{{"b":2}}],"kind":"L"}}'
    assert [item.keys() for item in read_object_json(text.encode(), lambda item: item)["items"]] == [{"m"}, {"b"}]


@pytest.mark.parametrize(
    "rest", ["", "{", '{"a":"', '{"a":1}', '{"a":1},', '{"a":1},2]}', '{"a":1}{"a":1}]}', '{"a"]}]}']
)
def test_no_list(rest):
    with pytest.raises(ValueError):  # noqa: PT011 - the parsers' own
        read_object_json(f'{{"apiVersion":"v1","items":[{rest}'.encode(), lambda item: item)


def test_without_ballast():
    body = {"metadata": {"name": "r", "labels": {}, "annotations": {"other": "x"}}, "spec": {"labels": {}}}
    assert without_ballast(body) == {"metadata": {"name": "r", "annotations": {}}, "spec": {"labels": {}}}
    assert without_ballast({"kind": "Status", "metadata": None}) == {"kind": "Status", "metadata": None}
    assert without_ballast([1]) == [1]
