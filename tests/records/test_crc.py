from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.records.format import crc as crc_module
from quorumlog.records.format.crc import COPY_BYTES, crc32c

CASES = [
    (b"", 0x00000000),
    (b"123456789", 0xE3069283),
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(reversed(range(32))), 0x113FDB5C),
]  # RFC 3720, B.4


@pytest.mark.parametrize(("data", "want"), CASES)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_known_answers(data: bytes, want: int, kind: type) -> None:
    assert crc32c(kind(data)) == want


@given(st.binary(max_size=200), st.integers(0, 200))
def test_a_checksum_continues(data: bytes, cut: int) -> None:
    assert crc32c(data[cut:], crc32c(data[:cut])) == crc32c(data)


@pytest.mark.parametrize("size", [COPY_BYTES - 1, COPY_BYTES, COPY_BYTES + 1, 3 * COPY_BYTES + 7])
def test_pieces_give_the_same_as_the_whole(size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    assert crc32c(memoryview(bytearray(data))[1 : size + 1]) == crc32c(data[1 : size + 1])


def test_both_implementations_agree() -> None:
    other = crc_module._crcmod_form()
    for data, want in CASES:
        assert other(0, data) == want


WITHOUT_WHEEL = """
import sys, warnings
sys.modules["google_crc32c"] = None
{more}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from quorumlog.records.format import crc
assert crc.crc32c(b"123456789") == 0xE3069283
print(crc.IMPLEMENTATION, sum(issubclass(w.category, RuntimeWarning) for w in caught))
"""
NO_EXTENSION = """
from importlib import util
find = util.find_spec
util.find_spec = lambda name, *rest: None if name == "crcmod._crcfunext" else find(name, *rest)
"""


@pytest.mark.parametrize(("more", "want"), [("", "crcmod 0"), (NO_EXTENSION, "crcmod 1")], ids=["compiled", "pure"])
def test_without_the_wheel_crcmod_computes_and_warns_once_if_it_is_slow(more: str, want: str) -> None:
    script = WITHOUT_WHEEL.format(more=more)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == want, run.stderr
