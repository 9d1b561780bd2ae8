"""Certificates are renewed without a restart: when files have changed, and whether they may take the place of those in
use.

A file counts as changed by its times, size, inode or the target of its links, looked at every POLL_MS: notices of a
kernel get lost on some file systems. A new pair is taken only if its key fits, its chain is in order and none of it has
expired, and (a listener) if it speaks for the same name, as in Kafka (`ssl.allow.dn.changes`, KIP-978). Otherwise the
old one stays in use, and `trouble` says why until it is mended.

What is in use is a generation: one number, one context, one set of bytes for gRPC. A connection keeps the one it began
with, and a context is never changed.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from quorumlog.security.tls.contexts import client_context, server_context
from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.files import Files, FileState
from quorumlog.security.tls.material import Material, read_material
from quorumlog.security.tls.peer import read_alternative_names, read_subject
from quorumlog.security.tls.settings import DN_CHANGES, KEYSTORE, SAN_CHANGES, TRUSTSTORE, ClientTls, ServerTls

POLL_MS = 10_000

Signature = tuple[FileState | None, ...]


@dataclass(frozen=True, slots=True)
class Generation:
    """What is in use. number: from 1, and one more with each change."""

    number: int
    material: Material = field(repr=False)
    context: ssl.SSLContext = field(repr=False)


class Certificates:
    """Those of one listener or client. Reads `files` when it is told to look; has no thread and no timer."""

    def __init__(self, tls: ServerTls | ClientTls, files: Files, wall_ms: Callable[[], int]) -> None:
        """Raises BadTls: there is no older generation to go on with."""
        self._tls, self._files, self._wall_ms = tls, files, wall_ms
        self._seen = self._signature()
        self.trouble: str | None = None
        self.failures = 0  # changed files that were not taken, each counted once
        material = read_material(tls, files, wall_ms())
        self.generation = Generation(1, material, self._context(material))

    def look(self) -> Generation | None:
        """A new generation, if the files have changed and may be used. Files that were in trouble are read again each
        time, because time alone may mend it."""
        if self._signature() == self._seen and self.trouble is None:
            return None
        return self.read_again()

    def path_of(self, key: str) -> str | None:
        """key: KEYSTORE or TRUSTSTORE."""
        return {KEYSTORE: self._tls.keystore_location, TRUSTSTORE: self._tls.truststore_location}.get(key)

    def order(self, *, validate_only: bool = False) -> Generation | None:
        """An operator's order: the same without a look at what has changed. None: the files hold what is in use, or
        nothing was to be taken. Raises BadTls: what is in use stays."""
        before = self._signature()
        material = read_material(self._tls, self._files, self._wall_ms())
        if self._signature() != before:
            raise BadTls("somebody is writing the files: ask again")
        if material == self.generation.material:
            return None
        self._must_speak_for_the_same(material)
        return None if self._context(material) and validate_only else self.read_again()

    def read_again(self) -> Generation | None:
        """`look` without a look at what has changed."""
        before = self._signature()
        try:
            material = read_material(self._tls, self._files, self._wall_ms())
            if self._signature() != before:
                return None  # somebody is writing: the next look finds it changed
            if material == self.generation.material:
                self._seen, self.trouble = before, None
                return None
            self._must_speak_for_the_same(material)
            context = self._context(material)
        except BadTls as error:
            if self._signature() == before:  # else it is half written, which is no trouble
                self._note(str(error), before)
            return None
        self._seen, self.trouble = before, None
        self.generation = Generation(self.generation.number + 1, material, context)
        return self.generation

    def _note(self, trouble: str, signature: Signature) -> None:
        if trouble != self.trouble or signature != self._seen:
            self.failures += 1
        self._seen, self.trouble = signature, trouble

    def _signature(self) -> Signature:
        paths = (self._tls.keystore_location, self._tls.truststore_location)
        return tuple(self._state(path) for path in paths if path is not None)

    def _state(self, path: str) -> FileState | None:
        try:
            return self._files.state(path)
        except OSError:
            return None

    def _context(self, material: Material) -> ssl.SSLContext:
        if isinstance(self._tls, ServerTls):
            return server_context(self._tls, material)
        return client_context(self._tls, material)

    def _must_speak_for_the_same(self, material: Material) -> None:
        """Raises BadTls. Further names are no change; a name that is gone is one, as clients may know it."""
        tls, old = self._tls, self.generation.material
        if not isinstance(tls, ServerTls):
            return
        was, becomes = read_subject(old.leaf), read_subject(material.leaf)
        if was != becomes and not tls.allow_dn_changes:
            raise BadTls(
                f"{tls.chain_name}: the new certificate is for {becomes!r}, the one in use for {was!r}: put the right "
                f"one there, or set {tls.prefix}{DN_CHANGES}=true"
            )
        missing = set(read_alternative_names(old.leaf)) - set(read_alternative_names(material.leaf))
        if missing and not tls.allow_san_changes:
            raise BadTls(
                f"{tls.chain_name}: the new certificate lacks {len(missing)} of the alternative names of that in use: "
                f"issue it with all of them, or set {tls.prefix}{SAN_CHANGES}=true"
            )


async def keep_fresh(
    certificates: Certificates,
    pause: Callable[[int], Awaitable[object]],
    aside: Callable[[Callable[[], Generation | None]], Awaitable[Generation | None]],
    on_new: Callable[[Generation], None],
    on_trouble: Callable[[str], None],
    on_mended: Callable[[], None] = lambda: None,
) -> None:
    """Look every POLL_MS until cancelled. pause: waits so many milliseconds, less if an operator wants it sooner.
    aside: calls where a slow disk stops nobody. on_trouble: once for each reason. on_mended: the trouble is over, and
    the files hold what is in use."""
    told: str | None = None
    while True:
        await pause(POLL_MS)
        found = await aside(certificates.look)
        if found is not None:
            on_new(found)
        if certificates.trouble != told:
            told = certificates.trouble
            if told is not None:
                on_trouble(told)
            elif found is None:
                on_mended()
