"""What a task has imported is left out of its process's search for garbage."""

from __future__ import annotations

import gc
import sys

_imported = 0  # modules, when this process last settled


def settle() -> None:
    """After a task, in a child of our daemon (`quorumlog.spark.daemon`); in any other process nothing is done.

    Only after a task that has imported something, so that what tasks leave behind is found later.
    """
    global _imported
    if len(sys.modules) > _imported and gc.get_freeze_count():  # which counts them one by one
        _imported = len(sys.modules)
        gc.collect()
        gc.freeze()
