"""The folder of the nights: state.json, the outputs of slices, and a lock, since two nights would undo each other."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jepsen.nightly.state import State, Unreadable, as_text, from_text

STATE, OUTPUTS, LOCK, BEFORE = "state.json", "slices", "lock", "before"


class Busy(Exception):
    """Another night runs in this folder."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Makes the folder. Raises Busy."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"another night runs in {folder}") from None
        yield


def read_state(folder: Path) -> State | None:
    """None: there is none yet. Raises Unreadable; the file is left as it is."""
    file = folder / STATE
    try:
        text = file.read_text()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(f"it cannot be read: {error}") from error
    return from_text(text)


def write_state(folder: Path, state: State) -> None:
    write_whole(folder / STATE, as_text(state))


def set_aside(folder: Path) -> Path | None:
    """Move the state and the outputs to a new folder in this one. None: there was nothing."""
    found = [folder / name for name in (STATE, OUTPUTS) if (folder / name).exists()]
    if not found:
        return None
    number = 1
    while (aside := folder / f"{BEFORE}-{number}").exists():
        number += 1
    aside.mkdir()
    for path in found:
        path.rename(aside / path.name)
    return aside


def write_whole(path: Path, text: str) -> None:
    """Readers, and a process that comes after a crash, see the old text or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".tmp")
    with new.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
