"""The bound on the answers of client processes that the operator keeps in memory.

An engine keeps what it has read of its cluster, and the servers of one inline connection may claim 100,000 partitions.
1 MiB of answers takes about 6 MiB of memory (`answer_memory`). The number of inline connections is not limited.
"""

from collections import Counter

NAMESPACE_BYTES = 24 * 2**20
"""Of all inline connections of a namespace. 50,000 partitions with three replicas take 11 MiB."""
TOGETHER_BYTES = 48 * 2**20
"""Of all inline connections."""
_SHORT_BYTES = 64 * 2**10
"""Shorter answers are not counted, so that the first answers of a connection are never refused."""


class TooMuchKept(Exception):
    """The operator would keep too much. ``how``: a text for users."""

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.how = how


class KeptAnswers:
    """The bytes that count for each client. A client is in here until it is closed."""

    def __init__(self) -> None:
        self._of: dict[AnswersOfClient, None] = {}

    def of_client(self, namespace: str) -> "AnswersOfClient":
        """For a new client."""
        client = AnswersOfClient(self, namespace)
        self._of[client] = None
        return client

    def forget(self, client: "AnswersOfClient") -> None:
        """The client is closed: its engine has ended."""
        self._of.pop(client, None)

    def check(self, namespace: str) -> None:
        """Raises TooMuchKept above a limit."""
        by_namespace = Counter[str]()
        for client in self._of:
            by_namespace[client.namespace] += client.count
        if by_namespace[namespace] > NAMESPACE_BYTES:
            raise _too_much("the inline connections of this namespace", NAMESPACE_BYTES)
        if by_namespace.total() > TOGETHER_BYTES:
            raise _too_much("all inline connections together", TOGETHER_BYTES)


class AnswersOfClient:
    """The bytes of one client."""

    def __init__(self, all_answers: KeptAnswers, namespace: str) -> None:
        self.namespace = namespace
        self._all = all_answers
        self._read: dict[str, int] = {}
        self._reading: dict[str, int] = {}

    @property
    def count(self) -> int:
        """Of all methods; an answer that is being read counts instead of the one before, if it is longer."""
        read, reading = self._read, self._reading
        return sum(max(read.get(method, 0), reading.get(method, 0)) for method in read.keys() | reading)

    def reading(self, method: str, count: int) -> None:
        """This number of bytes of an answer has arrived. Raises TooMuchKept if they may not be kept."""
        if count <= max(_SHORT_BYTES, self._reading.get(method, 0)):
            return
        self._reading[method] = count
        self._all.check(self.namespace)

    def has_read(self, method: str, count: int) -> None:
        """The whole answer has arrived. The longest one counts, because others may be about a part of the topics."""
        self._reading.pop(method, None)
        if count > _SHORT_BYTES:
            self._read[method] = max(count, self._read.get(method, 0))

    def ended(self) -> None:
        """The process has ended, and what it has not answered completely is not kept."""
        self._reading.clear()

    def close(self) -> None:
        """Nothing of the client is kept."""
        self._all.forget(self)


def _too_much(of: str, limit: int) -> TooMuchKept:
    return TooMuchKept(f"the operator keeps at most {limit >> 20} MiB of the answers to {of}")
