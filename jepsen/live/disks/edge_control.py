"""How a live run tells a node's faulting disk what to do, and how the disk tells what it did: two small files.

The run writes `order.json` into the node's folder and reads `struck` there. Both are replaced as a whole, so a reader
never sees a part of one. `struck_disk.py` is the other side.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from jepsen.live.plan import Blow, Step

ORDER = "order.json"
STRUCK = "struck"
SLOWLY = "SLOWLY"  # each call takes SLOW_S longer, and succeeds
NEARLY = "NEARLY"  # little space is left, and more than any reserve


@dataclass(frozen=True, slots=True)
class Order:
    """blow: a name of Blow or Step, or one of SLOWLY and NEARLY; empty for none. directory: calls on paths below it
    are struck."""

    blow: str = ""
    directory: str = ""


def write_whole(path: Path, text: str) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text)
    temporary.replace(path)


def ordered(folder: Path, order: Order) -> None:
    write_whole(folder / ORDER, json.dumps(asdict(order)))


def read_order(folder: Path) -> Order:
    try:
        return Order(**json.loads((folder / ORDER).read_text()))
    except FileNotFoundError:
        return Order()


class EdgeFault:
    """One blow at one directory of one node, from construction to `end`."""

    def __init__(self, blow: Blow | Step, folder: Path, directory: Path) -> None:
        self._folder = folder
        self._before = self._count()
        ordered(folder, Order(blow.name, str(directory)))

    def struck(self) -> int:
        """Calls of the disk that were struck until now."""
        return self._count() - self._before

    def end(self) -> None:
        ordered(self._folder, Order())

    def _count(self) -> int:
        """The file starts anew with each process of the node."""
        try:
            return int((self._folder / STRUCK).read_text())
        except FileNotFoundError:
            return 0
