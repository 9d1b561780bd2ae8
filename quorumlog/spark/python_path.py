"""Lets Spark's Python processes start sooner, and spares each task work (daemon.py has the reasons).

Spark itself decides which Python modules its processes run, and only that of the workers can be set. But it hands its
own PYTHONPATH on to all of them, and Python runs a module named `sitecustomize` first: `early` is a folder with one.
"""

from __future__ import annotations

import os
from pathlib import Path

EARLY = str(Path(__file__).with_name("early"))  # a folder


def quick_start() -> None:
    """Call it before the session starts: it changes the PYTHONPATH of this process, which Java and Spark's Python
    processes take over. Where a session is there already, or Java is started elsewhere, it has no effect: there
    EARLY belongs onto the PYTHONPATH of who starts Spark."""
    os.environ["PYTHONPATH"] = with_early(os.environ.get("PYTHONPATH", ""))


def with_early(path: str) -> str:
    """A PYTHONPATH with the folder at its front, once."""
    return os.pathsep.join([EARLY, *(entry for entry in path.split(os.pathsep) if entry and entry != EARLY)])
