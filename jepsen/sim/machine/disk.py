"""The simulated disk: `quorumlog_storage.files.disk.Disk` in memory, with a page cache that is lost in a power cut.

`crash(rng)` is a power cut of the machine; `kill()` is the end of a process while the machine stays up. Both invalidate
old handles; using one is an error of the simulation, not of the disk. Faults, latency and trace are functions passed
in; nothing here draws randomness or reads a clock.
"""

from __future__ import annotations

import errno
import hashlib
import random
from collections.abc import Callable, Mapping, Sequence

from jepsen.sim.machine.disk_faults import (
    READ_OPS,
    Fail,
    Fault,
    FaultPlan,
    Operation,
    OutOfMemory,
    PowerCut,
    PowerLost,
    ShortWrite,
    errno_of,
    no_faults,
)
from jepsen.sim.machine.hang import Hang
from jepsen.sim.machine.mounts import Mounts
from jepsen.sim.machine.page_cache import SECTOR_BYTES, DirectoryNode, FileNode, Node, Truncate, Write
from quorumlog_storage.files.clock_and_jitter import RollSources
from quorumlog_storage.files.disk import Buffer, DirectoryLocked, DiskError, FileMissing, name_of, parent_of
from quorumlog_storage.files.eviction import LogResources

Trace = Callable[[str, str, bytes], None]  # kind of operation, path, SHA-256 of the bytes written or read
Latency = Callable[[Operation], int]  # duration of one operation in nanoseconds

DEFAULT_CAPACITY_BYTES = 1 << 40
NAME_MAX = 255  # bytes of one name; ours are ASCII
OPEN_FILES_MAX, INDEX_BYTES_MAX = 3, 1_024


def _error(path: str, op: str, number: int) -> DiskError:
    return FileMissing(path, op) if number == errno.ENOENT else DiskError(path, op, number)


def _why_not_over(moving: Node, there: Node | None) -> int:
    """The number of the error with which a kernel refuses a rename over what is there; 0: it does not."""
    if there is None or there is moving:
        return 0
    if isinstance(there, DirectoryNode):
        if not isinstance(moving, DirectoryNode):
            return errno.EISDIR
        return errno.ENOTEMPTY if there.current else 0
    return errno.ENOTDIR if isinstance(moving, DirectoryNode) else 0


def _no_latency(operation: Operation) -> int:
    return 0


class SimDisk:
    """The disks of one machine. `faults` may be replaced at any time."""

    def __init__(
        self,
        *,
        faults: FaultPlan = no_faults,
        latency: Latency = _no_latency,
        trace: Trace | None = None,
        capacity_bytes: int = DEFAULT_CAPACITY_BYTES,
        sector_bytes: int = SECTOR_BYTES,
        case_insensitive: bool = False,
        rolls: RollSources = RollSources(),
    ) -> None:
        self.faults, self.latency, self.trace, self._rolls = faults, latency, trace, rolls
        self.capacity_bytes = capacity_bytes
        self.hang, self.mounts = Hang(), Mounts()
        self.operations = 0  # number of calls so far: the index of the next one
        self.life = 0  # grows with every kill and crash; handles of an earlier life are invalid
        self._fold = case_insensitive
        self._sector_bytes = sector_bytes
        self._root = DirectoryNode()
        self._latency_ns = 0
        self.locked: set[str] = set()  # paths; never iterated
        self.bounds = OPEN_FILES_MAX, INDEX_BYTES_MAX  # of the next process
        self.resources = LogResources(*self.bounds, self._rolls)

    @property
    def root(self) -> DirectoryNode:
        """For observers: reading it is not an operation."""
        return self._root

    def take_latency_ns(self) -> int:
        """Total duration in nanoseconds of all operations since the last call."""
        taken, self._latency_ns = self._latency_ns, 0
        return taken

    def kill(self) -> None:
        """The process ends: locks and handles are invalid, the page cache stays. Calls that hang never happen."""
        self.life += 1
        self.hang.forget()
        self.locked.clear()
        self.resources = LogResources(*self.bounds, self._rolls)

    def crash(self, rng: random.Random, survives: str | None = None) -> None:
        """Power cut: `rng` decides how much of the unsynced data is left. survives: see `DirectoryNode.power_cut`."""
        self.kill()
        self._root.power_cut(rng, self._sector_bytes, survives)

    def flip_bit(self, path: str, bit: int) -> None:
        """Bit rot: flips one bit of a file, in memory and on disk. bit: counted from the file's start."""
        node = self._file(path, "flip")
        for content in [held for held in (node.current, node.durable) if bit // 8 < len(held)]:
            content[bit // 8] ^= 1 << (bit % 8)

    def copy_of(self, path: str) -> dict[str, bytes]:
        """The files of a directory as a power cut would leave them, by name."""
        directory = self._directory(path, "copy")
        return {name: bytes(node.durable) for name, node in directory.durable.items() if isinstance(node, FileNode)}

    def put_back(self, path: str, files: Mapping[str, bytes]) -> None:
        """An operator replaces a directory's files by a copy, durably, while no process runs."""
        self._directory(path, "put back").put_back({name: FileNode.holding(files[name]) for name in sorted(files)})

    def replace(self) -> None:
        """An operator puts an empty disk in its place, while no process runs."""
        self.kill()
        self._root = DirectoryNode()

    def size_of(self, path: str) -> int:
        """Bytes of a file, for observers; 0 if there is none."""
        node = self._find(path)
        return len(node.current) if isinstance(node, FileNode) else 0

    def used_bytes(self) -> int:
        """Bytes of all files together, as readers see them."""
        return self._root.tree_bytes()

    # --- quorumlog_storage.files.disk.Disk ---

    def open(self, path: str, create: bool = False) -> SimFile:
        self._begin("open", path, op="create" if create else "open")
        node = self._made(path, "create") if create else self._file(path, "open")
        self._end("open", path)
        return SimFile(self, path, node)

    def list(self, path: str) -> list[str]:
        self._begin("list", path)
        names = sorted(self._directory(path, "list").current)
        self._end("list", path, "\n".join(names).encode())
        return names

    def exists(self, path: str) -> bool:
        self._begin("exists", path)
        return self._seen(path) is not None

    def is_directory(self, path: str) -> bool:
        self._begin("is_directory", path)
        return isinstance(self._seen(path), DirectoryNode)

    def identity(self, path: str) -> tuple[int, int]:
        self._begin("identity", path)
        return 0, self._node(path, "look-up").number

    def make_directory(self, path: str) -> None:
        self._begin("make_directory", path)
        parent = self._parent(path, "make directory")
        node = self._find(path)
        if isinstance(node, FileNode):
            raise DiskError(path, "make directory", errno.EEXIST)
        if node is None:
            parent.change({**parent.current, self._name(path): DirectoryNode()})
        self._end("make_directory", path)

    def rename(self, old: str, new: str) -> None:
        assert parent_of(old) == parent_of(new), f"rename between directories: {old} -> {new}"
        self._begin("rename", old)
        directory = self._parent(old, "rename")
        moving = self._node(old, "rename")
        if len(name_of(new)) > NAME_MAX:
            raise DiskError(old, "rename", errno.ENAMETOOLONG)
        reason = _why_not_over(moving, self._find(new))
        if reason:
            raise DiskError(old, "rename", reason)
        names = dict(directory.current)
        names[self._name(new)] = names.pop(self._name(old))
        directory.change(names)
        self._end("rename", old, new.encode())

    def copy_modified(self, source: str, target: str) -> None:
        self._begin("copy_modified", target)
        found, node = self._node(source, "look-up"), self._node(target, "set time")
        if isinstance(found, FileNode) and isinstance(node, FileNode):  # that of a directory is not kept
            node.modified = found.modified
        self._end("copy_modified", target)

    def unlink(self, path: str) -> None:
        self._begin("unlink", path)
        self._file(path, "unlink")
        self._drop(path)
        self._end("unlink", path)

    def remove_tree(self, path: str) -> None:
        self._begin("remove_tree", path)
        self._directory(path, "remove")
        self._drop(path)
        self._end("remove_tree", path)

    def sync_directory(self, path: str) -> None:
        self._begin("sync_directory", path)
        self._directory(path, "sync directory").sync()
        self._end("sync_directory", path)

    def read_bytes(self, path: str) -> bytes:
        content = bytes(self._file(path, "read").current)
        self._begin("read_bytes", path, len(content))
        self._end("read_bytes", path, content)
        return content

    def free_bytes(self, path: str) -> int:
        self._begin("free_bytes", path)
        self._node(path, "free space")
        return max(0, self.capacity_bytes - self.used_bytes())

    def total_bytes(self, path: str) -> int:
        self._begin("total_bytes", path)
        self._node(path, "size")
        return self.capacity_bytes

    def lock(self, path: str) -> SimLock:
        self._begin("lock", path)
        if path in self.locked:
            raise DirectoryLocked(path)
        self._made(path, "lock")
        self.locked.add(path)
        self._end("lock", path)
        return SimLock(self, path)

    # --- one operation ---

    def _begin(self, kind: str, path: str, size: int = 0, op: str = "") -> Fault | None:
        """Count the call, add its latency, and ask for a fault. Raises the fault; returns that of a write or sync.

        op: what an error calls it, where its kind does not say so.
        """
        operation = Operation(self.operations, kind, path, size)
        self.operations += 1
        self._latency_ns += self.latency(operation)
        fault = self.faults(operation)
        if kind in ("pwritev", "sync") or fault is None:
            return fault
        if isinstance(fault, OutOfMemory):
            raise MemoryError(f"{kind} {path}")
        if isinstance(fault, PowerCut):
            raise PowerLost(f"operation {operation.index}: {kind} {path}")
        raise DiskError(path, op or READ_OPS.get(kind, kind), errno_of(fault), "injected")

    def _end(self, kind: str, path: str, payload: Buffer = b"") -> None:
        if self.trace is not None:
            self.trace(kind, path, hashlib.sha256(payload).digest())

    # --- names ---

    def _name(self, path: str) -> str:
        name = name_of(path)
        return name.casefold() if self._fold else name

    def _find(self, path: str) -> Node | None:
        """None: there is nothing at that path, for whatever reason."""
        found = self._walk(path)
        return None if isinstance(found, int) else found

    def _walk(self, path: str) -> Node | int:
        """The node, or the number of the error with which a kernel answers."""
        node: Node | None = self._root
        if self.mounts and (seen := self.mounts.seen_at(path)) is not None:
            node, path = seen
        for name in path.split("/"):
            if name in ("", "."):
                continue
            if node is None:
                return errno.ENOENT
            if not isinstance(node, DirectoryNode):
                return errno.ENOTDIR
            if len(name) > NAME_MAX:
                return errno.ENAMETOOLONG
            node = node.current.get(name.casefold() if self._fold else name)
        return errno.ENOENT if node is None else node

    def _node(self, path: str, op: str) -> Node:
        found = self._walk(path)
        if isinstance(found, int):
            raise _error(path, op, found)
        return found

    def _seen(self, path: str) -> Node | None:
        """None: nothing is there. Raises DiskError for a path that cannot be."""
        found = self._walk(path)
        if not isinstance(found, int):
            return found
        if found not in (errno.ENOENT, errno.ENOTDIR):
            raise DiskError(path, "look-up", found)
        return None

    def _directory(self, path: str, op: str) -> DirectoryNode:
        node = self._node(path, op)
        if not isinstance(node, DirectoryNode):
            raise DiskError(path, op, errno.ENOTDIR)
        return node

    def _file(self, path: str, op: str) -> FileNode:
        node = self._node(path, op)
        if not isinstance(node, FileNode):
            raise DiskError(path, op, errno.EISDIR)
        return node

    def _parent(self, path: str, op: str) -> DirectoryNode:
        """The directory in which a name is made or changed. An error names the whole path, as a kernel's call does."""
        found = self._walk(parent_of(path))
        if isinstance(found, int):
            raise _error(path, op, found)
        if not isinstance(found, DirectoryNode):
            raise DiskError(path, op, errno.ENOTDIR)
        if len(name_of(path)) > NAME_MAX:
            raise DiskError(path, op, errno.ENAMETOOLONG)
        return found

    def _made(self, path: str, op: str) -> FileNode:
        """The file, which is made unless it is there."""
        directory = self._parent(path, op)
        if self._find(path) is None:
            directory.change({**directory.current, self._name(path): FileNode()})
        return self._file(path, op)

    def _drop(self, path: str) -> None:
        directory = self._directory(parent_of(path), "remove")
        directory.change({name: node for name, node in directory.current.items() if name != self._name(path)})


class SimFile:
    """An open file of a SimDisk. Like a descriptor, it stays valid after `path`, its name, is removed."""

    def __init__(self, disk: SimDisk, path: str, node: FileNode) -> None:
        self._disk, self.path, self._node = disk, path, node
        self.number = node.number  # of its file, whatever its name is by now
        self._life = disk.life
        self._open = True

    @property
    def is_open(self) -> bool:
        return self._open and self._life == self._disk.life

    def pread(self, position: int, length: int) -> bytes:
        self._begin("pread", length)
        self._check_not_negative("read", position, length)
        data = bytes(self._node.current[position : position + length])
        self._disk._end("pread", self.path, data)
        return data

    def pwritev(self, buffers: Sequence[Buffer], position: int, *, read_soon: bool = True) -> int:
        data = b"".join(buffers)
        fault = self._begin("pwritev", len(data))
        self._check_not_negative("write", position)
        written = self._room(len(data))
        match fault:
            case OutOfMemory():
                if fault.done:
                    self._write(data, position)
                raise MemoryError(f"pwritev {self.path}")
            case Fail():
                raise DiskError(self.path, "write", fault.errno, "injected")
            case ShortWrite():
                written = min(written, fault.written)
            case PowerCut():
                self._write(data if fault.written < 0 else data[: fault.written], position)
                raise PowerLost(f"pwritev {self.path}")
            case None:
                pass
        self._write(data[:written], position)
        if data and not written and not isinstance(fault, ShortWrite):
            raise DiskError(self.path, "write", errno.ENOSPC)
        return written

    def begin_sync(self) -> None:
        """Does nothing: a power cut decides anyway which unsynced data reaches the disk. Nor does `reserve`, a hint."""

    def reserve(self, size: int) -> None: ...

    def sync(self) -> None:
        fault = self._begin("sync", 0)
        match fault:
            case OutOfMemory():
                if fault.done:
                    self._node.sync()
                raise MemoryError(f"sync {self.path}")
            case PowerCut():
                if fault.written < 0:
                    self._node.sync()
                raise PowerLost(f"sync {self.path}")
            case Fail() | ShortWrite():
                self._node.fail_sync()
                raise DiskError(self.path, "sync", errno_of(fault), "injected")
            case None:
                self._node.sync()
        self._disk._end("sync", self.path)

    def truncate(self, size: int) -> None:
        self._begin("truncate", 0)
        self._check_not_negative("truncate", size)
        self._node.change(Truncate(size))
        self._disk._end("truncate", self.path, str(size).encode())

    def drop_cached(self) -> None:
        self._begin("drop_cached", 0)
        if self._node.drop_cached():
            self._disk._end("drop_cached", self.path)

    def past_cache(self) -> SimFile:
        self._begin("past_cache", 0)
        return self

    def size(self) -> int:
        self._begin("size", 0)
        return len(self._node.current)

    def close(self) -> None:
        self._open = False

    def _begin(self, kind: str, size: int) -> Fault | None:
        assert self._life == self._disk.life, f"{kind} on {self.path}: its process is dead"
        assert self._open, f"{kind} on {self.path}: the file is closed"
        return self._disk._begin(kind, self.path, size)

    def _check_not_negative(self, op: str, *numbers: int) -> None:
        if min(numbers) < 0:
            raise DiskError(self.path, op, errno.EINVAL)

    def _room(self, wanted: int) -> int:
        if self._disk.capacity_bytes == DEFAULT_CAPACITY_BYTES:
            return wanted  # summing up every file at every write would cost more than the write
        return min(wanted, max(0, self._disk.capacity_bytes - self._disk.used_bytes()))

    def _write(self, data: bytes, position: int) -> None:
        if data:
            self._node.change(Write(position, data))
        self._disk._end("pwritev", self.path, data)


def file_at(disk: SimDisk, path: str, *, durable: bool) -> bytes | None:
    """A file's bytes as the disk shows them, or as a power cut would leave them; None if it does not exist."""
    above, _, name = path.rpartition("/")
    directory = directory_at(disk.root, above, durable=durable)
    if directory is None:
        return None
    node = (directory.durable if durable else directory.current).get(name)
    if not isinstance(node, FileNode):
        return None
    return bytes(node.durable if durable else node.current)


def names_in(disk: SimDisk, path: str, *, durable: bool = False) -> list[str]:
    """Of the files in a directory, as the disk shows it, or as a power cut would leave it; none if there is none."""
    directory = directory_at(disk.root, path, durable=durable)
    return [] if directory is None else sorted(directory.durable if durable else directory.current)


def directory_at(root: DirectoryNode, path: str, *, durable: bool) -> DirectoryNode | None:
    node = root
    for name in path.split("/"):
        if name:
            found = (node.durable if durable else node.current).get(name)
            if not isinstance(found, DirectoryNode):
                return None
            node = found
    return node


class SimLock:
    """A lock of a SimDisk. A crash or kill releases it."""

    def __init__(self, disk: SimDisk, path: str) -> None:
        self._disk, self._path, self._life = disk, path, disk.life

    def release(self) -> None:
        if self._life == self._disk.life:
            self._disk.locked.discard(self._path)
