"""Opening a place by its name, and what messages say of it."""

import errno
from urllib.parse import unquote

import pytest

from kafka_rebalance.errors import Permanent
from kafka_rebalance.storage import locations
from kafka_rebalance.storage.locations import (
    hadoop_settings,
    open_location,
    path_segment,
    store_failed,
    without_credentials,
    write_whole,
)


class TestNames:
    @pytest.mark.parametrize(
        ("uri", "name"),
        [
            ("s3://AKIA:s3cr3t@bucket/models/?endpoint_override=store:9000", "s3://bucket/models"),
            ("s3://bucket/models", "s3://bucket/models"),
            ("hdfs://user@namenode:8020/lake", "hdfs://namenode:8020/lake"),
            ("file:///lake", "/lake"),
            ("/lake", "/lake"),
        ],
    )
    def test_have_no_credentials(self, uri, name):
        """They go to logs and conditions."""
        assert without_credentials(uri) == name

    @pytest.mark.parametrize("uri", ["s3://AKIA:s3cr3t@bucket/x?nonsense=1", "ftp://me:s3cr3t@host/x"])
    def test_of_what_cannot_be_opened(self, uri):
        """The library's text contains the URI, so the message has only the kind of error."""
        with pytest.raises(Permanent) as error:
            open_location(uri)
        assert "s3cr3t" not in error.value.message
        assert error.value.reason == "LakeUnusable"


class TestOpening:
    def test_a_directory(self, tmp_path):
        """By its path, relative or not, or as file URI."""
        for name in (str(tmp_path), tmp_path.as_uri()):
            assert open_location(name).root == str(tmp_path)


class TestAStoreThatFails:
    @pytest.mark.parametrize(
        ("error", "why"),
        [
            (OSError("When reading 'k' of key AKIA: AWS Error ACCESS_DENIED during HeadObject: AKIA"), "ACCESS_DENIED"),
            (PermissionError(13, "Permission denied"), "Permission denied"),
            (OSError("AKIA"), "OSError"),
        ],
    )
    def test_the_kind_of_error_is_told(self, error, why):
        """Its text may name keys."""
        told = store_failed("s3://b/k cannot be read", error)
        assert told.message == f"s3://b/k cannot be read ({why})"
        assert told.retry_after > 0


class TestSpark:
    """It reaches the same store with Hadoop's client, which has its own names for everything."""

    @pytest.mark.parametrize(
        ("uri", "variables", "endpoint", "region"),
        [
            ("s3://b/x", {}, None, None),
            (
                "s3://b/x",
                {"AWS_ENDPOINT_URL": "http://store:1", "AWS_REGION": "eu-central-1"},
                "http://store:1",
                "eu-central-1",
            ),
            ("s3://b/x", {"AWS_ENDPOINT_URL": "http://a", "AWS_ENDPOINT_URL_S3": "http://b"}, "http://b", None),
            (
                "s3://b/x?endpoint_override=store:9000&scheme=http&region=r",
                {"AWS_REGION": "q"},
                "http://store:9000",
                "r",
            ),
            ("s3://b/x?endpoint_override=store:9000", {"AWS_ENDPOINT_URL": "http://a"}, "https://store:9000", None),
        ],
    )
    def test_endpoint_and_region(self, monkeypatch, uri, variables, endpoint, region):
        """From the URI, else from the variables that pyarrow heeds as well."""
        for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        found = hadoop_settings(uri)
        assert (found.get("fs.s3a.endpoint"), found.get("fs.s3a.endpoint.region")) == (endpoint, region)
        assert ("fs.s3a.path.style.access" in found) is (endpoint is not None)

    @pytest.mark.parametrize("uri", ["/lake", "file:///lake", "hdfs://namenode/lake", "gs://bucket/lake"])
    def test_other_stores_have_their_own_settings(self, monkeypatch, uri):
        """Nothing of S3 is set for them."""
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://store:1")
        assert hadoop_settings(uri) == {}


class TestWriting:
    def test_what_a_full_disk_took_of_a_file_is_deleted(self, tmp_path, monkeypatch):
        """Each further attempt would take more of the space."""
        put = locations._put

        def full(filesystem, path, data):
            put(filesystem, path, data[:3])
            raise OSError(errno.ENOSPC, "full")

        monkeypatch.setattr(locations, "_put", full)
        location = open_location(str(tmp_path))
        with pytest.raises(OSError, match="full"):
            write_whole(location.filesystem, f"{location.root}/samples/a", b"abcdef")
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


class TestSegments:
    @pytest.mark.parametrize("name", ["c/1", "..", ".", "a..b", "%2E%2E", "4L6g3nShT-eMCtK--X86sw", "\u00e9"])
    def test_stay_where_they_are_put(self, tmp_path, name):
        """A server says the id of its cluster: it must not lead into another directory."""
        segment = path_segment(name)
        assert unquote(segment) == name
        assert (tmp_path / segment).resolve().parent == tmp_path.resolve()
        assert (tmp_path / segment).resolve() != tmp_path.resolve()
