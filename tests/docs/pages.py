"""The commands and manifests of the documentation, as readers would copy them."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = tuple(
    page
    for pattern in (
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "docs/*.md",
        "examples/**/*.md",
        "charts/*/README.md",
    )
    for page in sorted(ROOT.glob(pattern))
)

_BLOCK = re.compile(r"^ *```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:kubectl|kafka-rebalance) [^`]+)`")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_PLACEHOLDER = re.compile(r"…|\.\.\.|\[")


@dataclass(frozen=True)
class Shown:
    """A piece of a page, and where it is.

    ``whole`` is False in a sentence, which may name a command without its arguments.
    """

    page: str
    text: str
    whole: bool = True

    def __str__(self) -> str:
        return f"{self.page}: {self.text.splitlines()[0]}"


def blocks(language: str) -> Iterator[Shown]:
    """The code blocks in a language."""
    for page in PAGES:
        for found in _BLOCK.finditer(page.read_text(encoding="utf-8")):
            if found[1] == language:
                yield Shown(str(page.relative_to(ROOT)), found[2])


def commands() -> Iterator[Shown]:
    """Each command line of the console blocks, and each complete command in the text, without comments."""
    for block in blocks("console"):
        for line in lines(block.text):
            for part in re.split(r"\s*(?:&&|;|\|)\s+", line):
                yield Shown(block.page, part.strip())
    for page in PAGES:
        for command in _INLINE.findall(re.sub(_BLOCK, "", page.read_text(encoding="utf-8"))):
            yield Shown(str(page.relative_to(ROOT)), command, whole=False)


def words(command: str) -> list[str] | None:
    """The words of a command, or None if it is only a part of one (`kafka-rebalance run …`)."""
    return None if _PLACEHOLDER.search(command) else shlex.split(command)


def sample(command: str, at: int = 0, page: str = "docs/cli.md") -> list[str]:
    """What a page shows below a command of `kafka-rebalance`, without spaces at the ends of lines.

    ``at``: which of several samples of the command, from 0. IndexError if there are fewer.
    """
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(rf"^\$ kafka-rebalance {re.escape(command)}\n(.*?)^(?:\$ |```$)", text, re.MULTILINE | re.DOTALL)
    return [line.rstrip() for line in found[at].rstrip("\n").splitlines()]


def lines(block: str) -> list[str]:
    """The lines that a reader types: after the prompts if there are any, otherwise all."""
    joined = re.sub(r"\\\n\s*", " ", block).splitlines()
    typed = [line[2:] for line in joined if line.startswith("$ ")] or joined
    return [line for line in (_COMMENT.sub("", line).strip() for line in typed) if line]
