"""What is kept of a Secret, however large it is and whatever it contains."""

import traceback

import pytest
from tests.fakes import der

from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.reconcile.observe import pem_blocks, secret_text
from kafka_rebalance.reconcile.observe.secret_text import SecretText


def secret(value: bytes) -> SecretText:
    return SecretText("Secret kafka/user", {"k": value})


def pem(content: str, label: str = "CERTIFICATE") -> str:
    return f"-----BEGIN {label}-----\n{content}\n-----END {label}-----\n"


class TestText:
    """A value of some length. There are two settings for each resource and client."""

    def test_up_to_the_limit(self) -> None:
        assert secret(b"x" * secret_text.MOST_TEXT_BYTES).text("k") == "x" * secret_text.MOST_TEXT_BYTES

    @pytest.mark.parametrize(
        ("value", "said"),
        [
            (b"x" * 16_385, "key 'k' of Secret kafka/user has 16385 bytes, more than the limit of 16384"),
            (b"\xff\xfe", "key 'k' of Secret kafka/user is not text"),
        ],
    )
    def test_refused(self, value: bytes, said: str) -> None:
        """The message has nothing of the value, nor has a traceback: an error that the reader raises quotes bytes."""
        with pytest.raises(Refused) as refused:
            secret(value).text("k")
        assert (refused.value.reason, refused.value.message) == ("SecretInvalid", said)
        shown = "".join(traceback.format_exception(refused.value))
        assert "xxx" not in shown
        assert "0xff" not in shown

    def test_a_key_that_does_not_exist(self) -> None:
        with pytest.raises(Transient, match="Secret kafka/user has no key 'other'"):
            secret(b"x").text("other")


class TestLine:
    """A password or client secret. Each of its lines is masked by itself, in each text of a server."""

    @pytest.mark.parametrize("value", ["hunter2", "hunter2\n", "hunter2\r\n", "\nhunter2\n\n", "a b"])
    def test_one(self, value: str) -> None:
        """As it is: files often end with a line break."""
        assert secret(value.encode()).line("k") == value

    @pytest.mark.parametrize("value", ["a\nb", "a\r\n\nb\n", "a\u2028b", "ab\n" * 4_000])
    def test_several(self, value: str) -> None:
        said = "key 'k' of Secret kafka/user has several lines: a password or client secret must be one line"
        with pytest.raises(Refused) as refused:
            secret(value.encode()).line("k")
        assert (refused.value.reason, refused.value.message) == ("SecretInvalid", said)


class TestCertificates:
    """OpenSSL sorts the CAs that it has for each further one, while no thread of Python runs."""

    def test_without_what_is_between_them(self) -> None:
        """Comments of bundles are not ASCII, which the clients refuse; keys are not for those who verify."""
        first, second = pem("AAAA"), pem("BBBB", "X509 CERTIFICATE")
        bundle = f"# Főtanúsítvány\n{first}# next\n{pem('KEY', 'PRIVATE KEY')}\r\n{second}rest"
        assert secret(bundle.encode()).certificates("k") == first + second

    def test_a_key_is_not_kept(self) -> None:
        assert "KEY" not in secret((pem("AAAA") + pem("KEY", "RSA PRIVATE KEY")).encode()).certificates("k")

    @pytest.mark.parametrize(
        "value",
        ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA", pem("AAAA", "PRIVATE KEY"), pem("é")],
        ids=["empty", "text", "no end", "a key", "not ASCII"],
    )
    def test_none(self, value: str) -> None:
        """Without CAs, those of the system would be trusted."""
        with pytest.raises(Refused, match="key 'k' of Secret kafka/user has no PEM certificate") as refused:
            secret(value.encode()).certificates("k")
        assert refused.value.reason == "SecretInvalid"

    def test_as_many_as_browsers_trust(self) -> None:
        """The bundles of systems have about 150 certificates, and 220 KiB."""
        bundle = der.pem(bytes(1_050)) * pem_blocks.MOST_CERTIFICATES
        assert secret(bundle.encode()).certificates("k") == bundle

    def test_too_many(self) -> None:
        with pytest.raises(Refused, match="has 251 certificates, more than the limit of 250: write only those of"):
            secret((pem("AAAA") * 251).encode()).certificates("k")

    def test_too_long(self) -> None:
        with pytest.raises(Refused, match="has 1048576 bytes, more than the limit of 524288"):
            secret(b"x" * (1 << 20)).certificates("k")
