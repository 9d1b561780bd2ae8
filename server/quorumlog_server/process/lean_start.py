"""Runs before a node's process loads anything else, to keep it from loading modules that it does not need.

kio registers its types with hypothesis, and structlog formats tracebacks with rich, if those are installed. Without
them three nodes on two processors started a third faster (and used 10 MB less each). A name that is None in sys.modules
cannot be imported, and both libraries then do without it. Only for a node's own process: a client's process or a test
may need these modules.

The garbage collector is off while modules load, because nearly all objects created then are kept.
"""

from __future__ import annotations

import gc
import sys

NOT_FOR_NODES = ("hypothesis", "rich")


def leave_out(*names: str) -> None:
    """Make these modules impossible to import from now on."""
    for name in names:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # documented by Python, unknown to the stubs


def load_no_more_than_needed() -> None:
    gc.disable()
    leave_out(*NOT_FOR_NODES)


def loaded() -> None:
    """Exclude everything loaded from later collections.

    No collection runs before that: it would take 30 ms for 0.7 MB, mostly the classes that dataclasses with slots
    replace.
    """
    gc.freeze()
    gc.enable()


def started(*, is_large: bool) -> None:
    """Collect the garbage of the start, and exclude the rest from later collections.

    is_large: the node holds thousands of partitions, and a full collection would stop it for a tenth of a second. Only
    the youngest garbage goes then; the rest of the start's garbage that is in cycles, less than a MB, stays.
    """
    gc.collect(1 if is_large else 2)
    gc.freeze()
