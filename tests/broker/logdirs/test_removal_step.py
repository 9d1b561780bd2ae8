"""Freeing a deleted partition's files in steps: each frees a bounded amount, and they end with nothing left."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.logdirs.partition_files import removal_step
from jepsen.sim.disk import SimDisk
from storage.names import log_name

NAME = "t-0.0123456789abcdef0123456789abcdef-delete"
PATH = f"/d/{NAME}"


def held_bytes(disk: SimDisk) -> int:
    return sum(disk.open(f"{PATH}/{name}").size() for name in disk.list(PATH) if name.endswith(".log"))


@given(sizes=st.lists(st.integers(0, 5_000), max_size=6), step_bytes=st.integers(1, 2_000))
def test_every_step_frees_a_bounded_amount_until_nothing_is_left(sizes: list[int], step_bytes: int) -> None:
    disk = SimDisk()
    for directory in ("/d", PATH):
        disk.make_directory(directory)
    disk.open(f"{PATH}/partition.metadata", create=True).pwritev([b"version: 0"], 0)
    for number, size in enumerate(sizes):
        disk.open(f"{PATH}/{log_name(number)}", create=True).pwritev([bytes(size)], 0)
    held = sum(sizes)
    steps = 1
    while not removal_step(disk, "/d", NAME, step_bytes):
        left = held_bytes(disk)
        assert held - step_bytes <= left < held
        held = left
        steps += 1
    assert held <= step_bytes and steps <= sum(sizes) // step_bytes + 1
    assert disk.list("/d") == []


def test_what_is_gone_already_is_gone() -> None:
    disk = SimDisk()
    disk.make_directory("/d")
    assert removal_step(disk, "/d", NAME, 1)
