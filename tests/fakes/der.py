"""Certificates and keys in DER and PEM, written by hand: also such as no CA would issue. Signatures are not valid."""

import base64

SEQUENCE, SET, INTEGER, BITS, OCTETS, OID, UTF8, UTC = 0x30, 0x31, 2, 3, 4, 6, 12, 23
EC, RSA, DSA, PRIME_FIELD, P256 = (
    "2a8648ce3d0201",
    "2a864886f70d010101",
    "2a8648ce380401",
    "2a8648ce3d0101",
    "2a8648ce3d030107",
)
CRL_POINTS = "551d1f"
POINT = bytes.fromhex(
    "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
)
"""The generator of P-256, uncompressed."""


def der(tag: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    size = len(content)
    length = bytes([size]) if size < 128 else b"\x82" + size.to_bytes(2)
    return bytes([tag]) + length + content


def number(value: int) -> bytes:
    return der(INTEGER, value.to_bytes(value.bit_length() // 8 + 1))


def oid(content: str) -> bytes:
    return der(OID, bytes.fromhex(content))


def name(common: str) -> bytes:
    return der(SEQUENCE, der(SET, der(SEQUENCE, oid("550403"), der(UTF8, common.encode()))))


def explicit_curve(field: str = PRIME_FIELD) -> bytes:
    """The parameters of a curve without a name."""
    curve = der(SEQUENCE, der(OCTETS, b"\1"), der(OCTETS, b"\1"))
    parts = der(SEQUENCE, oid(field), number(23)), curve, der(OCTETS, b"\2\1"), number(21)
    return der(SEQUENCE, number(1), *parts)


def public_key(point: bytes, parameters: bytes) -> bytes:
    return der(SEQUENCE, der(SEQUENCE, oid(EC), parameters), der(BITS, b"\0", point))


def certificate(common: str, *extensions: bytes, parameters: bytes | None = None, label: str = "CERTIFICATE") -> str:
    """Of the CA ``common``, with a public key on P-256, or on a curve with these parameters."""
    return certificate_of(public_key(POINT, parameters or oid(P256)), *extensions, subject=name(common), label=label)


def certificate_of(
    key: bytes, *extensions: bytes, subject: bytes = b"", version: bytes = number(2), label: str = "CERTIFICATE"
) -> str:
    """Of a CA with this public key. ``version``: the number, or nothing as in the first version."""
    algorithm = der(SEQUENCE, oid("2a8648ce3d040302"))
    validity = der(SEQUENCE, der(UTC, b"240101000000Z"), der(UTC, b"440101000000Z"))
    rest = (der(0xA3, der(SEQUENCE, *extensions)),) if extensions else ()
    signed = (number(1), algorithm, subject or name("CA"), validity, subject or name("CA"), key, *rest)
    body = der(SEQUENCE, der(0xA0, version) if version else b"", *signed)
    return pem(der(SEQUENCE, body, algorithm, der(BITS, b"\0", der(SEQUENCE, number(1), number(1)))), label)


def extension(kind: str, value: bytes, tag: int = OCTETS) -> bytes:
    return der(SEQUENCE, oid(kind), der(tag, value))


def private_key(algorithm: str, parameters: bytes, key: bytes, tag: int = OCTETS) -> bytes:
    """PKCS #8."""
    return der(SEQUENCE, number(0), der(SEQUENCE, oid(algorithm), parameters), der(tag, key))


def pem(content: bytes, label: str = "CERTIFICATE") -> str:
    text = base64.b64encode(content).decode()
    lines = "\n".join(text[at : at + 64] for at in range(0, len(text), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"
