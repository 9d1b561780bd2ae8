"""`sasl.jaas.config` as Kafka reads it: `MODULE required KEY="VALUE" ...;`.

Kafka cuts it by Java's StreamTokenizer: a bare word has letters, digits and `_ $ - .` only, and does not begin with a
digit, `-` or `.`; everything else must be quoted, where a backslash escapes. What Java would cut or misread in silence
is an error here. Messages give the place and never the text, which may be a password. A module is a name that is
looked up in a table: nothing is loaded (CVE-2023-25194).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

KEY = "sasl.jaas.config"
_SECURITY = "org.apache.kafka.common.security"
MODULES = {
    f"{_SECURITY}.plain.PlainLoginModule": "PLAIN",
    f"{_SECURITY}.scram.ScramLoginModule": "SCRAM",
    f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule": "OAUTHBEARER",
}
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
_FLAGS = ("required", "requisite", "sufficient", "optional")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """kind: PLAIN, SCRAM or OAUTHBEARER."""

    kind: str
    options: Mapping[str, str] = field(repr=False)


def read_jaas(text: str) -> JaasEntry:
    """Raises ValueError."""
    tokens = _Tokens(text)
    module = tokens.word("the name of a login module")
    kind = MODULES.get(module)
    if module == KERBEROS:
        raise ValueError(f"{KEY} names Kerberos, which is not built: use SCRAM-SHA-512, PLAIN or OAUTHBEARER")
    if kind is None:
        raise ValueError(f"{KEY} names a login module that is not known here: use one of {', '.join(MODULES)}")
    if tokens.word("a control flag").lower() not in _FLAGS:
        raise ValueError(f"{KEY}: the word after the login module must be required")
    options: dict[str, str] = {}
    while not tokens.takes(";"):
        place = tokens.place
        key = tokens.word("a key, or a semicolon at the end")
        if not tokens.takes("="):
            raise ValueError(f"{KEY}: there is no = after the key at character {place}")
        if key in options:
            raise ValueError(f"{KEY}: the key at character {place} is there twice")
        options[key] = tokens.word("a value")
    if not tokens.at_end:
        raise ValueError(f"{KEY} has more than one entry: the second begins at character {tokens.place}; remove it")
    return JaasEntry(kind, options)


def show_jaas(kind: str, options: Mapping[str, str]) -> str:
    """The text that `read_jaas` and Java read back as it was. kind: of JaasEntry."""
    module = next(name for name, known in MODULES.items() if known == kind)
    return f"{module} required" + "".join(f" {key}={quoted(value)}" for key, value in options.items()) + ";"


def quoted(value: str) -> str:
    r"""In Java's quotes. A line break would end a quote there, so it is written as \n or \r."""
    text = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{text}"'


class _Tokens:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    @property
    def place(self) -> int:
        """Of the next token, counted from 1."""
        self._skip_space()
        return self._at + 1

    @property
    def at_end(self) -> bool:
        self._skip_space()
        return self._at >= len(self._text)

    def takes(self, sign: str) -> bool:
        self._skip_space()
        if self._text[self._at : self._at + 1] != sign:
            return False
        self._at += 1
        return True

    def word(self, wanted: str) -> str:
        """A bare word, or a quoted text. Raises ValueError."""
        self._skip_space()
        start = self._text[self._at : self._at + 1]
        if not start:
            raise ValueError(f"{KEY} ends where {wanted} must be: does its last semicolon miss?")
        if start in "\"'":
            return self._quoted(start)
        if not _is_letter(start):
            raise ValueError(f"{KEY}: at character {self._at + 1} there is no {wanted}: {_QUOTE}")
        first = self._at
        while self._at < len(self._text) and (_is_letter(self._text[self._at]) or self._text[self._at] in _INSIDE):
            self._at += 1
        following = self._text[self._at : self._at + 1]
        if following and following not in "=;" and not following.isspace():
            raise ValueError(f"{KEY}: Java would cut the text at character {self._at + 1}: {_QUOTE}")
        return self._text[first : self._at]

    def _quoted(self, quote: str) -> str:
        begin = self._at + 1
        self._at += 1
        found: list[str] = []
        while self._at < len(self._text) and (sign := self._text[self._at]) not in "\n\r":
            self._at += 1
            if sign == quote:
                return "".join(found)
            found.append(self._escaped() if sign == "\\" else sign)
        raise ValueError(f"{KEY}: the quote that begins at character {begin} does not end on its line")

    def _escaped(self) -> str:
        """What follows a backslash: up to three octal digits (the first 0 to 3 if there are three), or one sign."""
        sign = self._text[self._at : self._at + 1]
        self._at += 1
        if sign == "" or sign not in "01234567":
            return _ESCAPES.get(sign, sign)
        digits, most = sign, 3 if sign in "0123" else 2
        while len(digits) < most and (more := self._text[self._at : self._at + 1]) and more in "01234567":
            digits += more
            self._at += 1
        return chr(int(digits, 8))

    def _skip_space(self) -> None:
        while self._at < len(self._text):
            if self._text[self._at] <= " ":
                self._at += 1
            elif self._text.startswith("/*", self._at):
                end = self._text.find("*/", self._at + 2)
                self._at = len(self._text) if end < 0 else end + 2
            elif self._text[self._at] == "/":  # of one sign or two: Java drops the rest of the line
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            else:
                return


_QUOTE = 'put the value in double quotes, with \\ before each " and \\'
_INSIDE = "0123456789-."


def _is_letter(sign: str) -> bool:
    return (sign.isascii() and sign.isalpha()) or sign in "_$" or ord(sign) >= 160
