"""Where files lie: a local directory, or a URI of an object store that pyarrow opens.

Access keys come from the environment or the files of the store's own tools. What a URI holds of them is never part of a
message: `Location.name` has neither user, password nor query.
"""

import contextlib
import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

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
    """A local path, or a URI (s3, gs, hdfs, file). LakeUnusable: Permanent if it is none, else Transient."""
    if "://" not in uri:
        uri = Path(uri).expanduser().resolve().as_uri()
    name = without_credentials(uri)
    try:
        filesystem, root = pyarrow.fs.FileSystem.from_uri(uri)
    except OSError as error:  # S3 reports the region of a bucket if it is not configured
        raise store_failed(f"{name} cannot be opened", error) from error
    except (pa.ArrowException, ValueError) as error:
        # The text of the error contains the URI.
        raise Permanent(Reason.LAKE_UNUSABLE, f"{name} cannot be opened ({type(error).__name__})") from error
    return Location(filesystem, root.rstrip("/"), name)


def read_whole(location: Location, path: str = "", limit: int = 1 << 24) -> bytes | None:
    """The bytes of a small file; None if it is not there. Transient (LakeUnusable) if it cannot be read."""
    place = f"{location.root}/{path}" if path else location.root
    try:
        if not location.filesystem.get_file_info(place).is_file:
            return None
        with location.filesystem.open_input_stream(place, compression=None) as stream:
            data: bytes = stream.read(limit)
    except OSError as error:
        raise store_failed(f"{location.name} cannot be read", error) from error
    return data


def write_whole(filesystem: Any, path: str, data: bytes) -> None:
    """Atomic: by a rename on a local disk; an object store publishes the object when the stream is closed."""
    if filesystem.type_name != "local":
        _put(filesystem, path, data)
        return
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    unfinished = f"{path}.{uuid.uuid4().hex}.part"
    try:
        _put(filesystem, unfinished, data)
        filesystem.move(unfinished, path)
    except OSError:
        # The beginning of a file would take the space of a full disk.
        with contextlib.suppress(OSError):
            filesystem.delete_file(unfinished)
        raise


def _put(filesystem: Any, path: str, data: bytes) -> None:
    # Otherwise Arrow would compress a file that ends in .gz a second time.
    with filesystem.open_output_stream(path, compression=None) as stream:
        stream.write(data)


def path_segment(name: str) -> str:
    """A name, for example of a cluster, as one segment of a path that stays where it is put; unquote gives it back."""
    escaped = quote(name, safe="")
    return escaped if escaped.strip(".") else escaped.replace(".", "%2E")


def without_credentials(uri: str) -> str:
    """The location for people: scheme, host and path."""
    if "://" not in uri:
        return uri
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return parts.path
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")


def hadoop_settings(uri: str) -> dict[str, str]:
    """With these, Spark reaches the store of an ``s3://`` URI as pyarrow does: endpoint and region.

    From the URI's query (``endpoint_override``, ``scheme``, ``region``), else from the variables of AWS's own tools.
    Both read the keys from the environment. Empty for other locations.
    """
    parts = urlsplit(uri)
    if parts.scheme != "s3":
        return {}
    query = dict(parse_qsl(parts.query))
    endpoint = query.get("endpoint_override", "")
    if endpoint and "://" not in endpoint:
        endpoint = f"{query.get('scheme', 'https')}://{endpoint}"
    endpoint = endpoint or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    region = query.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ""
    settings = {"fs.s3a.endpoint": endpoint, "fs.s3a.endpoint.region": region}
    if endpoint:
        settings["fs.s3a.path.style.access"] = "true"  # as pyarrow does for an endpoint that is not Amazon's
    return {name: value for name, value in settings.items() if value}


def store_failed(what: str, error: OSError) -> Transient:
    """A sentence for a store that does not do ``what``.

    It has only the kind of error, because the error's text may name keys.
    """
    told = _AWS_ERROR.search(str(error))
    why = told.group(1) if told else os.strerror(error.errno) if error.errno else type(error).__name__
    return Transient(Reason.LAKE_UNUSABLE, f"{what} ({why})", retry_after=60.0)
