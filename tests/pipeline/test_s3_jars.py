"""The jars for s3:// fit pyspark's own, and nothing else is taken for them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyspark
import pytest

from kafka_rebalance.pipeline import s3_jars

PYSPARK_JARS = Path(pyspark.__file__).with_name("jars")


class TestTheList:
    def test_fits_pyspark(self) -> None:
        """hadoop-aws works only with the Hadoop of the same version."""
        (hadoop,) = PYSPARK_JARS.glob("hadoop-client-api-*.jar")
        version = hadoop.stem.removeprefix("hadoop-client-api-")
        assert f"org/apache/hadoop/hadoop-aws/{version}/hadoop-aws-{version}.jar" in s3_jars.jars()

    def test_has_nothing_that_pyspark_has(self) -> None:
        """With two versions of a class, it would be undefined which one is loaded."""
        present = {path.name.rpartition("-")[0] for path in PYSPARK_JARS.glob("*.jar")}
        assert not present & {Path(path).name.rpartition("-")[0] for path in s3_jars.jars()}


class TestDownload:
    @pytest.fixture
    def repository(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        jar = tmp_path / "repository" / "a" / "b.jar"
        jar.parent.mkdir(parents=True)
        jar.write_bytes(b"jar")
        monkeypatch.setattr(s3_jars, "jars", lambda: {"a/b.jar": hashlib.sha256(b"jar").hexdigest()})
        return jar.parents[1]

    def test_puts_them_into_the_directory(self, repository: Path, tmp_path: Path) -> None:
        """Made if it does not exist."""
        s3_jars.download(tmp_path / "jars", repository.as_uri())
        assert (tmp_path / "jars" / "b.jar").read_bytes() == b"jar"

    def test_another_content_is_refused(self, repository: Path, tmp_path: Path) -> None:
        """A mirror is not trusted."""
        (repository / "a" / "b.jar").write_bytes(b"other")
        with pytest.raises(ValueError, match=r"a/b.jar has another checksum"):
            s3_jars.download(tmp_path / "jars", repository.as_uri())
        assert not list((tmp_path / "jars").iterdir())
