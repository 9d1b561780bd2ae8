"""Which words of a schema comment are markers, and which are prose."""

from __future__ import annotations

import pytest
from comments import Comment, parse_comment

CASES = [
    ("nothing", [], Comment()),
    ("prose", [" Who leads.\n Or led.\n"], Comment(doc="Who leads.\nOr led.")),
    ("indented prose", [" Rules:\n   one\n"], Comment(doc="Rules:\n  one")),
    ("default", ["", " default: -1\n"], Comment(default="-1")),
    ("default, then prose", ["", " default: -1; none known\n"], Comment(default="-1", doc="none known")),
    ("prose, then default", [" Exclusive.\n", " default: 0\n"], Comment(default="0", doc="Exclusive.")),
    ("empty bytes", ["", ' default: b""\n'], Comment(default='b""')),
    ("float", ["", " default: 1.5e-3\n"], Comment(default="1.5e-3")),
    ("member", ["", " default: READ_COMMITTED\n"], Comment(default="READ_COMMITTED")),
    ("required", [" required\n"], Comment(required=True)),
    ("required, then prose", ["", " required: the voter\n"], Comment(required=True, doc="the voter")),
    ("two markers", ["", ' buffer default: b""\n'], Comment(buffer=True, default='b""')),
    ("pieces are a buffer", [" pieces\n"], Comment(buffer=True, pieces=True)),
    ("a sentence about what is required", [" required-th largest offset\n"], Comment(doc="required-th largest offset")),
    ("a word that begins like a marker", [" buffered bytes\n"], Comment(doc="buffered bytes")),
    ("marker inside a sentence", [" is required; always\n"], Comment(doc="is required; always")),
]


@pytest.mark.parametrize(("texts", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_comment(texts: list[str], want: Comment) -> None:
    assert parse_comment(*texts) == want
