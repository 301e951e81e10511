"""The offline cluster file: what is read, what is ignored, what is refused."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pytest

from kafka_rebalance.model.cluster_file import parse_cluster
from kafka_rebalance.model.json_shapes import read_limited

BROKER: dict[str, Any] = {"id": 0, "rack": "a"}
PARTITION: dict[str, Any] = {"topic": "t", "partition": 0, "replicas": [0]}


def document(broker: Any = None, partition: Any = None, **top: Any) -> bytes:
    whole = {"brokers": [BROKER | (broker or {})], "partitions": [PARTITION | (partition or {})], **top}
    return json.dumps(whole).encode()


class TestKeys:
    @pytest.mark.parametrize(
        ("data", "says"),
        [
            (document(broker={"rak": "a"}), r"brokers\[0\]: unknown key 'rak'; known are capacity, id, logDirs, rack"),
            (document(partition={"sise": 1}), r"partitions\[0\]: unknown key 'sise'"),
            (document(topics=[]), r"\$: unknown key 'topics'"),
        ],
    )
    def test_an_unknown_key_is_refused(self, data: bytes, says: str) -> None:
        """A typo must not silently disable the setting."""
        with pytest.raises(ValueError, match=says):
            parse_cluster(data)

    def test_what_kafka_and_plan_write_is_read(self) -> None:
        """Kafka's log_dirs, KIP-236's original_replicas, the version and plan's summary are accepted and ignored."""
        beside = {"log_dirs": ["any"], "original_replicas": [0]}
        assert parse_cluster(document(partition=beside, version=1, summary={})) == parse_cluster(document())

    @pytest.mark.parametrize(
        ("partition", "says"),
        [
            ({"topic": "t", "partition": 3}, r"partitions\[0\] of topic-partition t-3: 'replicas' is missing"),
            ({"topic": "t"}, r"partitions\[0\] of topic t: 'partition' is missing"),
            ({}, r"partitions\[0\]: 'topic' is missing"),
        ],
    )
    def test_a_missing_key_is_named_with_what_it_belongs_to(self, partition: Any, says: str) -> None:
        """The topic-partition is easier to find in a large file than an index."""
        with pytest.raises(ValueError, match=says):
            parse_cluster(json.dumps({"brokers": [], "partitions": [partition]}).encode())


class TestLogDirs:
    def test_of_brokers_and_replicas(self) -> None:
        """A size is an integer or a quantity, or not known."""
        dirs = [{"path": "/a", "size": "1Ki"}, {"path": "/b"}]
        found = parse_cluster(document(broker={"logDirs": dirs}, partition={"log_dirs": ["/b"]}))
        assert found.log_dirs == {0: {"/a": 1024, "/b": None}}
        assert found.partitions[0].log_dirs == ("/b",)

    @pytest.mark.parametrize(
        ("broker", "partition", "says"),
        [
            ({"logDirs": ["/a"]}, {}, r"brokers\[0\].logDirs\[0\]: expected an object"),
            ({"logDirs": [{"path": ""}]}, {}, r"brokers\[0\].logDirs\[0\].path: expected a name"),
            ({"logDirs": [{"path": "/a"}, {"path": "/a"}]}, {}, r"logDirs\[1\].path: /a is listed twice"),
            ({"logDirs": [{"path": "/a", "total": 1}]}, {}, r"logDirs\[0\]: unknown key 'total'; known are path, size"),
            ({"logDirs": [{"path": "/a", "size": 0}]}, {}, r"logDirs\[0\].size: 0 is no capacity"),
            ({"logDirs": [{"path": "/a"}]}, {"log_dirs": []}, r"partitions\[0\].log_dirs: 0 log dirs of 1 replicas"),
        ],
    )
    def test_what_is_wrong_is_named(self, broker: Any, partition: Any, says: str) -> None:
        with pytest.raises(ValueError, match=says):
            parse_cluster(document(broker=broker, partition=partition))


class TestSizes:
    def test_a_wrong_size_is_named_with_its_partition(self) -> None:
        """Earlier rows without a size do not shift the index."""
        rows = [PARTITION, PARTITION | {"partition": 1, "size": -1}]
        with pytest.raises(ValueError, match=r"partitions\[1\]\.size of topic-partition t-1: -1 is not between"):
            parse_cluster(json.dumps({"brokers": [], "partitions": rows}).encode())


class TestCapacities:
    def test_integers_and_quantities(self) -> None:
        """Of brokers that have one; what comes in over the network counts for the leaders, too."""
        capacity = {"disk": "2Ti", "networkIn": 1000}
        found = parse_cluster(document(broker={"capacity": capacity})).capacities
        assert {broker: of.by_resource() for broker, of in found.items()} == {
            0: {"Disk": 2 * 2**40, "BytesIn": 1000, "LeaderBytesIn": 1000}
        }
        assert parse_cluster(document()).capacities == {}

    @pytest.mark.parametrize(
        ("capacity", "says"),
        [
            ({"disk": "2TB"}, r"brokers\[0\]\.capacity\.disk: '2TB' is not a quantity like 50Mi .*: write 2T "),
            ({"disk": 0}, r"brokers\[0\]\.capacity\.disk: 0 is no capacity"),
            ({"disk": None}, r"brokers\[0\]\.capacity\.disk: None is not a quantity"),
            ({"disk": 2**63}, r"brokers\[0\]\.capacity\.disk: 9223372036854775808 is not between"),
            ({"dsk": 1}, r"brokers\[0\]\.capacity: unknown key 'dsk'; known are disk, networkIn, networkOut"),
            (5, r"brokers\[0\]\.capacity: expected an object with disk, networkIn, networkOut, found 5"),
        ],
    )
    def test_a_wrong_one_is_named(self, capacity: Any, says: str) -> None:
        with pytest.raises(ValueError, match=says):
            parse_cluster(document(broker={"capacity": capacity}))


class TestLimit:
    def test_a_stream_is_read_up_to_the_limit(self) -> None:
        """The limit itself is allowed, one byte more is refused."""
        assert read_limited(io.BytesIO(b"x" * 1024).read, limit=1024) == b"x" * 1024
        with pytest.raises(ValueError, match=r"larger than 1\.0 KiB"):
            read_limited(io.BytesIO(b"x" * 1025).read, limit=1024)

    def test_reading_stops_at_the_limit(self) -> None:
        """Reading an endless stream ends."""
        with open("/dev/zero", "rb") as endless, pytest.raises(ValueError, match="larger than"):
            read_limited(endless.read, limit=1024)

    def test_gzip_counts_unpacked(self) -> None:
        """A small file that expands beyond the limit is refused."""
        packed = gzip.compress(document() + b" " * 100_000)
        assert len(packed) < 1024
        with pytest.raises(ValueError, match=r"larger than 1\.0 KiB"):
            parse_cluster(packed, limit=1024)
        assert parse_cluster(packed) == parse_cluster(document())
