"""The text of one Secret, of which a bounded part is kept: who wrote it may have chosen its size."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.observe import pem_blocks

MOST_TEXT_BYTES = 16 << 10
"""A private RSA key of 8,192 bits has 6 KiB."""
MOST_CHAIN_BYTES = 64 << 10
"""Of a client certificate and those that issued it."""
MOST_CA_BYTES = 512 << 10


@dataclass(frozen=True, slots=True)
class SecretText:
    """The content of one Secret; ``name`` is for messages."""

    name: str
    data: Mapping[str, bytes] = field(repr=False)

    def text(self, key: str, most: int = MOST_TEXT_BYTES) -> str:
        """The value of a key.

        Transient (SecretNotFound) if there is none; Refused (SecretInvalid) if it is not text, or has more than
        ``most`` bytes.
        """
        if key not in self.data:
            raise Transient(Reason.SECRET_NOT_FOUND, f"{self.name} has no key {key!r}", retry_after=15)
        value = self.data[key]
        if len(value) > most:
            raise self._invalid(key, f"has {len(value)} bytes, more than the limit of {most}")
        try:
            return value.decode()
        except UnicodeDecodeError:
            # Without the cause: it would quote the bytes.
            raise self._invalid(key, "is not text") from None

    def line(self, key: str) -> str:
        """The value of a key, with the line break at its end.

        Raises as ``text``, and Refused (SecretInvalid) if there are several lines: each is masked by itself.
        """
        text = self.text(key)
        if sum(map(bool, text.splitlines())) > 1:
            raise self._invalid(key, "has several lines: a password or client secret must be one line")
        return text

    def certificates(self, key: str, most: int = MOST_CA_BYTES) -> str:
        """The PEM certificates in the value of a key, without other PEM objects and the text between them.

        Raises as ``text``, and Refused (SecretInvalid) if there are none, too many, or one that takes
        OpenSSL long.
        """
        text = self.text(key, most)
        try:
            found = pem_blocks.certificates(text)
        except ValueError as refused:
            raise self._invalid(key, str(refused)) from None
        if not found:
            raise self._invalid(key, "has no PEM certificate")
        return "".join(found)

    def private_key(self, key: str) -> str:
        """The first PEM private key in the value of a key; raises as ``certificates``."""
        text = self.text(key)
        try:
            found = pem_blocks.private_key(text)
        except ValueError as refused:
            raise self._invalid(key, str(refused)) from None
        if found is None:
            raise self._invalid(key, "has no PEM private key")
        return found

    def _invalid(self, key: str, why: str) -> Refused:
        return Refused(Reason.SECRET_INVALID, f"key {key!r} of {self.name} {why}")
