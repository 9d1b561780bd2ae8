"""Which Java Spark gets, and the wrapper script for a reduced Java."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from quorumlog.spark.session.java import NoJava, find_java, java_version, parse_java_version, use_java, write_shim

VERSIONS = [
    ("17", 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime', 17),
    ("25, no dots", 'openjdk version "25" 2025-09-16', 25),
    ("8 by its old name", 'java version "1.8.0_392"', 8),
    ("early access", 'openjdk version "26-ea" 2026-03-17', 26),
    ("no Java", "Unable to locate a Java Runtime.", None),
]


@pytest.mark.parametrize(("text", "want"), [c[1:] for c in VERSIONS], ids=[c[0] for c in VERSIONS])
def test_versions(text: str, want: int | None) -> None:
    assert parse_java_version(text) == want


def fake_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nprintf '<%s>' \"$@\"\n")
    program.chmod(0o755)
    return program


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "a", "21.0.1")
    fake_java(tmp_path / "b", "17.0.1")
    path = f"{tmp_path / 'b' / 'bin'}:/usr/bin:/bin"
    found = find_java({"JAVA_HOME": str(tmp_path / "a"), "PATH": path})
    assert found is not None and (found.home, found.version, found.origin) == (tmp_path / "a", 21, "JAVA_HOME")
    found = find_java({"PATH": path})
    assert found is not None and (found.home, found.version) == (tmp_path / "b", 17)


def test_an_old_java_or_none_is_not_taken(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", "11.0.1")
    fake_java(tmp_path / "new", "17.0.1")
    assert find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(tmp_path)}) is None
    found = find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": f"{tmp_path / 'new' / 'bin'}:/bin"})
    assert found is not None and found.version == 17
    assert java_version(tmp_path / "nothing") is None


def test_without_any_java_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NoJava, match=r"quorumlog\[java\]"):
        use_java(tmp_path)


def test_the_wrapper_drops_the_one_flag_and_keeps_the_rest(tmp_path: Path) -> None:
    java = fake_java(tmp_path / "it's trimmed", "25")
    write_shim(tmp_path / "shim", java)
    asked = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b/*", "", "it's"]
    done = subprocess.run([tmp_path / "shim" / "bin" / "java", *asked], capture_output=True, text=True, check=True)
    assert done.stdout == "<-Xmx1g><-cp><a b/*><><it's>"
    assert java_version(tmp_path / "shim" / "bin" / "java") == 25
    assert os.listdir(tmp_path / "shim" / "bin") == ["java"]
