"""Certificates and keys that OpenSSL would decode for seconds while no other thread of Python runs."""

import ssl
import subprocess

import pytest
from tests.fakes import der as written
from tests.fakes.der import CRL_POINTS, DSA, EC, P256, RSA, certificate, der, extension, name, number, oid, pem

from kafka_rebalance.reconcile.observe import pem_blocks
from kafka_rebalance.reconcile.observe.pem_blocks import (
    MOST_CERTIFICATES,
    MOST_KEY_BYTES,
    certificates,
    private_key,
)

EXPLICIT = "with explicit parameters of an elliptic curve: use one with a named curve"
OTHER_KEY = "neither RSA, nor EC, Ed25519 or Ed448, in DER"
FULL_NAME = der(0xA0, der(0xA0, der(0x86, b"http://ca/crl")))
RELATIVE_NAME = der(0xA0, der(0xA1, der(written.SEQUENCE, oid("550403"), der(written.UTF8, b"x"))))


def points(*names: bytes) -> bytes:
    return der(written.SEQUENCE, *(der(written.SEQUENCE, name) for name in names))


def ec_key(parameters: bytes) -> bytes:
    return der(written.SEQUENCE, number(1), der(written.OCTETS, b"\1" * 32), der(0xA0, parameters))


def generated(algorithm: str, *options: str) -> str:
    command = ["openssl", "genpkey", "-algorithm", algorithm, *(part for one in options for part in ("-pkeyopt", one))]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class TestCertificates:
    """What is kept is what OpenSSL decodes, byte by byte."""

    def test_usual(self) -> None:
        first = certificate("a", extension(CRL_POINTS, points(FULL_NAME)))
        second = certificate("b", extension("551d0e", b"\4\1x"), label="X509 CERTIFICATE")
        assert certificates(f"{first}# {second}") == [first, second]
        ssl.create_default_context(cadata=first + second)

    def test_of_the_system(self) -> None:
        """Those of Mozilla, in Debian's order and line lengths."""
        found = ssl.create_default_context().get_ca_certs(binary_form=True)
        text = "".join(ssl.DER_cert_to_PEM_cert(one) for one in found)
        assert "".join(certificates(text)) == text

    @pytest.mark.parametrize("field", ["2a8648ce3d0101", "2a8648ce3d0102"], ids=["prime", "characteristic two"])
    def test_explicit_curve(self, field: str) -> None:
        """250 of them, with a field of 661 bits in which square roots are slow, took 70 s."""
        with pytest.raises(ValueError, match=f"has a certificate {EXPLICIT}"):
            certificates(certificate("a") + certificate("b", parameters=written.explicit_curve(field)))

    @pytest.mark.parametrize("line_end", [" \t\r\n", "\n\n", "\n "], ids=["white space", "empty lines", "indented"])
    def test_explicit_curve_in_odd_pem(self, line_end: str) -> None:
        with pytest.raises(ValueError, match=EXPLICIT):
            certificates(certificate("a", parameters=written.explicit_curve()).replace("\n", line_end))

    def test_more_than_base64(self) -> None:
        """OpenSSL skips a header, and stops at a hyphen."""
        text = certificate("a")
        for odd in (text.replace("E-----\n", "E-----\nA: b\n\n", 1), text.replace("\n-----END", "\n-AAAA\n-----END")):
            with pytest.raises(ValueError, match="is not PEM: between BEGIN and END must be Base64 only"):
                certificates(odd)

    @pytest.mark.parametrize("label", ["TRUSTED CERTIFICATE", "PKCS7", "X509 CRL", "CERTIFICATE REQUEST"])
    def test_other_objects(self, label: str) -> None:
        """Neither client library reads them as a CA."""
        assert certificates(certificate("a", label=label)) == []

    def test_very_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """None is decoded: an empty one has 50 bytes, so a text may have 10,000."""
        monkeypatch.setattr(pem_blocks, "_decoded", None)
        with pytest.raises(ValueError, match="has 251 certificates, more than the limit of 250"):
            certificates(pem(b"") * (MOST_CERTIFICATES + 1))


class TestCompressedPoints:
    """OpenSSL computes the other half of each: 250 on P-224 took 0.2 s, in which no other thread of Python runs."""

    @pytest.mark.parametrize("first", [b"\2", b"\3"], ids=["even", "odd"])
    @pytest.mark.parametrize("version", [number(0), b""], ids=["version 3", "version 1"])
    def test_refused(self, first: bytes, version: bytes) -> None:
        key = written.public_key(first + written.POINT[1:33], oid(P256))
        with pytest.raises(ValueError, match="has a certificate with a compressed point of an elliptic curve: use one"):
            certificates(written.certificate_of(key, version=version))

    @pytest.mark.parametrize("version", [number(2), b""], ids=["version 3", "version 1"])
    def test_uncompressed(self, version: bytes) -> None:
        text = written.certificate_of(written.public_key(written.POINT, oid(P256)), version=version)
        assert certificates(text) == [text]

    @pytest.mark.parametrize(
        "named", [name("x"), der(written.SEQUENCE, oid(EC))], ids=["RSA", "RSA with the OID of EC"]
    )
    def test_other_keys(self, named: bytes) -> None:
        """A key of Ed25519 may begin with the same byte."""
        key = der(written.SEQUENCE, der(written.SEQUENCE, oid("2b6570")), der(written.BITS, b"\0\2" + bytes(31)))
        text = written.certificate_of(key, subject=named)
        assert certificates(text) == [text]

    def test_hidden_by_ber(self) -> None:
        """In a string in parts."""
        parts = der(0x23, der(written.BITS, b"\0\2" + written.POINT[1:33]))
        key = der(written.SEQUENCE, der(written.SEQUENCE, oid(EC), oid(P256)), parts)
        with pytest.raises(ValueError, match="has a certificate that is not encoded in DER"):
            certificates(written.certificate_of(key))

    @pytest.mark.parametrize("key", [b"", der(written.SEQUENCE, oid(EC)), der(written.SEQUENCE)])
    def test_no_key(self, key: bytes) -> None:
        with pytest.raises(ValueError, match="has a certificate that is not encoded in DER"):
            certificates(written.certificate_of(key, subject=der(written.SEQUENCE, oid(EC))))


class TestCrlDistributionPoints:
    """OpenSSL copies the issuer's name for each one with a relative name: two CAs with 512 KiB took minutes and GiB."""

    def test_relative_name(self) -> None:
        with pytest.raises(ValueError, match="CRL distribution point relative to the name of its issuer: use one with"):
            certificates(certificate("a", extension(CRL_POINTS, points(FULL_NAME, RELATIVE_NAME))))

    @pytest.mark.parametrize(
        "hidden",
        [
            extension(CRL_POINTS, der(written.OCTETS, points(RELATIVE_NAME)), tag=0x24),
            extension(CRL_POINTS, b"\x30\x80" + points(RELATIVE_NAME)[2:] + b"\0\0"),
            extension(CRL_POINTS, points(b"\xbf\0" + RELATIVE_NAME[1:])),
            extension(CRL_POINTS, points(RELATIVE_NAME)[:-1]),
        ],
        ids=["string in parts", "indefinite length", "high tag", "cut"],
    )
    def test_hidden_by_ber(self, hidden: bytes) -> None:
        with pytest.raises(ValueError, match="has a certificate that is not encoded in DER"):
            certificates(certificate("a", hidden))

    @pytest.mark.parametrize(
        "many",
        [
            certificate("a", extension(CRL_POINTS, points(*[FULL_NAME] * 3_000))),
            certificate("a", extension(CRL_POINTS, points(FULL_NAME)) * 1_000),
            certificate("a", extension(CRL_POINTS, points(*[FULL_NAME] * 25))) * 100,
        ],
        ids=["points", "extensions", "certificates"],
    )
    def test_very_many(self, many: str) -> None:
        """To look at 250,000 elements takes 0.3 s, and each attempt to connect looks at them."""
        assert certificates(certificate("a", extension(CRL_POINTS, points(FULL_NAME))) * MOST_CERTIFICATES)
        with pytest.raises(ValueError, match="CRL distribution points and more than 5000 DER elements: write fewer"):
            certificates(many)

    def test_high_tag_of_the_relative_name(self) -> None:
        with pytest.raises(ValueError, match="relative to the name of its issuer"):
            certificates(certificate("a", extension(CRL_POINTS, points(der(0xA0, b"\xbf\1\0")))))

    def test_long_length_of_the_kind(self) -> None:
        kind = b"\6\x84\0\0\0\3" + bytes.fromhex(CRL_POINTS)
        odd = der(written.SEQUENCE, kind, der(written.OCTETS, points(RELATIVE_NAME)))
        with pytest.raises(ValueError, match="relative to the name of its issuer"):
            certificates(certificate("a", odd))


class TestPrivateKey:
    """RSA, and named curves."""

    @pytest.mark.parametrize("algorithm", ["RSA", "RSA-PSS", "EC", "ED25519", "ED448"])
    def test_usual(self, algorithm: str) -> None:
        key = generated(algorithm, *(["ec_paramgen_curve:P-256"] if algorithm == "EC" else []))
        assert private_key(f"{certificate('a')}# key\n{key}{pem(b'next', 'PRIVATE KEY')}") == key

    @pytest.mark.parametrize(
        ("label", "content"),
        [
            ("EC PRIVATE KEY", ec_key(oid(P256))),
            ("RSA PRIVATE KEY", der(written.SEQUENCE, *[number(n) for n in range(9)])),
        ],
    )
    def test_outside_pkcs8(self, label: str, content: bytes) -> None:
        """As 'openssl ecparam -genkey' writes it, behind the name of the curve."""
        assert private_key(pem(oid(P256), "EC PARAMETERS") + pem(content, label)) == pem(content, label)

    @pytest.mark.parametrize(
        ("label", "content"),
        [
            ("EC PRIVATE KEY", ec_key(written.explicit_curve())),
            ("PRIVATE KEY", written.private_key(EC, written.explicit_curve(), ec_key(oid(P256)))),
            ("PRIVATE KEY", written.private_key(EC, oid(P256), ec_key(written.explicit_curve()))),
        ],
        ids=["outside PKCS #8", "parameters of PKCS #8", "in the key of PKCS #8"],
    )
    def test_explicit_curve(self, label: str, content: bytes) -> None:
        with pytest.raises(ValueError, match=f"has a private key {EXPLICIT}"):
            private_key(pem(content, label))

    @pytest.mark.parametrize("label", ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"])
    @pytest.mark.parametrize(
        "content",
        [
            written.private_key(DSA, der(written.SEQUENCE, number(7), number(3), number(2)), number(1)),
            written.private_key(EC, oid(P256), der(written.OCTETS, b"part"), tag=0x24),
            der(written.SEQUENCE, der(written.SEQUENCE, oid(RSA)), der(written.OCTETS, b"encrypted")),
        ],
        ids=["DSA", "string in parts", "encrypted"],
    )
    def test_other_keys(self, label: str, content: bytes) -> None:
        """A DSA key of 16 KiB took 10 s; parts of a string could hide the parameters of a curve."""
        with pytest.raises(ValueError, match=OTHER_KEY):
            private_key(pem(content, label))

    def test_indefinite_length(self) -> None:
        with pytest.raises(ValueError, match="has a private key that is not encoded in DER"):
            private_key(pem(b"\x30\x80" + number(0) + b"\0\0", "PRIVATE KEY"))

    def test_too_long_for_a_handshake(self) -> None:
        content = der(written.SEQUENCE, number(0), number(1 << 50_000))
        with pytest.raises(ValueError, match=f"bytes, more than the limit of {MOST_KEY_BYTES}"):
            private_key(pem(content, "RSA PRIVATE KEY"))

    @pytest.mark.parametrize("label", ["DSA PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "CERTIFICATE"])
    def test_none(self, label: str) -> None:
        assert private_key(pem(number(1), label)) is None

    def test_the_message_does_not_quote_it(self) -> None:
        with pytest.raises(ValueError, match="is not PEM") as refused:
            private_key(pem(number(1), "PRIVATE KEY").replace("\n", "\nhunter-2\n", 1))
        assert "hunter" not in str(refused.value)
        assert refused.value.__suppress_context__
