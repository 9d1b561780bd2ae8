"""Certificates are renewed while a listener runs: one generation a change, and a bad pair changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.security.tls.contexts import client_context
from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.files import FileState, RealFiles
from quorumlog.security.tls.reload import POLL_MS, Certificates, Generation, keep_fresh
from quorumlog.security.tls.settings import ClientAuth, ClientTls, ServerTls
from tests.rules import rule
from tests.security.tls.certificates import DAY, NOW, Pair, authority, leaf
from tests.security.tls.handshake import Ends

NOW_MS = int(NOW.timestamp()) * 1000
DAY_MS = 86_400_000
KEYSTORE, TRUST = "/tls/node.pem", "/tls/ca.pem"
CA, NEXT_CA = authority(), authority()


def node(name: str = "node-1", dns: tuple[str, ...] = ("localhost",), issuer: Pair = CA, days: int = 30) -> Pair:
    return leaf(issuer, name, dns=dns, not_after=NOW + days * DAY)


def text(pair: Pair) -> str:
    return pair.key_pem() + pair.pem


FIRST, SECOND, THIRD = node(), node(), node()


class Shelf:
    """Files that somebody replaces. writing: called between a look at a file and its reading."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = dict(files)
        self._inode = 0
        self._states = {path: self._next(path) for path in files}
        self.writing: Callable[[], None] = lambda: None
        self.reads = 0

    def _next(self, path: str) -> FileState:
        self._inode += 1
        return FileState(0, len(self._files[path]), self._inode, path)

    def put(self, path: str, data: str) -> None:
        self._files[path] = data
        self._states[path] = self._next(path)

    def remove(self, path: str) -> None:
        del self._files[path], self._states[path]

    def read(self, path: str, most_bytes: int) -> bytes:
        self.reads += 1
        self.writing()
        if path not in self._files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self._files[path].encode()[:most_bytes]

    def state(self, path: str) -> FileState:
        if path not in self._states:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self._states[path]

    def others_read(self, path: str) -> bool:
        return False


class World:
    """A listener's certificates, its files and the time."""

    def __init__(self, **settings: bool) -> None:
        self.shelf = Shelf({KEYSTORE: text(FIRST), TRUST: CA.pem})
        self.now_ms = NOW_MS
        tls = ServerTls(
            keystore_location=KEYSTORE, truststore_location=TRUST, client_auth=ClientAuth.REQUESTED, **settings
        )
        self.certificates = Certificates(tls, self.shelf, lambda: self.now_ms)

    def shown(self) -> bytes:
        """The certificate that a client sees now."""
        client = client_context(ClientTls(truststore_certificates=CA.pem + NEXT_CA.pem))
        ends = Ends(self.certificates.generation.context, client)
        ends.shake()
        return ends.client.getpeercert(binary_form=True) or b""


def test_a_changed_pair_is_a_new_generation_with_a_context_of_its_own() -> None:
    world = World()
    first = world.certificates.generation
    assert first.number == 1 and world.certificates.look() is None and world.shown() == FIRST.der
    world.shelf.put(KEYSTORE, text(SECOND))
    second = world.certificates.look()
    assert second is not None and second.number == 2 and second is world.certificates.generation
    assert second.context is not first.context and world.shown() == SECOND.der
    assert world.certificates.look() is None and world.certificates.trouble is None


def test_nothing_is_read_while_nothing_has_changed() -> None:
    world = World()
    before = world.shelf.reads
    for _ in range(5):
        assert world.certificates.look() is None
    assert world.shelf.reads == before


def test_a_file_that_was_only_touched_is_no_new_generation() -> None:
    world = World()
    world.shelf.put(KEYSTORE, text(FIRST))
    assert world.certificates.look() is None and world.certificates.generation.number == 1
    before = world.shelf.reads
    assert world.certificates.look() is None and world.shelf.reads == before


@rule("security 1.27")
def test_an_authority_that_is_gone_is_trusted_no_longer() -> None:
    """A context only learns authorities, so a changed truststore needs a new one."""
    world = World()
    client = ClientTls(keystore_key=SECOND.key_pem(), keystore_chain=SECOND.pem, truststore_certificates=CA.pem)
    Ends(world.certificates.generation.context, client_context(client)).shake()
    world.shelf.put(TRUST, NEXT_CA.pem)
    assert world.certificates.look() is not None
    with pytest.raises(Exception, match="CERTIFICATE_VERIFY_FAILED"):
        Ends(world.certificates.generation.context, client_context(client)).shake()


BAD = [
    ("a key of another pair", SECOND.key_pem() + THIRD.pem, "is not that of the private key"),
    ("half a file", text(SECOND)[:-60], "a part of the text is missing"),
    ("nothing", "", "has no private key"),
    ("a chain in the wrong order", SECOND.key_pem() + SECOND.pem + NEXT_CA.pem, "is not issued by"),
    ("one that has expired", text(leaf(CA, "node-1", dns=("localhost",), not_after=NOW - DAY / 2)), "has expired"),
    ("one for another name", text(node("node-2")), "ssl.allow.dn.changes=true"),
    ("one without a name that clients use", text(node(dns=("elsewhere",))), "ssl.allow.san.changes=true"),
]


@pytest.mark.parametrize(("bad", "why"), [c[1:] for c in BAD], ids=[c[0] for c in BAD])
@rule("security 1.27")
def test_a_bad_pair_changes_nothing_and_says_why(bad: str, why: str) -> None:
    world = World()
    before = world.certificates.generation
    world.shelf.put(KEYSTORE, bad)
    for _ in range(3):
        assert world.certificates.look() is None
    assert world.certificates.generation is before and world.shown() == FIRST.der
    assert why in (world.certificates.trouble or "") and world.certificates.failures == 1
    world.shelf.put(KEYSTORE, text(SECOND))
    found = world.certificates.look()
    assert found is not None and found.number == 2 and world.certificates.trouble is None


def test_a_file_that_is_gone_for_a_moment_is_only_trouble() -> None:
    world = World()
    world.shelf.remove(KEYSTORE)
    assert world.certificates.look() is None and "cannot be read" in (world.certificates.trouble or "")
    world.shelf.put(KEYSTORE, text(FIRST))
    assert world.certificates.look() is None and world.certificates.trouble is None
    assert world.certificates.generation.number == 1


def test_a_pair_that_is_valid_later_is_taken_then() -> None:
    world = World()
    later = leaf(CA, "node-1", dns=("localhost",), not_before=NOW + DAY)
    world.shelf.put(KEYSTORE, text(later))
    assert world.certificates.look() is None and "check the clock" in (world.certificates.trouble or "")
    world.now_ms += 2 * DAY_MS
    assert world.certificates.look() is not None and world.certificates.trouble is None


def test_a_file_that_changes_while_it_is_read_is_read_again() -> None:
    world = World()
    world.shelf.put(KEYSTORE, text(SECOND))

    def write() -> None:
        world.shelf.writing = lambda: None
        world.shelf.put(KEYSTORE, text(THIRD))

    world.shelf.writing = write
    assert world.certificates.look() is None
    assert world.certificates.look() is not None and world.shown() == THIRD.der


def test_a_file_that_is_half_written_is_no_trouble() -> None:
    world = World()
    half = text(SECOND)[:-60]
    world.shelf.put(KEYSTORE, half)

    def write_on() -> None:
        world.shelf.writing = lambda: None
        world.shelf.put(KEYSTORE, half + "-")

    world.shelf.writing = write_on
    assert world.certificates.look() is None and world.certificates.trouble is None
    world.shelf.put(KEYSTORE, text(SECOND))
    assert world.certificates.look() is not None and world.certificates.failures == 0


def test_names_may_change_where_that_is_allowed_and_grow_anywhere() -> None:
    more = node(dns=("localhost", "new.example"))
    world = World()
    world.shelf.put(KEYSTORE, text(more))
    assert world.certificates.look() is not None
    world = World(allow_dn_changes=True, allow_san_changes=True)
    world.shelf.put(KEYSTORE, text(node("node-2", dns=("localhost",))))
    assert world.certificates.look() is not None
    world.shelf.put(KEYSTORE, text(node("node-2", dns=("other",))))
    assert world.certificates.look() is not None


def test_a_client_may_become_somebody_else() -> None:
    shelf = Shelf({KEYSTORE: text(leaf(CA, "ada"))})
    certificates = Certificates(ClientTls(keystore_location=KEYSTORE), shelf, lambda: NOW_MS)
    shelf.put(KEYSTORE, text(leaf(CA, "bob")))
    assert certificates.look() is not None


def test_a_start_has_nothing_older_to_go_on_with() -> None:
    tls = ServerTls(keystore_location=KEYSTORE)
    with pytest.raises(BadTls, match="is not that of the private key"):
        Certificates(tls, Shelf({KEYSTORE: SECOND.key_pem() + THIRD.pem}), lambda: NOW_MS)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["good", "same", "bad", "gone", "trust", "look"]), max_size=12))
def test_only_a_good_change_counts(steps: list[str]) -> None:
    """Beside a count by hand: the number of the generation is that of good changes seen, whatever came between."""
    world = World()
    pairs, at, number, in_use, on_disk, trusted = [FIRST, SECOND, THIRD], 0, 1, (FIRST.der, CA.pem), FIRST, CA.pem
    for step in [*steps, "look"]:
        if step == "good":
            at += 1
            on_disk = pairs[at % 3]
            world.shelf.put(KEYSTORE, text(on_disk))
        elif step == "same" and on_disk is not None:
            world.shelf.put(KEYSTORE, text(on_disk))
        elif step == "bad":
            world.shelf.put(KEYSTORE, text(SECOND)[:-60])
            on_disk = None  # type: ignore[assignment]
        elif step == "gone" and on_disk is not None:
            world.shelf.remove(KEYSTORE)
            on_disk = None  # type: ignore[assignment]
        elif step == "trust":
            trusted = CA.pem if trusted != CA.pem else CA.pem + NEXT_CA.pem
            world.shelf.put(TRUST, trusted)
        found = world.certificates.look()
        if on_disk is not None and (on_disk.der, trusted) != in_use:
            number, in_use = number + 1, (on_disk.der, trusted)
            assert found is not None
        else:
            assert found is None
        assert world.certificates.generation.number == number
        assert (world.certificates.trouble is None) == (on_disk is not None)


def test_a_mounted_secret_changes_by_its_links(tmp_path: Path) -> None:
    """As Kubernetes does it: the file is a link through a folder that is itself a link, and only that one changes."""
    for name, pair in (("one", FIRST), ("two", SECOND)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "node.pem").write_text(text(pair))
        (tmp_path / name / "node.pem").chmod(0o600)
    (tmp_path / "now").symlink_to("one")
    (tmp_path / "node.pem").symlink_to("now/node.pem")
    tls = ServerTls(keystore_location=str(tmp_path / "node.pem"))
    certificates = Certificates(tls, RealFiles(), lambda: NOW_MS)
    (tmp_path / "new").symlink_to("two")
    (tmp_path / "new").rename(tmp_path / "now")
    found = certificates.look()
    assert found is not None and found.material.leaf == SECOND.der


def test_the_shell_looks_every_ten_seconds_and_tells_each_trouble_once() -> None:
    world = World()
    happened: list[object] = []
    plan: list[Callable[[], None]] = [
        lambda: None,
        lambda: world.shelf.put(KEYSTORE, text(SECOND)),
        lambda: world.shelf.put(KEYSTORE, ""),
        lambda: None,
        lambda: world.shelf.put(KEYSTORE, text(THIRD)),
        lambda: world.shelf.put(KEYSTORE, ""),
        lambda: world.shelf.put(KEYSTORE, text(THIRD)),
        lambda: None,
    ]

    async def pause(ms: int) -> None:
        happened.append(ms)
        if len([one for one in happened if one == POLL_MS]) > len(plan):
            raise asyncio.CancelledError
        plan[len([one for one in happened if one == POLL_MS]) - 1]()

    async def aside(call: Callable[[], Generation | None]) -> Generation | None:
        return call()

    def on_new(generation: Generation) -> None:
        happened.append(f"generation {generation.number}")

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(
            keep_fresh(
                world.certificates, pause, aside, on_new, lambda why: happened.append(why[:21]),
                lambda: happened.append("as before"),
            )
        )  # fmt: skip
    p = POLL_MS
    refused = "ssl.keystore.location"
    assert happened == [p, p, "generation 2", p, refused, p, p, "generation 3", p, refused, p, "as before", p, p]
