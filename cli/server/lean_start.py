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


def load_no_more_than_needed() -> None:
    gc.disable()
    for name in NOT_FOR_NODES:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


def loaded() -> None:
    """What was loaded stays, and is not looked at while the node starts (RELIABILITY 6.3, 23)."""
    gc.freeze()
    gc.enable()


def started() -> None:
    """Once in a node's life: drop what loading and starting left behind, and look at the rest no more."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
