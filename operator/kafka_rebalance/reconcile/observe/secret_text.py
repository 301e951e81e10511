"""The text of one Secret, of which a bounded part is kept: who wrote it may have chosen its size."""

from dataclasses import dataclass, field

from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.reasons import Reason

MOST_TEXT_BYTES = 16 << 10
"""A private RSA key of 8,192 bits has 6 KiB."""
MOST_CHAIN_BYTES = 64 << 10
"""Of a client certificate and those that issued it."""
MOST_CA_BYTES = 512 << 10
MOST_CAS = 250
"""The bundles of browsers have about 150 certificates with 220 KiB. OpenSSL 3.0 sorts those that it has again for each
further one: 250 take up to 0.1 s, 6,700 take 25 s, in which no other thread of Python runs."""
_BEGIN, _END = "-----BEGIN ", "-----END "


@dataclass(frozen=True, slots=True)
class SecretText:
    """The content of one Secret; ``name`` is for messages."""

    name: str
    data: dict[str, bytes] = field(repr=False)

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

    def certificates(self, key: str) -> str:
        """The PEM certificates in the value of a key, without other PEM objects and the text between them.

        Raises as ``text``, and Refused (SecretInvalid) if there are none, or more than MOST_CAS.
        """
        found = [block for block in _blocks(self.text(key, MOST_CA_BYTES)) if block.isascii()]
        if not found:
            raise self._invalid(key, "has no PEM certificate")
        if len(found) > MOST_CAS:
            why = f"has {len(found)} certificates, more than the limit of {MOST_CAS}: write only those of the CAs that "
            raise self._invalid(key, f"{why}issue the certificates of the servers")
        return "".join(found)

    def _invalid(self, key: str, why: str) -> Refused:
        return Refused(Reason.SECRET_INVALID, f"key {key!r} of {self.name} {why}")


def _blocks(text: str) -> list[str]:
    """Each certificate from BEGIN to END. Linear in time: no search begins again behind a BEGIN without END."""
    found = []
    for part in text.split(_BEGIN)[1:]:
        label, _, rest = part.partition("-----")
        content, end, _ = rest.partition(f"{_END}{label}-----")
        if label.endswith("CERTIFICATE") and end:
            found.append(f"{_BEGIN}{label}-----{content}{end}\n")
    return found
