"""What an index of packages and pipx ask of a distribution."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.install.real_environment import ROOT, TEST_S, Environment, run
from tests.install.wheel_content import Wheel

pytestmark = pytest.mark.timeout(TEST_S)


@pytest.mark.skipif(importlib.util.find_spec("twine") is None, reason="twine is part of the dev extra")
def test_twine_finds_nothing_wrong(wheel: Wheel, sdist: Path) -> None:
    said = run([sys.executable, "-m", "twine", "check", "--strict", wheel.path, sdist], "twine", folder=sdist.parent)
    assert said.count("PASSED") == 2 and "WARNING" not in said


def test_commands_run_from_elsewhere_as_pipx_links_them(environment: Environment, tmp_path: Path) -> None:
    """pipx makes an environment for the one distribution, and links its commands into a folder of the path."""
    links = tmp_path / "bin"
    links.mkdir()
    for name in ("quorumlog", "ql"):
        (links / name).symlink_to(environment.script(name))
        path = {"PATH": f"{links}:/usr/bin:/bin"}
        said = run([name, "storage", "random-uuid"], f"{name} by a link", folder=tmp_path, more=path)
        assert len(said.strip()) == 22
    (tmp_path / "server.properties").write_text("node.id=1\ncontroller.quorum.voters=1@127.0.0.1:9093\nlog.dirs=data\n")
    command = ["quorumlog", "server", "config", "lint", "-c", "server.properties"]
    assert "valid" in run(command, "lint by a link", folder=tmp_path, more=path)


def test_an_installation_has_the_documentation(environment: Environment, tmp_path: Path) -> None:
    command = environment.script("quorumlog")
    assert "guarantees" in run([command, "docs"], "list the pages", folder=tmp_path)
    page = run([command, "docs", "errors"], "show a page", folder=tmp_path)
    assert page == (ROOT / "docs" / "errors.md").read_text()
