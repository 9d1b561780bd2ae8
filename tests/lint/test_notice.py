"""NOTICE names each package that a user's installation brings, with its licence."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OF_USERS = {name: of for name, of in PROJECT["optional-dependencies"].items() if name not in ("test", "dev")}


@pytest.mark.parametrize(("extra", "packages"), [("", PROJECT["dependencies"]), *OF_USERS.items()])
def test_the_notice_names_it(extra: str, packages: list[str]) -> None:
    """extra: "" for what is always installed."""
    notice = (ROOT / "NOTICE").read_text()
    names = [re.split(r"[\[<>=!~; ]", package)[0] for package in packages]
    assert [name for name in names if not re.search(rf"\b{re.escape(name)}\b", notice)] == []
    assert not extra or f"[{extra}]" in notice
