"""SIGTERM ends a benchmark as an error does, so that it stops its nodes: they have sessions of their own."""

from __future__ import annotations

import signal
import sys


def exit_on_sigterm() -> None:
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
