"""The process of a cleaner: rounds come in as lines of JSON, their steps go out as lines of JSON.

A process of its own, so that the node's event loop and its writers never wait for the interpreter. It ends as soon as
its standard input does, within one step: then the node has ended, and another one may own the directory. It yields to
every other process of the machine (nice).

Started by `quorumlog_server/edge/cleaner_process.py`. Arguments: where the code is, and the form of the work with keys.

Which form of the work with keys a round takes (`quorumlog_storage/cleaning/keys.py`), `KeyForms` says: the plain one
from the first record on, the compiled one once it pays. The compiled form is about ten times as fast. But importing
Numba and loading the kernels from its cache takes as long as the plain form takes for some hundred thousand records,
and compiling them, once for a machine, as long as for two million. A process changes over at the first round with which
the records that it has seen would have paid for that. So a node with small compacted topics never imports Numba, and no
round takes more than about twice its best time.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from quorumlog_storage.cleaning.keys import Keys, KeysSpec, PlainKeys
from quorumlog_storage.cleaning.marks import Marks
from quorumlog_storage.cleaning.round import clean
from quorumlog_storage.cleaning.spec import GroupCleaned, Moved, RoundDone, RoundSpec
from quorumlog_storage.cleaning.throttle import Throttle
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.files.disk import Disk, DiskError, FileMissing
from quorumlog_storage.files.eviction import LogResources
from quorumlog_storage.segment.log_file import CorruptBatch

ROWS_BEFORE_LOADING = 200_000  # 0.5 s at about 2.5 us a record
ROWS_BEFORE_COMPILING = 2_000_000  # 4 s
LEAST_RECORD_BYTES = 32  # about: compaction leaves gaps, so there may be far fewer records than offsets
_KERNELS = "quorumlog_storage.cleaning.key_kernels"


class KeyForms:
    """rows: that the rounds so far had at most. is_compiled: None until the rows decide; set, it is one form only."""

    def __init__(self, is_compiled: bool | None = None) -> None:
        self.rows = 0
        self.is_compiled = is_compiled
        self.is_installed = find_spec("numba") is not None

    def count(self, spec: RoundSpec) -> None:
        """A round comes."""
        dirty = [(base, size) for base, size in spec.segments if base >= spec.first_dirty] or list(spec.segments[-1:])
        size = sum(size for _, size in dirty)
        before, self.rows = self.rows, self.rows + min(spec.end_offset - spec.first_dirty, size // LEAST_RECORD_BYTES)
        if self.is_compiled is None and self.is_installed and self._pays_now(before):
            self.is_compiled = True

    def __call__(self, spec: KeysSpec, marks: Marks) -> Keys:
        if not self.is_compiled:
            return PlainKeys(spec, marks)
        from quorumlog_storage.cleaning.compiled_keys import CompiledKeys

        return CompiledKeys(spec, marks)

    def _pays_now(self, before: int) -> bool:
        """before: rows before this round. The cache is looked for once."""
        if self.rows >= ROWS_BEFORE_COMPILING:
            return True
        return before < ROWS_BEFORE_LOADING <= self.rows and is_cached()


def is_cached() -> bool:
    """If Numba's cache beside the source holds the kernels. A cache at another place is found by loading only."""
    found = find_spec(_KERNELS)
    assert found is not None and found.origin is not None
    return any((Path(found.origin).parent / "__pycache__").glob("key_kernels.*.nbi"))


NICE = 10
OPEN_FILES = 64
INDEX_BYTES = 64 << 20
TOLD_EVERY_S = 0.1  # while nothing but bytes is moved
FORMS = {"either": None, "plain": False, "compiled": True}  # the second argument: see `KeyForms`

Message = list[Any]


def encode_spec(spec: RoundSpec) -> bytes:
    """One line."""
    values = dict(spec._asdict(), hash_key=spec.hash_key.hex())
    return json.dumps(values).encode() + b"\n"


def decode_spec(line: bytes) -> RoundSpec:
    values: dict[str, Any] = json.loads(line)
    values["hash_key"] = bytes.fromhex(values["hash_key"])
    for name in ("segments", "beyond", "producers"):
        values[name] = tuple(tuple(entry) for entry in values[name])
    return RoundSpec(**values)


def step_of(message: Message) -> Moved | GroupCleaned | RoundDone | Exception:
    """What a line of the process says."""
    kind, *values = message
    match kind:
        case "moved":
            return Moved(*values)
        case "group":
            sources, outputs, before, after = values
            return GroupCleaned(tuple(sources), tuple((base, size) for base, size in outputs), before, after)
        case "done":
            return RoundDone(*values)
        case "missing":
            return FileMissing(*values)
        case "disk":
            return DiskError(*values)
        case "corrupt":
            return CorruptBatch(*values)
    raise AssertionError(f"the cleaner's process says {message}")


class _Cleaner:
    def __init__(self, disk: Disk, forms: KeyForms) -> None:
        self._disk, self._forms = disk, forms

    def run(self) -> None:
        for line in sys.stdin.buffer:
            try:
                self._round(decode_spec(line))
            except FileMissing as error:
                _tell(["missing", error.path, error.op])
            except DiskError as error:
                _tell(["disk", error.path, error.op, error.errno])
            except CorruptBatch as error:
                _tell(["corrupt", error.path, error.position, error.reason])

    def _round(self, spec: RoundSpec) -> None:
        throttle, moved, told_s = Throttle(spec.bytes_per_s), 0, time.monotonic()
        self._forms.count(spec)
        for step in clean(self._disk, spec, self._forms):
            if isinstance(step, Moved):
                moved += step.size
                _end_with_the_node(throttle.delay_ms(step.size, time.monotonic() * 1000) / 1000)
                if time.monotonic() - told_s > TOLD_EVERY_S:
                    _tell(["moved", moved])
                    moved, told_s = 0, time.monotonic()
            elif isinstance(step, GroupCleaned):
                _tell(["group", *step])
            else:
                _tell(["done", *step])


def _end_with_the_node(delay_s: float) -> None:
    """Wait, and end the process if nobody is at the other end any more. Between rounds nothing else comes in."""
    readable, _, _ = select.select([sys.stdin], [], [], delay_s)
    if readable:
        os._exit(0)


def _tell(message: Message) -> None:
    sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    os.nice(NICE)
    _Cleaner(RealDisk(LogResources(OPEN_FILES, INDEX_BYTES)), KeyForms(FORMS[sys.argv[-1]])).run()


if __name__ == "__main__":
    main()
