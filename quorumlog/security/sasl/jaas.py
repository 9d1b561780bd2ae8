"""`sasl.jaas.config`: one line that names a login module of Kafka's and its options.

It is read as Java reads it (Kafka's JaasConfig over `java.io.StreamTokenizer`), so that a line means the same to both:

    letters - _ $ and all above U+00A0   make a word, also with digits and dots behind the first character
    a digit, a dot, or a minus           begins a number, which Java drops
    ' or "                               begin a quoted text, with C's escapes, to the same sign in the same line
    /                                    begins a comment to the end of the line; /* to */

Three modules are known, and none is loaded (CVE-2023-25194). Where Java would cut a value, drop it or go on with
another meaning, it is an error here. An error gives the place and never the value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from quorumlog.security.secret import Secret

_PACKAGE = "org.apache.kafka.common.security."
_SHADED = "kafkashaded."  # before the package, in one platform's Spark
_FLAGS = ("required", "requisite", "sufficient", "optional")
_KERBEROS = "Krb5LoginModule"
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_QUOTED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
_BLOCK = re.compile(r"/\*.*?\*/", re.DOTALL)
_LINE = re.compile(r"/[^\r\n]*")
_OCTAL = "01234567"
MAX_CHARACTERS = 64 * 1024


class JaasError(ValueError):
    """The line cannot be used. line, column: counted from 1."""

    def __init__(self, text: str, position: int, reason: str) -> None:
        before = text[:position]
        self.line, self.column = before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1
        super().__init__(f"sasl.jaas.config, line {self.line}, column {self.column}: {reason}")


class Kerberos(JaasError):
    """The line names a login module of Kerberos."""


class Module(Enum):
    """The login modules that are known. The value is the name of its class under Kafka's package."""

    PLAIN = "plain.PlainLoginModule"
    SCRAM = "scram.ScramLoginModule"
    OAUTHBEARER = "oauthbearer.OAuthBearerLoginModule"

    @property
    def class_name(self) -> str:
        return _PACKAGE + self.value


# Options by their beginnings, where the rest is a name; else whole.
_OPTIONS = {
    Module.PLAIN: ("username", "password", "user_"),
    Module.SCRAM: ("username", "password", "tokenauth"),
    Module.OAUTHBEARER: ("clientId", "clientSecret", "scope", "extension_", "unsecuredLoginStringClaim_"),
}


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """options: by name, in their order. On a server `user_NAME` of PLAIN holds a password of its own."""

    module: Module
    options: Mapping[str, Secret]


class _Kind(Enum):
    WORD = auto()
    QUOTED = auto()
    SIGN = auto()
    END = auto()


class _Token(NamedTuple):
    """position: of its first character."""

    kind: _Kind
    text: str
    position: int


def read_jaas(text: str) -> JaasEntry:
    """Raises JaasError."""
    return _Reader(text).entry()


def write_jaas(module: Module, options: Mapping[str, str]) -> str:
    """A line that Java reads back to the same options. Raises ValueError for an option that the module lacks."""
    for name in options:
        if not _is_option(module, name):
            raise ValueError(f"{module.class_name} has no option {name!r}")
    told = "".join(f' {_option_name(name)}="{value.translate(_QUOTED)}"' for name, value in options.items())
    return f"{module.class_name} required{told};"


def _option_name(name: str) -> str:
    """Java takes a quoted name, too."""
    is_word = all(_is_word(one) or _is_digit(one) for one in name) and not _is_digit(name[0])
    return name if is_word else f'"{name.translate(_QUOTED)}"'


def _is_option(module: Module, name: str) -> bool:
    return any(
        name.startswith(option) and name != option if option.endswith("_") else name == option
        for option in _OPTIONS[module]
    )


def _is_word(one: str) -> bool:
    return one in "-_$" or (one.isascii() and one.isalpha()) or one >= "\xa0"


def _is_digit(one: str) -> bool:
    return one in ".-" or "0" <= one <= "9"


class _Reader:
    def __init__(self, text: str) -> None:
        if len(text) > MAX_CHARACTERS:
            raise JaasError(text, 0, f"{len(text)} characters; {MAX_CHARACTERS} are allowed")
        self._text, self._at = text, 0

    # --- tokens

    def _error(self, position: int, reason: str) -> JaasError:
        return JaasError(self._text, position, reason)

    def _next(self) -> _Token:
        self._skip()
        start = self._at
        if start == len(self._text):
            return _Token(_Kind.END, "", start)
        first = self._text[start]
        if first in "'\"":
            return self._quoted(first)
        if _is_digit(first):
            raise self._error(start, "Java reads a number here and drops it; put the value in double quotes")
        if not _is_word(first):
            self._at += 1
            return _Token(_Kind.SIGN, first, start)
        while self._at < len(self._text) and (_is_word(self._text[self._at]) or _is_digit(self._text[self._at])):
            self._at += 1
        return _Token(_Kind.WORD, self._text[start : self._at], start)

    def _skip(self) -> None:
        """Blanks and comments. A comment that touches what is before it is a value that Java cuts."""
        while self._at < len(self._text):
            if self._text[self._at] <= " ":
                self._at += 1
            elif self._text[self._at] == "/":
                self._skip_comment()
            else:
                return

    def _skip_comment(self) -> None:
        start = self._at
        if start and self._text[start - 1] > " " and self._text[start - 1] not in ";/":
            raise self._error(start, "Java begins a comment at this `/`; put the value in double quotes")
        end = (_BLOCK if self._text.startswith("/*", start) else _LINE).match(self._text, start)
        if end is None:
            raise self._error(start, "this comment has no end")
        self._at = end.end()

    def _quoted(self, quote: str) -> _Token:
        start = self._at
        self._at += 1
        value: list[str] = []
        while True:
            one = self._take(start)
            if one == quote:
                return _Token(_Kind.QUOTED, "".join(value), start)
            if one in "\n\r":
                raise self._error(start, f"the text that begins with {quote} does not end in its line; write \\n in it")
            value.append(self._escaped(start) if one == "\\" else one)

    def _take(self, start: int) -> str:
        if self._at == len(self._text):
            raise self._error(start, "the quoted text that begins here has no end")
        self._at += 1
        return self._text[self._at - 1]

    def _escaped(self, start: int) -> str:
        """The character that an escape means: an octal number of one to three digits, C's letters, or itself."""
        one = self._take(start)
        if one not in _OCTAL:
            return _ESCAPES.get(one, one)
        digits = one
        while len(digits) < (3 if one <= "3" else 2) and self._text[self._at : self._at + 1] in tuple(_OCTAL):
            digits += self._take(start)
        return chr(int(digits, 8))

    # --- the entry

    def entry(self) -> JaasEntry:
        module = self._module(self._next())
        flag = self._next()
        if flag.text.lower() not in _FLAGS or flag.kind not in (_Kind.WORD, _Kind.QUOTED):
            raise self._error(
                flag.position, "after the module one of required, requisite, sufficient, optional must come"
            )
        options: dict[str, Secret] = {}
        while (key := self._next()).text != ";" or key.kind is not _Kind.SIGN:
            self._option(module, key, options)
        after = self._next()
        if after.kind is not _Kind.END:
            raise self._error(after.position, "the line must end after its `;`: one login module is allowed")
        return JaasEntry(module, options)

    def _module(self, token: _Token) -> Module:
        name = token.text.removeprefix(_SHADED)
        for module in Module:
            if name == module.class_name and token.kind in (_Kind.WORD, _Kind.QUOTED):
                return module
        if name.endswith(_KERBEROS):
            reason = "Kerberos (GSSAPI) is not supported; use SCRAM, PLAIN or OAUTHBEARER"
            raise Kerberos(self._text, token.position, reason)
        known = ", ".join(module.class_name for module in Module)
        raise self._error(token.position, f"the line must begin with one of {known}")

    def _option(self, module: Module, key: _Token, options: dict[str, Secret]) -> None:
        """key: is not told, because a value that was cut may stand in its place."""
        if key.kind is _Kind.END:
            raise self._error(key.position, "the line must end with `;`")
        if key.kind is _Kind.SIGN or not _is_option(module, key.text):
            names = ", ".join(f"{one}NAME" if one.endswith("_") else one for one in _OPTIONS[module])
            cure = "if this belongs to the value before, put that in double quotes"
            raise self._error(key.position, f"here must stand one of this module's options, {names}; {cure}")
        if key.text in options:
            raise self._error(key.position, "this option comes twice")
        sign = self._next()
        if sign.kind is not _Kind.SIGN or sign.text != "=":
            raise self._error(sign.position, "`=` must come after an option's name")
        value = self._next()
        if value.kind not in (_Kind.WORD, _Kind.QUOTED):
            raise self._error(value.position, "an option's value must come here, in double quotes")
        options[key.text] = Secret(value.text)
