"""Imports each module that a file names, one a line, and prints as JSON which of them failed: name and message.

Run by the Python of another environment, so it imports nothing but the standard library.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path


def failures(names: list[str]) -> dict[str, list[str]]:
    """By module: the top-level name that was missing, or `""`, and the message."""
    found: dict[str, list[str]] = {}
    for name in names:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            found[name] = [(error.name or "").partition(".")[0], str(error)]
        except (Exception, SystemExit) as error:
            found[name] = ["", f"{type(error).__name__}: {error}"]
    return found


if __name__ == "__main__":
    print(json.dumps(failures(Path(sys.argv[1]).read_text().split())))
