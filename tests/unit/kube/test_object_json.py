"""JSON of the API server: managed fields and what is nested too deeply are left out, and nothing else."""

import json
import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_rebalance.api.v1alpha1 import FINALIZER
from kafka_rebalance.kube import object_json
from kafka_rebalance.kube.object_json import MAX_DEPTH, read_object_json, without_ballast


def nested(depth, inner="{}"):
    """As fieldsV1 of managedFields."""
    return '{"f:a]\\"":' * depth + inner + "}" * depth


def depth_of(value):
    depth = 0
    while value:
        value, depth = next(iter(value.values())), depth + 1
    return depth


def lines_executed(data):
    """Lines of Python that the module executes to read this."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if frame.f_code.co_filename != object_json.__file__:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        read_object_json(data)
    finally:
        sys.settrace(before)
    return count


PARTS = ['"', "\\", "{", "}", "[", "]", ",", ":", "ü", '"managedFields":[', '","metadata":{"managedFields":[', "x"]
KEYS = ["managedFields", "metadata", "object", "items", "name"]


class Writer:
    """Writes JSON that is hard to read: with text as of JSON, any space and keys that occur several times."""

    def __init__(self, seed):
        self._random = Random(seed)

    def _text(self):
        text = "".join(self._random.choices(PARTS, k=self._random.randrange(5))) * self._random.choice([1, 1, 300])
        return json.dumps(text, ensure_ascii=self._random.random() < 0.5)

    def _key(self):
        return json.dumps(self._random.choice(KEYS)) if self._random.random() < 0.7 else self._text()

    def _several(self, form, write):
        space = self._random.choice(["", "", " ", "\r\n\t "])
        several = [write(space) for _ in range(self._random.choice([0, 1, 2, 3]))]
        return f"{form[0]}{space}{f'{space},{space}'.join(several)}{space}{form[1]}"

    def _value(self, levels=3):
        kind = self._random.randrange(4 if levels else 2)
        if kind == 0:
            return self._text()
        if kind == 1:
            return self._random.choice(["1", "-2.5e3", "null", "true"])
        if kind == 2:
            return self._several("[]", lambda _: self._value(levels - 1))
        return self._several("{}", lambda space: f"{self._key()}{space}:{space}{self._value(levels - 1)}")

    def _managed_fields(self):
        return self._random.choice([self._value(), nested(300), f"[{nested(150)}, {nested(260, '[[1]]')}]"])

    def written(self, inside):
        """An object; ``inside``: the keys that lead to its managed fields."""

        def member(space):
            if self._random.random() < 0.3:
                return f"{self._key()}{space}:{space}{self._value()}"
            value = self.written(inside[1:]) if len(inside) > 1 else self._managed_fields()
            return f'"{inside[0]}"{space}:{space}{value}'

        return self._several("{}", member)


def without(body, *keys):
    """The object without the value that these keys lead to."""
    first, *others = keys
    if not others:
        return {key: value for key, value in body.items() if key != first}
    return {**body, first: without(body[first], *others)} if isinstance(body.get(first), dict) else body


def expected(text):
    found = without(json.loads(text), "metadata", "managedFields")
    return without(found, "object", "metadata", "managedFields")


@given(st.integers(0), st.sampled_from([1, 0]), st.integers(0))
def test_without_managed_fields(seed, skipped, cut):
    """As the standard library reads it, but without the managed fields of the object, or of that of the event."""
    text = Writer(seed).written(["object", "metadata", "managedFields"][skipped:])
    assert read_object_json(text.encode()) == expected(text)
    with pytest.raises(ValueError):  # noqa: PT011 - the parsers' own
        read_object_json(text.encode()[: cut % len(text.encode())])


@given(st.lists(st.integers(0), max_size=5))
def test_items_without_managed_fields(seeds):
    """Each item, in a list as the API server writes it."""
    texts = [Writer(seed).written(["metadata", "managedFields"]) for seed in seeds]
    page = f'{{"apiVersion":"v1","items":[{",".join(texts)}],"kind":"L"}}'
    found = read_object_json(page.encode(), lambda item: item)
    assert found == {"apiVersion": "v1", "items": list(map(expected, texts)), "kind": "L"}


@pytest.mark.parametrize(
    "fields",
    [nested(9000), ",".join([nested(90)] * 200), ",".join(["[{}]"] * 30_000), ",".join(['{"}\\\\\\"{":[]}'] * 10_000)],
)
def test_few_steps_for_managed_fields(fields):
    """Every user may write them: Python has no step for each of their values, however they are nested."""
    text = f'{{"metadata":{{"managedFields":[{fields}],"name":"r"}},"spec":{{}}}}'
    assert read_object_json(text.encode()) == {"metadata": {"name": "r"}, "spec": {}}
    assert lines_executed(text.encode()) < len(text) / 200


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


@pytest.mark.parametrize("event", [True, False])
def test_ballast_is_cut_off_before_it_is_parsed(monkeypatch, event):
    """An object may have more than 1 MB of labels or of owner references, and be changed again and again."""
    parsed, parse = [], object_json.from_json
    monkeypatch.setattr(object_json, "from_json", lambda data: parsed.append(len(data)) or parse(data))
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": '"]}', "uid": str(n)} for n in range(10_000)]
    labels = {f"l{number}": "" for number in range(100_000)}
    spec = {"labels": {"a": "b"}, "ownerReferences": [1]}
    metadata = {"annotations": {"labels": "x"}, "labels": labels, "name": "r", "ownerReferences": owners}
    body = {"metadata": metadata, "spec": spec}
    document = {"type": "MODIFIED", "object": body} if event else {"apiVersion": "v1", "items": [body], "kind": "L"}
    text = json.dumps(document, separators=(",", ":")).encode()
    found = read_object_json(text, without_ballast)
    kept = found["object"] if event else found["items"][0]
    assert without_ballast(kept) == {"metadata": {"annotations": {}, "name": "r"}, "spec": spec}
    assert max(parsed) < 1000
    whole = read_object_json(text)
    assert (whole["object"] if event else whole["items"][0]) == body


def test_few_finalizers_are_kept():
    """An object may have 170,000, which take 14 MiB. Ours is the last one."""
    names = [f"example.com/{number}" for number in range(1000)]
    body = {"metadata": {"finalizers": [*names, FINALIZER]}}
    assert without_ballast(body)["metadata"]["finalizers"] == [FINALIZER, *names[:19]]
    few = {"metadata": {"finalizers": [*names[:18], FINALIZER]}}
    assert without_ballast(few) == few
