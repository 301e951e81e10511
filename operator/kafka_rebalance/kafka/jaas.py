"""Reads the value of ``sasl.jaas.config``, the login of Kafka's own clients.

No error quotes the value: it contains a secret.
"""

import re

_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s"'=;]+)"""
_LOGIN = re.compile(
    r"\s*(?P<module>[\w.$-]+)\s+(?:required|requisite|sufficient|optional)"
    rf"(?P<options>(?:\s+[\w.$-]+\s*=\s*{_VALUE})*)\s*;\s*",
    re.DOTALL | re.IGNORECASE,
)
_OPTION = re.compile(rf"([\w.$-]+)\s*=\s*({_VALUE})", re.DOTALL)
_ESCAPE = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def parse_login(jaas: str) -> tuple[str, dict[str, str]]:
    """The class of the login module, without its package, and its options. ValueError if it is not one login module."""
    login = _LOGIN.fullmatch(jaas)
    if login is None:
        raise ValueError(
            'sasl.jaas.config is not of the form MODULE required OPTION="VALUE" …; (one login module, with '
            "the semicolon; only a backslash at the end of a line continues it on the next)"
        )
    options = {name: _unquoted(value) for name, value in _OPTION.findall(login["options"])}
    return login["module"].rpartition(".")[2], options


def _unquoted(value: str) -> str:
    """The value of a JAAS option, unquoted as Java's StreamTokenizer does."""
    if value[0] not in "\"'":
        return value
    return _ESCAPE.sub(lambda found: _character(found[1]), value[1:-1])


def _character(escaped: str) -> str:
    return chr(int(escaped, 8)) if escaped[0] in "01234567" else _ESCAPED.get(escaped, escaped)
