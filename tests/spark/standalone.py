"""A standalone cluster of Spark for a test: a master and two workers, processes with one core and a folder each."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import py4j
import pyspark

from quorumlog.testing.waiting import wait_until

MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
WORKERS = 2
START_S, STOP_S = 120.0, 30.0
SYSTEM_PYTHON = "/usr/bin/python3"  # may be run by everybody, as one of a user's home may not
HIDDEN = ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "PYTHONPATH", "SPARK_HOME")


@dataclass(frozen=True, slots=True)
class Standalone:
    """master: its address. packages: all packages of this environment but ours. python: finds none by itself.
    shared: a folder into which the workers may write, too."""

    master: str
    packages: Path
    python: Path
    shared: Path


def python_for(user: str | None) -> str | None:
    """A Python like ours that this user can run; None: there is none. user: None is the one of this process."""
    if user is None:
        return sys.executable
    found = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for python in (sys.executable, SYSTEM_PYTHON):
        show = [python, "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        try:
            done = subprocess.run(show, user=user, capture_output=True, text=True, cwd="/", check=False)
        except OSError:  # it is not there, or we may not become this user, or it may not run it
            continue
        if done.stdout.strip() == found:
            return python
    return None


@contextmanager
def standalone(package: Path, *, user: str | None = None) -> Iterator[Standalone]:
    """package: the folder that has ours, for the workers. user: who they run as."""
    interpreter = python_for(user)
    assert interpreter is not None
    root = Path(tempfile.mkdtemp())  # whose parents everybody can pass, as those of pytest's folders cannot be
    running: list[subprocess.Popen[bytes]] = []
    try:
        root.chmod(0o755)
        shared = root / "shared"
        shared.mkdir(mode=0o777)
        shared.chmod(0o777)
        packages, python = _packages(root / "packages"), root / "python"
        python.write_text(f'#!/bin/sh\nexec "{interpreter}" -S "$@"\n')
        python.chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if name not in HIDDEN}
        environment |= {
            "PYTHONPATH": os.pathsep.join((str(package), str(packages))), "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_HOME": str(Path(pyspark.__file__).parent), "PYSPARK_PYTHON": str(python),
        }  # fmt: skip

        def start(name: str, *arguments: str) -> Path:
            """Its log."""
            folder = root / name
            folder.mkdir()
            if user is not None:
                shutil.chown(folder, user)
            log = root / f"{name}.log"
            own = {**environment, "SPARK_LOCAL_DIRS": str(folder), "TMPDIR": str(folder)}
            command = [str(Path(environment["SPARK_HOME"]) / "bin" / "spark-class"), *arguments]
            with log.open("wb") as output:
                running.append(
                    subprocess.Popen(
                        command, env=own, cwd=folder, stdout=output, stderr=output, user=user, start_new_session=True
                    )
                )
            return log

        log = start("master", MASTER, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = _said(r"(spark://127\.0\.0\.1:\d+)", log)
        for number in range(WORKERS):
            name = f"worker-{number}"
            own = ("--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", str(root / name), master)
            _said("(Successfully registered)", start(name, WORKER, "--host", "127.0.0.1", *own))
        yield Standalone(master, packages, python, shared)
    finally:
        _stop(running)
        shutil.rmtree(root, ignore_errors=True)


def driver_environment(cluster: Standalone, package: Path) -> Mapping[str, str]:
    """For a driver that has our package from this folder, and whose workers have theirs."""
    kept = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    path = os.pathsep.join((str(package), str(cluster.packages)))
    return {**kept, "PYTHONPATH": path, "PYSPARK_PYTHON": str(cluster.python), "SPARK_LOCAL_IP": "127.0.0.1"}


def _packages(folder: Path) -> Path:
    """Links to all packages but ours; to Spark's as this process has it, which may be of another version."""
    folder.mkdir()
    sparks = {Path(str(one.__file__)).parent for one in (py4j, pyspark)}
    for one in sparks:
        (folder / one.name).symlink_to(one)
    for place in {sysconfig.get_path(key) for key in ("purelib", "platlib")}:
        for one in Path(place).iterdir():
            if "quorumlog" not in one.name and one.suffix != ".pth" and not (folder / one.name).exists():
                (folder / one.name).symlink_to(one)
    return folder


def _said(pattern: str, log: Path) -> str:
    """What the log says in the end. Raises TimedOut."""

    def text() -> str:
        return log.read_text(errors="replace")

    return wait_until(lambda: re.search(pattern, text()), START_S, log.stem, lambda: text()[-1_000:])[1]


def _stop(running: list[subprocess.Popen[bytes]]) -> None:
    """The workers first: they end their executors."""
    for process in reversed(running):
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
