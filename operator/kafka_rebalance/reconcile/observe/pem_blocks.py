"""The certificates and the private key in a PEM text, of which OpenSSL decodes each in a few milliseconds.

OpenSSL decodes while no other thread of Python runs, and who wrote the text chose what it computes. So that it sees
exactly what is checked here, the checked bytes are written as PEM again.
"""

import base64
from collections.abc import Iterator
from itertools import islice

MOST_CERTIFICATES = 250
"""Of one text. The bundles of browsers have about 150 with 220 KiB. OpenSSL 3.0 sorts those that it has again for each
further one: 250 take 50 ms; 6,700 take 25 s."""
MOST_KEY_BYTES = 8 << 10
"""In PEM; an RSA key of 8,192 bits has 6 KiB. A signature takes the cube of it, in each TLS handshake."""
_CERTIFICATES = ("CERTIFICATE", "X509 CERTIFICATE")
_KEYS = ("PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY")
_BEGIN, _END = "-----BEGIN ", "-----END "
_SEQUENCE, _INTEGER, _BITS, _OCTETS, _OID, _EXTENSIONS, _FIRST = 0x30, 0x02, 0x03, 0x04, 0x06, 0xA3, 0xA0
_FIELDS = (bytes.fromhex("2a8648ce3d0101"), bytes.fromhex("2a8648ce3d0102"))
"""X9.62: prime and characteristic-two field. Only the parameters of an unnamed curve need them, of which the author can
choose a field in which one compressed point takes OpenSSL 0.3 s."""
_EC = bytes.fromhex("2a8648ce3d0201")
_COMPRESSED = (b"\2", b"\3")
_CRL_POINTS = bytes.fromhex("551d1f")
_MOST_ELEMENTS = 5_000
"""Of all certificates of a text with CRL distribution points, as far as they are looked at: 5 ms. Usual ones have about
40 each, and few CAs have these points. A text may have 250,000, which take 0.3 s."""
_KEY_ALGORITHMS = {
    bytes.fromhex("2a864886f70d010101"),  # RSA
    bytes.fromhex("2a864886f70d01010a"),  # RSA-PSS
    _EC,
    bytes.fromhex("2b6570"),  # Ed25519
    bytes.fromhex("2b6571"),  # Ed448
}
"""OpenSSL computes the public key of a DSA or DH key in PKCS #8, however large: 10 s for 16 KiB."""


def certificates(text: str) -> list[str]:
    """Each certificate in PEM, without other objects and the text between them. ValueError says why one is refused."""
    blocks = _blocks(text, _CERTIFICATES)
    if len(blocks) > MOST_CERTIFICATES:
        raise ValueError(
            f"has {len(blocks)} certificates, more than the limit of {MOST_CERTIFICATES}: write only those of the CAs "
            "that issue the certificates of the servers"
        )
    found = []
    left = iter(range(_MOST_ELEMENTS))
    for label, content in blocks:
        der = _decoded("certificate", content)
        _require_named_curve("certificate", der)
        if _EC in der:
            _require_whole_point(der)
        if _CRL_POINTS in der:
            _require_whole_names(der, left)
        found.append(_encoded(label, der))
    return found


def private_key(text: str) -> str | None:
    """The first private key in PEM; None if there is none. ValueError says why it is refused."""
    label, content = next(iter(_blocks(text, _KEYS)), (None, ""))
    if label is None:
        return None
    der = _decoded("private key", content)
    _require_named_curve("private key", der)
    if not _usual(list(_elements(_content(der, _SEQUENCE, "private key"), "private key"))[:3]):
        raise ValueError("has a private key that is neither RSA, nor EC, Ed25519 or Ed448, in DER: use one of these")
    encoded = _encoded(label, der)
    if len(encoded) > MOST_KEY_BYTES:
        raise ValueError(f"has a private key of {len(encoded)} bytes, more than the limit of {MOST_KEY_BYTES}")
    return encoded


def _usual(key: list[tuple[int, bytes]]) -> bool:
    """Whether a key begins as one of RSA or EC does in PKCS #8, which OpenSSL finds behind any label, or outside."""
    tags = [tag for tag, _ in key]
    if tags == [_INTEGER, _SEQUENCE, _OCTETS]:
        return _content(key[1][1], _OID, "private key") in _KEY_ALGORITHMS
    return tags[:2] in ([_INTEGER, _INTEGER], [_INTEGER, _OCTETS])


def _blocks(text: str, labels: tuple[str, ...]) -> list[tuple[str, str]]:
    """Label and content from BEGIN to END. Linear in time: no search begins again behind a BEGIN without END."""
    found = []
    for part in text.split(_BEGIN)[1:]:
        label, _, rest = part.partition("-----")
        content, end, _ = rest.partition(f"{_END}{label}-----")
        if label in labels and end and content.isascii():
            found.append((label, content))
    return found


def _decoded(kind: str, content: str) -> bytes:
    try:
        return base64.b64decode("".join(content.split()), validate=True)
    except ValueError:
        # Without the cause: it may quote the content.
        raise ValueError(f"has a {kind} that is not PEM: between BEGIN and END must be Base64 only") from None


def _encoded(label: str, der: bytes) -> str:
    return f"{_BEGIN}{label}-----\n{_lines(der)}{_END}{label}-----\n"


def _lines(der: bytes) -> str:
    text = base64.b64encode(der).decode()
    return "".join(f"{text[at : at + 64]}\n" for at in range(0, len(text), 64))


def _require_named_curve(kind: str, der: bytes) -> None:
    """No encoding hides the bytes: an OID is never split, and the strings that could be are required to be whole."""
    if any(field in der for field in _FIELDS):
        raise ValueError(
            f"has a {kind} with explicit parameters of an elliptic curve: use one with a named curve, as openssl with "
            "'-pkeyopt ec_paramgen_curve:P-256 -pkeyopt ec_param_enc:named_curve' makes it"
        )


def _require_whole_point(der: bytes) -> None:
    """OpenSSL computes the other half of a compressed point: on P-224 it takes 1 ms."""
    fields = list(islice(_elements(_content(_content(der, _SEQUENCE), _SEQUENCE)), 7))
    fields = fields[1:] if fields[:1] and fields[0][0] == _FIRST else fields[:6]  # the version may be left out
    public = list(islice(_elements(fields[-1][1]), 2)) if len(fields) == 6 else []
    if len(public) < 2:
        raise _not_der("certificate")
    (_, algorithm), (tag, point) = public
    if _content(algorithm, _OID) != _EC:
        return
    if tag != _BITS:  # parts of a string could hide how the point begins
        raise _not_der("certificate")
    if point[1:2] in _COMPRESSED:
        raise ValueError(
            "has a certificate with a compressed point of an elliptic curve: use one with an uncompressed point, "
            "openssl's default"
        )


def _require_whole_names(der: bytes, left: Iterator[int]) -> None:
    """OpenSSL copies the name of the issuer for each CRL distribution point with a name relative to it."""
    for value in _crl_points(der, left):
        for _, point in _elements(_content(value, _SEQUENCE), left=left):
            if any(tag == _FIRST and name[:1] != bytes((_FIRST,)) for tag, name in _elements(point, left=left)):
                raise ValueError(
                    "has a certificate with a CRL distribution point relative to the name of its issuer: use one with "
                    "the full name, such as an address"
                )


def _crl_points(der: bytes, left: Iterator[int]) -> Iterator[bytes]:
    """The values of the extension; whole, because a string in parts could hide what is in it."""
    for tag, content in _elements(_content(_content(der, _SEQUENCE), _SEQUENCE), left=left):
        if tag == _EXTENSIONS:
            for _, extension in _elements(_content(content, _SEQUENCE), left=left):
                parts = list(_elements(extension, left=left))
                if parts[:1] == [(_OID, _CRL_POINTS)]:
                    if parts[-1][0] != _OCTETS:
                        raise _not_der("certificate")
                    yield parts[-1][1]


def _content(der: bytes, tag: int, kind: str = "certificate") -> bytes:
    """Of the first element, which must have this tag."""
    found = next(iter(_elements(der, kind)), None)
    if found is None or found[0] != tag:
        raise _not_der(kind)
    return found[1]


def _elements(der: bytes, kind: str = "certificate", left: Iterator[int] | None = None) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each element. ``left``: has an item for each that may still be read.

    ValueError for forms of BER that DER does not have, for high tags, and if there are more elements.
    """
    at = 0
    while at < len(der):
        if left is not None and next(left, None) is None:
            raise ValueError(
                f"has certificates with CRL distribution points and more than {_MOST_ELEMENTS} DER elements: write "
                "fewer, or such without these points"
            )
        start = at + 2
        length = der[at + 1] if start <= len(der) else len(der)
        if length > 0x7F:
            start += length & 0x7F
            length = int.from_bytes(der[at + 2 : start]) if length > 0x80 else len(der)
        if der[at] & 0x1F == 0x1F or start + length > len(der):
            raise _not_der(kind)
        yield der[at], der[start : start + length]
        at = start + length


def _not_der(kind: str) -> ValueError:
    return ValueError(f"has a {kind} that is not encoded in DER")
