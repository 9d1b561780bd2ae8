"""Descriptors out of the text of .proto files, by protoc in a process of its own, with a time limit.

protobuf has no parser of such text for Python; protoc comes with grpcio-tools. In a process of its own a text that
makes it crash or hang ends only that process. Files lie in a folder that is removed; -P: no code is loaded out of it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from quorumlog.schemas.errors import BadSchema, MissingPackage

TIMEOUT_S = 20.0  # of one run; it takes 0.1 s
MAX_TEXT_BYTES = 4 * 1024 * 1024
_NAME = re.compile(r"(?!-)(?!\.\.?(/|$))[\w.+@-]+(/(?!\.\.?(/|$))[\w.+@-]+)*", re.ASCII)


def compiled(name: str, texts: Mapping[str, str]) -> bytes:
    """The FileDescriptorSet of file `name` and what it imports. texts: by name, what is well known left out.

    Raises BadSchema, MissingPackage.
    """
    if find_spec("grpc_tools") is None:
        raise MissingPackage("grpcio-tools")
    if sum(map(len, texts.values())) > MAX_TEXT_BYTES:
        raise BadSchema(f"the schema and what it imports are longer than {MAX_TEXT_BYTES} signs")
    with tempfile.TemporaryDirectory(prefix="quorumlog-schema-") as folder:
        for one, text in texts.items():
            if not _NAME.fullmatch(one):
                raise BadSchema(f"{one!r:.200} is no name of a .proto file")
            path = Path(folder) / one
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="surrogatepass")
        return _run(folder, name)


def _run(folder: str, name: str) -> bytes:
    made = Path(folder) / ".set"  # no name of a file that was written: those begin otherwise
    program = "import sys; from grpc_tools import protoc; sys.exit(protoc.main(sys.argv))"
    well_known = Path(next(iter(find_spec("grpc_tools").submodule_search_locations or ()))) / "_proto"  # type: ignore[union-attr]
    command = [sys.executable, "-P", "-c", program, f"-I{folder}", f"-I{well_known}", "--include_imports",
               f"--descriptor_set_out={made}", name]  # fmt: skip
    try:
        ran = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise BadSchema(f"it was not compiled within {TIMEOUT_S:g} s") from None
    if ran.returncode != 0 or not made.exists():
        told = [
            one for one in ran.stderr.decode(errors="replace").replace(f"{folder}/", "").splitlines() if ": " in one
        ]
        said = "; ".join(told)[:500] or f"protoc ended with {ran.returncode}"
        raise BadSchema(f"it is no Protobuf schema: {said}")
    return made.read_bytes()
