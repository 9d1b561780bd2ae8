"""`quorumlog _names KIND START WORD...`, which the completion scripts call: names that begin with START, one a line.

- It answers within BUDGET_S, or prints nothing; it never prints an error: what it writes stands in somebody's shell.
- A cluster is asked by a process of its own, which keeps what it finds for KEPT_S. Where it takes longer than the
  budget, the next key press has its names.
- A name with a character that a shell takes for its own is left out: it would have to be quoted, in each shell in
  another way, and clients choose names of groups.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from quorumlog_cli.completing.kinds import Names

BUDGET_S = 0.2  # beside the start of Python, so that a key press takes less than 300 ms
POLL_S = 0.01
KEPT_S = 10.0
MOST = 1_000  # names
_SAFE = re.compile(r"[A-Za-z0-9._%+/-]+=?")
_TARGET = {
    "-b": "-b",
    "--bootstrap-servers": "-b",
    "--bootstrap-server": "-b",
    "--profile": "--profile",
    "-X": "-X",
    "--command-config": "-X",
    "--data": "--data",
}


def answer(words: Sequence[str]) -> int:
    """words: the kind, the start of the name, and what was typed before it."""
    try:
        kind, start, *typed = words
        found = _names(Names(kind), typed)
        sys.stdout.write("".join(f"{name}\n" for name in offered(found, start)))
        sys.stdout.flush()
    except Exception:  # whatever it is: what is told here stands in the line that somebody types
        return 1
    return 0


def offered(names: Iterable[str], start: str) -> list[str]:
    """Those that may stand in a command line as they are, in order, MOST at most."""
    return sorted(one for one in dict.fromkeys(names) if one.startswith(start) and _SAFE.fullmatch(one))[:MOST]


def target_words(typed: Sequence[str]) -> list[str]:
    """The options by which a command line names its cluster, each before its value."""
    found: list[str] = []
    for index, word in enumerate(typed):
        name, equals, value = word.partition("=")
        if name in _TARGET and equals and word.startswith("--"):
            found += [_TARGET[name], value]
        elif word in _TARGET and index + 1 < len(typed):
            found += [_TARGET[word], typed[index + 1]]
    return found


def _names(kind: Names, typed: Sequence[str]) -> Iterable[str]:
    if kind in (Names.CONFIG_KEYS, Names.CONFIG_VALUES):
        from quorumlog.configs.topic import TOPIC_CONFIGS

        return [f"{key}=" if kind is Names.CONFIG_VALUES else key for key in TOPIC_CONFIGS]
    if kind is Names.PROFILES:
        from quorumlog_cli.profiles.profile_file import read_project, read_user

        return [*read_user().by_name, *read_project(Path.cwd()).by_name]
    target = target_words(typed)
    if kind is Names.NODES:
        from quorumlog_cli.connecting.find import find_nodes

        data = next((Path(target[at + 1]) for at, word in enumerate(target) if word == "--data"), None)
        return map(str, find_nodes(data).ids)
    return kept_or_asked(_place(kind, target), lambda place: _ask(kind, target, place), time.time, time.sleep)


def kept_or_asked(
    place: Path, ask: Callable[[Path], object], now: Callable[[], float], sleep: Callable[[float], object]
) -> list[str]:
    """What is kept in `place` if it is young enough; else `ask` is called once, and waited for as the budget allows.

    now: seconds, by the clock of the file system.
    """
    began = now()
    asked = False
    while True:
        if place.is_file() and began - place.stat().st_mtime < KEPT_S:
            return list(json.loads(place.read_text()))
        if not asked:
            ask(place)
            asked = True
        if now() - began >= BUDGET_S:
            return []
        sleep(POLL_S)


def _place(kind: Names, target: Sequence[str]) -> Path:
    """A file for each way to name a cluster from this directory."""
    from quorumlog_cli.profiles.profile_file import user_file

    seen = [kind.value, str(Path.cwd()), *target]
    seen += [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("QUORUMLOG_")]
    folder = user_file(os.environ).parent / "names"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"{hashlib.sha256(json.dumps(seen).encode()).hexdigest()[:32]}.json"


def _ask(kind: Names, target: Sequence[str], place: Path) -> None:
    """Starts a process that outlives this one and ends by itself (`asking.py`). Options may hold secrets: by a pipe."""
    asking = subprocess.Popen(
        [sys.executable, "-P", "-m", "quorumlog_cli.completing.asking"],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert asking.stdin is not None
    with asking.stdin:
        asking.stdin.write(json.dumps([kind.value, str(place), *target]).encode())
