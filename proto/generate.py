"""Runs protoc with our plugin and installs the generated files: `python proto/generate.py [--check]`.

--check generates into a temporary directory and compares. It exits with 1 and the names of stale files. It compares the
programs, not their layout, so that another release of ruff or protoc does not make a file stale.
"""

from __future__ import annotations

import argparse
import ast
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
MARK = "Written by `./dev proto`"  # in every generated module and in no hand-written one
STUB_HEADING = "# Types of the module beside this file, written by mypy-protobuf"


class ProtocFailed(Exception):
    """protoc failed. The message is its output."""


def generate(proto_root: Path, out: Path) -> list[Path]:
    """Generate every `<root>/v1/*.proto` below `proto_root` into `out`. Returns the files' paths relative to `out`.

    proto_root: the folder that imports are relative to. out: the folder that contains the package `<root>`.
    """
    sources = sorted(path.relative_to(proto_root).as_posix() for path in proto_root.glob("*/v1/*.proto"))
    if not sources:
        return []
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "out"
        made.mkdir()
        _protoc(proto_root, made, _launcher(Path(scratch)), sources)
        _flatten_stubs(made)
        _format(made)
        return _install(made, out)


def stale(proto_root: Path, out: Path) -> list[str]:
    """Files of `out` that differ from freshly generated ones, are missing, or should not exist."""
    with tempfile.TemporaryDirectory() as scratch:
        fresh = generate(proto_root, Path(scratch))
        changed = [str(path) for path in fresh if not _same(Path(scratch) / path, out / path)]
        expected = {str(path) for path in fresh}
        return sorted(changed + [str(path) for path in _generated_in(out) if str(path) not in expected])


def _protoc(proto_root: Path, made: Path, launcher: Path, sources: list[str]) -> None:
    """Runs all three generators at once. Type stubs are made for our own types only."""
    command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={proto_root}", f"--python_out={made}"]
    command += [f"--plugin=protoc-gen-ours={launcher}", f"--ours_out={made}", f"--mypy_out=quiet:{made}"]
    command += [f"--plugin=protoc-gen-mypy={Path(sys.executable).parent / 'protoc-gen-mypy'}", *sources]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise ProtocFailed(done.stderr.strip())


def _launcher(folder: Path) -> Path:
    """A script that protoc can execute: it runs our plugin with this interpreter."""
    path = folder / "protoc-gen-ours"
    path.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(HERE / 'gen' / 'plugin.py'))}\n")
    path.chmod(0o755)
    return path


def _flatten_stubs(made: Path) -> None:
    """Move `<root>/v1/x_pb2.py` to `<root>/rpc/pb/`, where the library keeps protobuf, and adjust the imports."""
    for path in sorted(made.glob("*/v1/*_pb2.py*")):
        root = path.relative_to(made).parts[0]
        text = re.sub(rf"\b{root}\.v1\b(?= import|\.\w+_pb2)", f"{root}.rpc.pb", path.read_text())
        text = re.sub(rf"^import {root}\.rpc\.pb\.(\w+)$", rf"from {root}.rpc.pb import \1", text, flags=re.M)
        text = re.sub(rf"\b{root}\.rpc\.pb\.(\w+_pb2)\b", r"\1", text)
        if path.suffix == ".pyi":
            text = f"{STUB_HEADING} {version('mypy-protobuf')}.\n{text}"
        target = made / root / "rpc" / "pb" / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        path.unlink()


def _format(made: Path) -> None:
    """Format our own modules with ruff. Without ruff they stay unformatted.

    ruff changes only the layout, never code or docstrings, so --check finds the same stale files without it.
    """
    ruff = _formatter()
    if ruff is None:
        return
    ours = [str(path) for path in sorted(made.rglob("*.py")) if not path.name.endswith("_pb2.py")]
    config = str(HERE.parent / "pyproject.toml")
    for verb in (["check", "--fix", "--select", "I", "-q"], ["format", "-q"]):
        subprocess.run([str(ruff), *verb, "--config", config, "--no-cache", *ours], check=True, timeout=60)


def _formatter() -> Path | None:
    """ruff beside this interpreter. Only the development environment has it, that of the tests does not."""
    ruff = Path(sys.executable).parent / "ruff"
    return ruff if ruff.exists() else None


def _install(made: Path, out: Path) -> list[Path]:
    """Copy new and changed files, so that an unchanged file keeps its timestamp. Remove files not generated now."""
    paths = [path.relative_to(made) for path in sorted(made.rglob("*.py*"))]
    for path in paths:
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        text = (made / path).read_bytes()
        if not target.exists() or target.read_bytes() != text:
            target.write_bytes(text)
    for path in _generated_in(out):
        if path not in paths:
            (out / path).unlink()
    return paths


def _generated_in(out: Path) -> Iterator[Path]:
    """Modules below `out` that an earlier run generated."""
    for root in sorted(path.name for path in out.iterdir() if (path / "messages").is_dir()):
        stubs = (out / root / "rpc" / "pb").glob("*_pb2.py*")
        modules = [*(out / root / "messages").glob("*.py"), *(out / root / "rpc" / "convert").glob("*.py")]
        for path in sorted([*stubs, *(path for path in modules if MARK in path.read_text())]):
            yield path.relative_to(out)


def _same(fresh: Path, old: Path) -> bool:
    if not old.exists():
        return False
    if fresh.suffix == ".pyi" and _first_line(fresh) != _first_line(old):
        return True  # another release of mypy-protobuf writes different stubs for the same schema
    return _program(fresh) == _program(old)


def _first_line(path: Path) -> str:
    return path.read_text().partition("\n")[0]


def _program(path: Path) -> str:
    """A module's code and docstrings, without its layout, the order of its imports, and the protoc release.

    Docstrings are compared exactly, so the generator itself must write them as ruff formats them.
    """
    tree = ast.parse(path.read_text())
    imports: list[str] = []
    others: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            imports += [f"{node.module} {name.name} {name.asname}" for name in node.names]
        elif "ValidateProtobufRuntimeVersion" not in ast.dump(node):
            others.append(ast.dump(node))
    return "\n".join(sorted(imports) + others)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev proto", description="Generate messages, converters and stubs.")
    parser.add_argument("--check", action="store_true", help="compare only; exit with 1 and name the stale files")
    check = parser.parse_args(argv).check
    try:
        if not check:
            print(f"{len(generate(HERE, HERE.parent))} files")
            return 0
        outdated = stale(HERE, HERE.parent)
    except ProtocFailed as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(f"stale: {path}" for path in outdated) or "generated files are fresh")
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
