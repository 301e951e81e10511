"""Where files lie: a local directory, or a URI of an object store that pyarrow opens.

Access keys come from the environment or the files of the store's own tools. What a URI holds of them is never part of a
message: `Location.name` has neither user, password nor query.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs

from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.reasons import Reason

_AWS_ERROR = re.compile(r"AWS Error ([A-Z_]+)")


@dataclass(frozen=True, slots=True)
class Location:
    """An open location: a filesystem, the path in it, and its name for people."""

    filesystem: Any
    root: str
    name: str


def open_location(uri: str) -> Location:
    """A local path, or a URI (s3, gs, hdfs, file). Raises Permanent (LakeUnusable) if it cannot be opened."""
    if "://" not in uri:
        uri = Path(uri).expanduser().resolve().as_uri()
    name = without_credentials(uri)
    try:
        filesystem, root = pyarrow.fs.FileSystem.from_uri(uri)
    except (pa.ArrowException, OSError, ValueError) as error:
        # The text of the error contains the URI.
        raise Permanent(Reason.LAKE_UNUSABLE, f"{name} cannot be opened ({type(error).__name__})") from error
    return Location(filesystem, root.rstrip("/"), name)


def without_credentials(uri: str) -> str:
    """The location for people: scheme, host and path."""
    if "://" not in uri:
        return uri
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return parts.path
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")


def unreadable(what: str, error: OSError) -> Transient:
    """For a file that exists and cannot be read: ``what`` names it. Only the kind of error is told, never its text."""
    told = _AWS_ERROR.search(str(error))
    why = told.group(1) if told else error.strerror or type(error).__name__
    return Transient(Reason.LAKE_UNUSABLE, f"{what} cannot be read ({why})", retry_after=60.0)
