"""Opening a place by its name, and what messages say of it."""

import pytest

from kafka_rebalance.errors import Permanent
from kafka_rebalance.storage.locations import open_location, unreadable, without_credentials


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
        """The library's text contains the URI, so only the kind of error is told."""
        with pytest.raises(Permanent) as error:
            open_location(uri)
        assert "s3cr3t" not in error.value.message
        assert error.value.reason == "LakeUnusable"


class TestOpening:
    def test_a_directory(self, tmp_path):
        """By its path, relative or not, or as file URI."""
        for name in (str(tmp_path), tmp_path.as_uri()):
            assert open_location(name).root == str(tmp_path)


class TestUnreadable:
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
        told = unreadable("s3://b/k", error)
        assert told.message == f"s3://b/k cannot be read ({why})"
        assert told.retry_after > 0
