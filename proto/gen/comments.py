"""Parses a comment of the schema: its prose, and the markers for the generator.

Markers stand at the start of a line of a field's comment, before or after the field. `;`, `,`, `.`, `:` or another
marker ends one; the rest of the line is prose:

    // required              a message field that must be present: decoding raises DecodeError without it
    // buffer                a bytes field that may also hold a bytearray or a memoryview
    // pieces                a buffer that may also hold Pieces
    // default: -1; none     the constructor's default, a Python literal or a member of the field's enum

What schema.py finds in the prose of a metadata record stays prose: its type and levels, and `@n` of its fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

FLAG = re.compile(r"(required|buffer|pieces)\s*(?:[;:,.]|$|(?=\b(?:required|buffer|pieces|default)\b))\s*")
DEFAULT = re.compile(
    r"""default:\s*(?P<value>-?\d[\d_]*(?:\.\d+)?(?:[eE]-?\d+)?|b?"[^"]*"|b?'[^']*'|\(\)|[A-Za-z_]\w*)\s*(?:[;,.]|$)\s*"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """doc: the prose, without trailing blanks. default: the literal's source text."""

    doc: str = ""
    required: bool = False
    buffer: bool = False
    pieces: bool = False
    default: str | None = None


def parse_comment(*texts: str) -> Comment:
    """One Comment from the comments before and after a declaration, in that order."""
    flags: list[str] = []
    default: str | None = None
    prose: list[str] = []
    for line in "\n".join(text.strip("\n") for text in texts if text.strip()).splitlines():
        rest = line.strip() if FLAG.match(line.strip()) or DEFAULT.match(line.strip()) else line.rstrip()
        while match := FLAG.match(rest) or DEFAULT.match(rest):
            if match.re is FLAG:
                flags.append(match[1])
            else:
                default = match["value"]
            rest = rest[match.end() :]
        if rest.strip() or not line.strip():
            prose.append(rest)
    return Comment(
        doc=_dedent(prose),
        required="required" in flags,
        buffer="buffer" in flags or "pieces" in flags,
        pieces="pieces" in flags,
        default=default,
    )


def _dedent(lines: list[str]) -> str:
    """Remove the blank that protoc leaves after `//`. Deeper indentation is the author's and stays."""
    return "\n".join(line[1:] if line.startswith(" ") else line for line in lines).strip("\n")
