"""How much may still come to the disks of a broker."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Bytes on the log dirs of a broker: usable on the fullest one; usable and in all on all of them together.

    ``total`` is at most 0 where the broker does not report it. Log dirs that share a disk count it more than once.
    """

    fullest: int
    usable: int
    total: int = 0

    def below(self, percent: int | None) -> int:
        """How many bytes may come until ``percent`` of all is used; None: until all is. Negative: more is used."""
        if percent is None or self.total <= 0:
            return self.usable
        return self.usable - -(-self.total * (100 - percent) // 100)

    def kept_free(self, percent: int | None) -> int:
        """How much a copy, which may go to the fullest log dir, leaves usable there for that."""
        return max(0, self.fullest - self.below(percent))
