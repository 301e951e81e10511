"""Metadata that the API server takes, and such that it refuses: for tests with and without one."""

from typing import Any

_OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u"}


def _owned(**changes: Any) -> dict[str, Any]:
    """By an owner that is as it should be but for the changes; a field that is changed to None is left out."""
    owner = {key: value for key, value in {**_OWNER, **changes}.items() if value is not None}
    return {"ownerReferences": [owner]}


METADATA: list[dict[str, Any]] = [
    {"name": "0a.b-c.9"},
    {"name": "a" * 253},
    {"generateName": "a-"},
    {"generateName": "a" * 253},
    {"name": "a", "generateName": "b-"},
    {"labels": None, "annotations": None},
    {"labels": {"a": None}, "annotations": {"a": None}},
    {"labels": {"a": "", "B_c.d": "E-f_g.9", "example.org/" + "n" * 63: "v" * 63}},
    {"annotations": {"Example.ORG/a": "any text\n", "b": "x" * 200_000}},
    {"annotations": {"a": "x" * 262_143}},
    {"finalizers": ["a", "example.org/a", "orphan"]},
    {"finalizers": []},
    _owned(controller=True, blockOwnerDeletion=False),
    _owned(apiVersion="/v1", name="B_"),
    {"uid": "u", "resourceVersion": "1", "selfLink": "x", "generation": -5, "deletionGracePeriodSeconds": 1},
    {"creationTimestamp": None, "deletionTimestamp": "2026-01-01T00:00:00.5+02:00"},
    {
        "managedFields": [
            {"manager": "a", "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": {}}}
        ]
    },
]

REFUSED_METADATA: list[tuple[dict[str, Any], str]] = [
    # metadata, the field that is named
    ({"name": ""}, "metadata.name"),
    ({"name": "A"}, "metadata.name"),
    ({"name": "a_b"}, "metadata.name"),
    ({"name": "-a"}, "metadata.name"),
    ({"name": "a.-b"}, "metadata.name"),
    ({"name": "a..b"}, "metadata.name"),
    ({"name": "a/b"}, "metadata.name"),
    ({"name": "a\n"}, "metadata.name"),
    ({"name": "a" * 254}, "metadata.name"),
    ({"name": 7}, "metadata.name"),
    ({"generateName": "A-"}, "metadata.generateName"),
    ({"generateName": "a."}, "metadata.generateName"),
    ({"generateName": "-a"}, "metadata.generateName"),
    ({"generateName": "a" * 254}, "metadata.generateName"),
    ({"generateName": 7}, "metadata.generateName"),
    ({"name": "a", "generateName": "B_"}, "metadata.generateName"),
    ({"labels": ["a"]}, "metadata.labels"),
    ({"labels": ""}, "metadata.labels"),
    ({"labels": {"a": 1}}, "metadata.labels[a]"),
    ({"labels": {"a": "b c"}}, "metadata.labels[a]"),
    ({"labels": {"a": "b" * 64}}, "metadata.labels[a]"),
    ({"labels": {"/a": "b"}}, "metadata.labels"),
    ({"labels": {"a/b/c": "d"}}, "metadata.labels"),
    ({"labels": {"Example.org/a": "b"}}, "metadata.labels"),
    ({"labels": {"": "b"}}, "metadata.labels"),
    ({"annotations": {"a": True}}, "metadata.annotations[a]"),
    ({"annotations": {"a b": ""}}, "metadata.annotations"),
    ({"annotations": {"a": "x" * 262_144}}, "metadata.annotations"),
    ({"annotations": {"a": "\u00e4" * 131_072}}, "metadata.annotations"),
    ({"bogus": 1}, "metadata.bogus"),
    ({"bogus": None}, "metadata.bogus"),
    ({"Labels": {"a": "b"}}, "metadata.Labels"),
    ({"clusterName": "a"}, "metadata.clusterName"),
    ({"finalizers": "a"}, "metadata.finalizers"),
    ({"finalizers": [1]}, "metadata.finalizers[0]"),
    ({"finalizers": ["a", None]}, "metadata.finalizers[1]"),
    ({"finalizers": ["A b"]}, "metadata.finalizers[0]"),
    ({"finalizers": ["Example.org/a"]}, "metadata.finalizers[0]"),
    ({"finalizers": ["example.org/" + "a" * 64]}, "metadata.finalizers[0]"),
    ({"finalizers": ["orphan", "foregroundDeletion"]}, "metadata.finalizers"),
    ({"ownerReferences": _OWNER}, "metadata.ownerReferences"),
    ({"ownerReferences": ["a"]}, "metadata.ownerReferences[0]"),
    ({"ownerReferences": [None]}, "metadata.ownerReferences[0].kind"),
    (_owned(bogus=1), "metadata.ownerReferences[0].bogus"),
    (_owned(controller="true"), "metadata.ownerReferences[0].controller"),
    (_owned(uid=""), "metadata.ownerReferences[0].uid"),
    (_owned(uid=None), "metadata.ownerReferences[0].uid"),
    (_owned(name=None), "metadata.ownerReferences[0].name"),
    (_owned(kind=None), "metadata.ownerReferences[0].kind"),
    (_owned(apiVersion=None), "metadata.ownerReferences[0].apiVersion"),
    (_owned(apiVersion="a/"), "metadata.ownerReferences[0].apiVersion"),
    (_owned(apiVersion="a/b/c"), "metadata.ownerReferences[0].apiVersion"),
    (_owned(kind="Event"), "metadata.ownerReferences[0]"),
    ({"ownerReferences": [{**_OWNER, "controller": True, "uid": uid} for uid in "uv"]}, "metadata.ownerReferences"),
    ({"uid": 7}, "metadata.uid"),
    ({"resourceVersion": 1}, "metadata.resourceVersion"),
    ({"selfLink": 1}, "metadata.selfLink"),
    ({"generation": "5"}, "metadata.generation"),
    ({"generation": 1.5}, "metadata.generation"),
    ({"generation": 2**63}, "metadata.generation"),
    ({"deletionGracePeriodSeconds": "1"}, "metadata.deletionGracePeriodSeconds"),
    ({"creationTimestamp": "2026-01-01"}, "metadata.creationTimestamp"),
    ({"creationTimestamp": "2026-01-01 00:00:00Z"}, "metadata.creationTimestamp"),
    ({"creationTimestamp": "2026-02-30T00:00:00Z"}, "metadata.creationTimestamp"),
    ({"deletionTimestamp": 1}, "metadata.deletionTimestamp"),
    ({"managedFields": "x"}, "metadata.managedFields"),
    ({"managedFields": [{"bogus": 1}]}, "metadata.managedFields[0].bogus"),
]
