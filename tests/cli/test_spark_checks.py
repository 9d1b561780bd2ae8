"""What `quorumlog spark doctor` says of Pythons, packages and errors, without Spark."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from quorumlog_cli import spark_checks
from quorumlog_cli.spark_checks import State, compiled_code, of_session, package, python_of_workers


def a_python(folder: Path, answer: str) -> dict[str, str]:
    """An environment whose workers' Python answers this."""
    program = folder / "python3"
    program.write_text(f"#!/bin/sh\necho '{answer}'\n")
    program.chmod(0o755)
    return {**os.environ, "PYSPARK_PYTHON": str(program)}


def test_the_own_python_is_right() -> None:
    found = python_of_workers({**os.environ, "PYSPARK_PYTHON": sys.executable})
    assert (found.state, found.advice) == (State.OK, "")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ('["3.9.1", true]', "their minor versions differ"),
        ('["{0}.{1}.99", false]', "without quorumlog"),
        ("nonsense", "does not run"),
    ],
)
def test_another_python_is_told(tmp_path: Path, answer: str, text: str) -> None:
    for number, own in enumerate(sys.version_info[:2]):
        answer = answer.replace(f"{{{number}}}", str(own))
    found = python_of_workers(a_python(tmp_path, answer))
    assert found.state is State.FAILED and text in found.found
    assert f"PYSPARK_PYTHON={sys.executable}" in found.advice


def test_the_pythons_may_differ_in_the_last_number(tmp_path: Path) -> None:
    own = ".".join(map(str, sys.version_info[:2]))
    assert python_of_workers(a_python(tmp_path, f'["{own}.99", true]')).state is State.OK


def test_a_python_that_is_not_there_is_told(tmp_path: Path) -> None:
    found = python_of_workers({**os.environ, "PYSPARK_PYTHON": str(tmp_path / "none")})
    assert found.state is State.FAILED and str(tmp_path / "none") in found.found


@pytest.mark.parametrize(
    ("name", "version", "state"),
    [
        ("pyspark", "3.5.1", State.FAILED),
        ("pyspark", "4.0.0", State.OK),
        ("pyspark", "4.10.0", State.OK),
        ("pandas", "2.3.0", State.OK),
        ("pandas", "3.0.0", State.WARNING),
        ("numpy", None, State.OK),
        ("pandas", None, State.OK),
        ("pyarrow", None, State.FAILED),
    ],
)
def test_packages(monkeypatch: pytest.MonkeyPatch, name: str, version: str | None, state: State) -> None:
    def installed(_: str) -> str:
        if version is None:
            raise spark_checks.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(spark_checks, "version", installed)
    found = package(name)
    assert found.state is state
    assert bool(found.advice) == (state is not State.OK)


@pytest.mark.parametrize(
    ("answer", "state", "text"),
    [
        ("/var/cache/x", State.OK, "kept in /var/cache/x"),
        ("", State.WARNING, "kept nowhere"),
    ],
)
def test_the_place_of_compiled_code(tmp_path: Path, answer: str, state: State, text: str) -> None:
    found = compiled_code(a_python(tmp_path, answer))
    assert found.state is state and text in found.found
    assert ("NUMBA_CACHE_DIR" in found.advice) == (state is not State.OK)


def test_a_python_that_cannot_say_where_compiled_code_is(tmp_path: Path) -> None:
    found = compiled_code({**os.environ, "PYSPARK_PYTHON": str(tmp_path / "none")})
    assert found.state is State.WARNING and "does not say where" in found.found


class Session:
    """One that began before the package was installed: Spark has looked, and finds nothing by the name."""

    version = "4.3.0"

    class sparkContext:
        master = "local[2]"

    class conf:
        @staticmethod
        def get(name: str, default: str) -> str:
            return default

    @property
    def read(self) -> Any:
        raise RuntimeError("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: quorumlog.")


def test_a_session_that_does_not_find_the_format_has_to_be_started_anew() -> None:
    found = {one.check: one for one in of_session(Session())}
    assert found["format"].state is State.FAILED and "DATA_SOURCE_NOT_FOUND" in found["format"].found
    assert "start a new session" in found["format"].advice


def test_the_cause_is_told_and_not_the_calls() -> None:
    text = (
        "[PYTHON_DATA_SOURCE_ERROR] Failed\nTraceback (most recent call last):\n  File ...\n"
        "ValueError: no\n\nDuring handling\n\nquorumlog.client.errors.Unavailable: 10.0.0.1:9092 does not answer\n"
    )
    told = spark_checks._first_line(RuntimeError(text))
    assert told == "quorumlog.client.errors.Unavailable: 10.0.0.1:9092 does not answer"
