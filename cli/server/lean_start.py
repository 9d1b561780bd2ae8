"""What a node's process does before it loads anything else: see to it that it loads what it needs, and no more.

kio registers its types with hypothesis, and structlog draws tracebacks with rich, wherever those are installed; three
nodes that start on two processors were a third faster without (10 MB each, too). A name that is None in sys.modules is
one that cannot be imported, and both libraries do without then. Only for a process of its own: not for a client's, or a
test's, which may want them.

Garbage is not looked for either while modules load: nearly all that is made there stays.
"""

from __future__ import annotations

import gc
import sys

NOT_FOR_NODES = ("hypothesis", "rich")


def leave_out(*names: str) -> None:
    """Of what is imported from now on."""
    for name in names:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # how Python writes it, unknown to the stubs


def load_no_more_than_needed() -> None:
    gc.disable()
    leave_out(*NOT_FOR_NODES)


def loaded() -> None:
    """What was loaded stays: no collection looks at it again (RELIABILITY 6.3, 23).

    Nor is one made now: it would take 30 ms to find 0.7 MB, mostly the classes that dataclasses with slots replace.
    """
    gc.freeze()
    gc.enable()


def started() -> None:
    """What the start made stays as well, without what it left behind."""
    gc.collect()
    gc.freeze()
