"""Downloads the jars with which Spark reads and writes ``s3://``: pyspark does not contain them.

python -m kafka_rebalance.pipeline.s3_jars [DIRECTORY]

The default directory is the one of pyspark's own jars, where every session finds them. The image runs this when it is
built. Imports only the standard library: the image has nothing else at that moment.
"""

import hashlib
import importlib.util
import os
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_LIST = Path(__file__).with_suffix(".txt")
_REPOSITORY = "https://repo.maven.apache.org/maven2"
_DOWNLOADS = 8


def jars() -> dict[str, str]:
    """Path in a Maven repository -> SHA-256."""
    lines = [line.split() for line in _LIST.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {path: digest for digest, path in lines}


def download(directory: Path, repository: str = _REPOSITORY) -> None:
    """Put all jars into the directory. Raises ValueError for another checksum than the list has, OSError."""

    def one(path: str, digest: str) -> None:
        with urllib.request.urlopen(f"{repository}/{path}", timeout=60) as answer:  # noqa: S310 - of the user's choice
            data = answer.read()
        if hashlib.sha256(data).hexdigest() != digest:
            raise ValueError(f"{repository}/{path} has another checksum than {_LIST.name}")
        (directory / path.rpartition("/")[2]).write_bytes(data)

    directory.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(_DOWNLOADS) as pool:
        for done in [pool.submit(one, path, digest) for path, digest in jars().items()]:
            done.result()


def _of_pyspark() -> Path:
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        sys.exit("pyspark is not installed: name a directory, or pip install 'kafka-rebalance-operator[pipeline]'")
    return Path(found.origin).with_name("jars")


if __name__ == "__main__":
    download(Path(sys.argv[1]) if sys.argv[1:] else _of_pyspark(), os.environ.get("MAVEN_REPOSITORY") or _REPOSITORY)
