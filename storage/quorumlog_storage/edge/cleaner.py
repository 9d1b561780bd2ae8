"""The process of a cleaner: rounds come in as lines of JSON, their steps go out as lines of JSON.

A process of its own, so that the node's event loop and its writers never wait for the interpreter. It ends as soon as
its standard input does, within one step: then the node has ended, and another one may own the directory. It yields to
every other process of the machine (nice).

Started by `quorumlog_server/edge/cleaner_process.py`. Arguments: where the code is, and the form of the work with keys.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from typing import Any

from quorumlog_storage.cleaning.round import clean
from quorumlog_storage.cleaning.spec import GroupCleaned, Moved, RoundDone, RoundSpec
from quorumlog_storage.cleaning.throttle import Throttle
from quorumlog_storage.edge.cleaner_form import KeyForms
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.files.disk import Disk, DiskError, FileMissing
from quorumlog_storage.files.eviction import LogResources
from quorumlog_storage.segment.log_file import CorruptBatch

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
