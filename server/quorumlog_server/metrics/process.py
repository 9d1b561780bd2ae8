"""The process: what it is, since when it runs, what it takes of the machine.

RSS, processor time and descriptors have the names that each process has for Prometheus, so that dashboards for
processes fit. Linux tells them in /proc; elsewhere those of them that the system does not tell are missing.
"""

from __future__ import annotations

import gc
import os
import platform
import resource
from pathlib import Path
from typing import Final

from quorumlog import __version__
from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.series import Kind, Series

READY = Series("ready", Kind.GAUGE, "", (), "Does this node serve?")
BUILD = Series("build_info", Kind.GAUGE, "", ("version", "python"), "Which software runs? The value is 1.")
UPTIME = Series("uptime_seconds", Kind.GAUGE, "seconds", (), "Since when does it run?")
RSS = Series(
    "process_resident_memory_bytes", Kind.GAUGE, "bytes", (), "How much memory does the process take?",
    "java.lang:type=Memory", prefix="",
)  # fmt: skip
VIRTUAL = Series(
    "process_virtual_memory_bytes", Kind.GAUGE, "bytes", (), "How large is its address space?", prefix=""
)  # fmt: skip
CPU = Series(
    "process_cpu_seconds_total", Kind.COUNTER, "seconds", (), "How much processor time has it used?",
    "java.lang:type=OperatingSystem: ProcessCpuTime", prefix="",
)  # fmt: skip
FDS = Series(
    "process_open_fds", Kind.GAUGE, "", (), "How many files and sockets are open?",
    "java.lang:type=OperatingSystem: OpenFileDescriptorCount", prefix="",
)  # fmt: skip
MAX_FDS = Series(
    "process_max_fds", Kind.GAUGE, "", (), "How many may be?",
    "java.lang:type=OperatingSystem: MaxFileDescriptorCount", prefix="",
)  # fmt: skip
COLLECTIONS = Series(
    "python_gc_collections_total", Kind.COUNTER, "", ("generation",), "How often did the garbage collector run?",
    "java.lang:type=GarbageCollector: CollectionCount", prefix="",
)  # fmt: skip
COLLECTED = Series(
    "python_gc_objects_collected_total", Kind.COUNTER, "", ("generation",), "How many objects did it free?", prefix=""
)

SERIES: Final = (READY, BUILD, UPTIME, RSS, VIRTUAL, CPU, FDS, MAX_FDS, COLLECTIONS, COLLECTED)
_STATM = Path("/proc/self/statm")  # sizes in pages: all, resident, ...
_FDS = Path("/proc/self/fd")


def collect(source: Source, out: Reading) -> None:
    out.add(READY, source.node.ready)
    out.add(BUILD, 1, __version__, platform.python_version())
    out.add(UPTIME, source.watchdog.running_s)
    times = os.times()
    out.add(CPU, times.user + times.system)
    out.add(MAX_FDS, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    if _STATM.exists():
        size, resident = _STATM.read_text().split()[:2]
        out.add(VIRTUAL, int(size) * resource.getpagesize())
        out.add(RSS, int(resident) * resource.getpagesize())
        out.add(FDS, len(os.listdir(_FDS)))
    for generation, counts in enumerate(gc.get_stats()):
        out.add(COLLECTIONS, counts["collections"], str(generation))
        out.add(COLLECTED, counts["collected"], str(generation))
