"""The class archive, with a Java of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_rebalance.pipeline import class_archive

pytestmark = [pytest.mark.spark, pytest.mark.campaign]
"""Each session starts a Java of its own: two minutes beside the other tests."""

SESSION = """
import sys
from pathlib import Path
from kafka_rebalance.pipeline import class_archive, spark_session
class_archive.beside_pyspark = lambda: Path(sys.argv[1])
with spark_session.spark_session("local[1]") as spark:
    assert spark.range(2).count() == 2
"""


def session(file: Path, loaded: Path) -> str:
    """What a session with this archive prints; the classes that it loads are in the other file."""
    done = subprocess.run(
        [sys.executable, "-c", SESSION, str(file)],
        check=True,
        env=os.environ | {"SPARK_SUBMIT_OPTS": f"-Xlog:class+load:file={loaded}", "SPARK_DRIVER_MEMORY": "1g"},
        stderr=subprocess.PIPE,
        text=True,
    )
    return done.stderr


def test_sessions_load_their_classes_from_it(tmp_path: Path) -> None:
    """Also Spark's, not only those of Java itself."""
    subprocess.run([sys.executable, "-m", class_archive.__name__, str(tmp_path / "archive")], check=True)
    session(tmp_path / "archive", tmp_path / "loaded")
    lines = (tmp_path / "loaded").read_text().splitlines()
    (context,) = (line for line in lines if " org.apache.spark.SparkContext " in line)
    assert "shared objects file (top)" in context


def test_another_file_is_ignored_without_a_word(tmp_path: Path) -> None:
    """So a new Java or new jars cost time, and nothing else."""
    (tmp_path / "archive").write_bytes(b"of another Java")
    without = session(tmp_path / "none", tmp_path / "loaded")
    assert session(tmp_path / "archive", tmp_path / "loaded") == without
