"""Bytes as JSON, text, hex and base64; which of these fits; and signs that must not act."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.client.looking.forms import Form, guess_form, hex_dump, show
from tests.parts import few


@pytest.mark.parametrize(
    ("data", "want"),
    [
        (b"", Form.TEXT),
        (b"plain", Form.TEXT),
        ("Grüße\n".encode(), Form.TEXT),
        (b' {"a": 1e400}', Form.JSON),
        (b"[1, NaN]", Form.JSON),
        (b"{not json}", Form.TEXT),
        (b"42", Form.TEXT),
        (b"\x00\x00\x00\x00\x07avro", Form.HEX),
        (b"\xff\xfe", Form.HEX),
        (b"\x1b[31mred", Form.HEX),
        (b"\x00\x01\x04t\xd6\x8f\xb0\x00"[2:], Form.HEX),
    ],
)
def test_the_form_that_fits(data: bytes, want: Form) -> None:
    assert guess_form(data) is want and show(data).form is want


@pytest.mark.parametrize(
    ("data", "want"),
    [
        (b"a\xffb", "a⟨\\xFF⟩b"),
        ("pay\u202egpj.exe".encode(), "pay⟨U+202E⟩gpj.exe"),
        (b"\x1b[2Jx\x07", "⟨U+001B⟩[2Jx⟨U+0007⟩"),
        ("a\u00a0b\u200bc\ufeff".encode(), "a⟨U+00A0⟩b⟨U+200B⟩c⟨U+FEFF⟩"),
        (b"a\tb\nc\rd", "a\tb\nc⟨U+000D⟩d"),
        ("⟨ß €😀".encode(), "⟨ß €😀"),
        (b"<script>alert(1)</script>", "<script>alert(1)</script>"),
    ],
)
def test_a_sign_that_one_does_not_see_is_named(data: bytes, want: str) -> None:
    assert show(data, Form.TEXT).text == want


def test_json_is_laid_out_and_what_is_none_is_shown_as_text() -> None:
    shown = show(b'{"id":73314510714175488,"f":1.50e400,"t":"\xe2\x80\xae"}', Form.JSON)
    assert shown.text == '{\n  "id": 73314510714175488,\n  "f": 1.50e400,\n  "t": "⟨U+202E⟩"\n}'
    assert shown.form is Form.JSON
    other = show(b"{", Form.JSON)
    assert (other.form, other.text) == (Form.TEXT, "{") and "not shown as JSON" in other.problem
    assert show(None) == show(None, Form.HEX) and show(None).form is None


def test_hex() -> None:
    assert hex_dump(bytes(range(60, 80))) == (
        "00000000  3c 3d 3e 3f 40 41 42 43  44 45 46 47 48 49 4a 4b  |<=>?@ABCDEFGHIJK|\n"
        "00000010  4c 4d 4e 4f                                       |LMNO|"
    )


@settings(max_examples=few(200), deadline=None)
@given(st.binary(max_size=60), st.integers(4, 80), st.sampled_from(Form))
def test_a_part_is_said_to_be_one_and_no_sign_is_cut(data: bytes, limit: int, form: Form) -> None:
    shown = show(data, form, max_bytes=limit)
    assert shown.size == len(data)
    if form is Form.BASE64:
        assert data.startswith(base64.b64decode(shown.text)) and shown.cut == (base64.b64decode(shown.text) != data)
    elif form is not Form.JSON:
        assert shown.cut == (len(data) > limit)


@settings(max_examples=few(60), deadline=None)
@given(st.text(max_size=30), st.integers(4, 40))
def test_a_cut_text_names_no_byte_that_the_whole_has_not(text: str, limit: int) -> None:
    assert "\\x" not in "".join(p.text for p in show(text.encode(), Form.TEXT, max_bytes=limit).pieces if p.is_sign)
