"""What the applications have in common: each is a function that raises where the application did not do its work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from applications.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Stage:
    """Where an application runs. cache: for its packages. folder: fresh, for its files and logs."""

    cluster: Cluster
    cache: Path
    folder: Path


@dataclass(frozen=True, slots=True)
class Application:
    """prepare: fetch its packages; raises Unavailable. run: raises `Failed`, AssertionError. about: what runs in it,
    and what is proved."""

    name: str
    about: str
    prepare: Callable[[Path], object]
    run: Callable[[Stage], None]
