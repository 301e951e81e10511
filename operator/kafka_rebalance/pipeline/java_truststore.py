"""Gives the certificates of a Java truststore a fixed date and order, so that two images have the same file.

python java_truststore.py FILE

When Java is installed, Debian writes the truststore, with the time of the installation for each certificate. The image
runs this when it is built. The format is JKS, version 2: a header, one record per certificate, and a SHA-1 hash of both
and the password.
"""

import hashlib
import struct
import sys
from pathlib import Path

_HEADER = struct.Struct(">III")
_MAGIC, _VERSION, _CERTIFICATE = 0xFEEDFEED, 2, 2
_HASH_BYTES = 20
_PASSWORD = "changeit"  # noqa: S105 - the fixed password of every Java, which protects nothing
_DATE_MS = 1_577_880_000_000
"""Noon of 1 January 2020, in milliseconds since 1970."""


def fix_dates(store: bytes) -> bytes:
    """The truststore with a fixed date for each certificate, ordered by their names. ValueError for other formats."""
    content = store[:-_HASH_BYTES]
    magic, version, count = _HEADER.unpack_from(content) if len(content) >= _HEADER.size else (0, 0, 0)
    if (magic, version) != (_MAGIC, _VERSION) or store[-_HASH_BYTES:] != _hash(content):
        raise ValueError("not a JKS truststore with Java's usual password")
    at, records = _HEADER.size, list[tuple[bytes, bytes]]()
    for _ in range(count):
        (tag,) = struct.unpack_from(">I", content, at)
        if tag != _CERTIFICATE:
            raise ValueError("the truststore has a private key")
        name, at = _read(content, at + 4, ">H")
        kind, at = _read(content, at + 8, ">H")
        certificate, at = _read(content, at, ">I")
        head = struct.pack(">IH", tag, len(name)) + name + struct.pack(">q", _DATE_MS)
        body = struct.pack(">H", len(kind)) + kind + struct.pack(">I", len(certificate)) + certificate
        records.append((name, head + body))
    fixed = content[: _HEADER.size] + b"".join(record for _, record in sorted(records))
    return fixed + _hash(fixed)


def _read(content: bytes, at: int, length: str) -> tuple[bytes, int]:
    """The bytes after a length in this format, and where they end."""
    begin = at + struct.calcsize(length)
    end = begin + struct.unpack_from(length, content, at)[0]
    return content[begin:end], end


def _hash(content: bytes) -> bytes:
    return hashlib.sha1(_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + content, usedforsecurity=False).digest()


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_bytes(fix_dates(file.read_bytes()))
