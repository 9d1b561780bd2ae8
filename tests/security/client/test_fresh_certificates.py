"""A client reads its certificates again when their files have changed, without a timer and without a stop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from quorumlog.client.security.certificates import FreshCertificates
from quorumlog.security.tls.files import RealFiles
from quorumlog.security.tls.reload import POLL_MS
from quorumlog.security.tls.settings import ClientTls
from tests.security.tls.certificates import DAY, NOW, Pair, authority, leaf

CA = authority()
HOUR_MS = 3_600_000


class World:
    def __init__(self, folder: Path) -> None:
        self.path, self.now_ms = folder / "ada.pem", 0
        self.wall_ms = int(NOW.timestamp() * 1000)
        (folder / "ca.pem").write_text(CA.pem)
        self.put(leaf(CA, "ada", not_after=NOW + DAY))
        tls = ClientTls(keystore_location=str(self.path), truststore_location=str(folder / "ca.pem"))
        self.certificates = FreshCertificates(tls, RealFiles(), lambda: self.wall_ms, lambda: self.now_ms)

    def put(self, pair: Pair) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(pair.key_pem() + pair.pem)
        new.replace(self.path)

    @property
    def number(self) -> int:
        return self.certificates.newest().number


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def later(world: World) -> None:
    world.now_ms += POLL_MS


def the_certificate_ends(world: World) -> None:
    world.wall_ms += 24 * HOUR_MS


def is_told(world: World) -> None:
    assert world.certificates.look()


@pytest.mark.parametrize("happens", [later, the_certificate_ends, is_told])
def test_new_files_are_the_next_generation(world: World, happens: Callable[[World], None]) -> None:
    first = world.certificates.newest()
    world.put(leaf(CA, "ada2"))
    assert world.certificates.newest() is first, "each connection would look at the files"
    happens(world)
    second = world.certificates.newest()
    assert (first.number, second.number) == (1, 2) and second.material != first.material
    assert second.context is not first.context


def test_damaged_files_change_nothing_and_are_told_of_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.path.write_text("none")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            later(world)
            assert world.number == 1
    assert [record.getMessage().startswith("the certificates in use stay") for record in caplog.records] == [True]
    world.put(leaf(CA, "ada2"))
    later(world)
    assert world.number == 2
