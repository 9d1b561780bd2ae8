"""The calls of a disk that the sweep knows: none may slip through."""

from __future__ import annotations

from pathlib import Path

import pytest

from jepsen.crash.coverage import UNREACHED
from jepsen.crash.sites import OTHERS, SEAM, Site, find_sites, production_sites
from jepsen.tree import ROOT

CODE = """
class Holder:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def made(self) -> File:
        return self._disk.open("x", create=True)

    def work(self) -> None:
        self.made().truncate(
            0
        )
        write_fully(file, "x", [], 0)
        {more}
"""


def tree(folder: Path, more: str, package: str = "storage") -> Path:
    for path, text in ((SEAM, (ROOT / SEAM).read_text()), (f"{package}/holder.py", CODE.format(more=more))):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def test_every_call_of_the_production_code_is_explained() -> None:
    assert production_sites().ambiguous == ()
    assert len(production_sites().found) > 90


def test_calls_are_found_by_their_receivers(tmp_path: Path) -> None:
    found = find_sites(tree(tmp_path, "self._disk.rename('a', 'b')"))
    assert found.ambiguous == ()
    assert [(site.line, site.method, site.creates, site.function) for site in found.found] == [
        (7, "open", True, "Holder.made"),
        (10, "truncate", False, "Holder.work"),
        (13, "write_fully", False, "Holder.work"),
        (14, "rename", False, "Holder.work"),
    ]


def test_a_call_of_several_lines_is_one_site(tmp_path: Path) -> None:
    sites = find_sites(tree(tmp_path, "pass"))
    site = sites.at("storage/holder.py", 11, "truncate")
    assert isinstance(site, Site) and str(site) == "storage/holder.py:10:truncate"
    assert sites.at("storage/holder.py", 14, "truncate") is None


@pytest.mark.parametrize(
    "more",
    [
        "opened = self._disk.open('x'); opened.pwritev([], 0)",
        "handle.sync()",
        "sync_later(self._disk.sync_directory)",
        "self.file.rename('y')",
        "ours.size()",
    ],
)
@pytest.mark.parametrize("package", ["storage", "broker"])
def test_a_receiver_that_nobody_knows_is_told(tmp_path: Path, more: str, package: str) -> None:
    found = find_sites(tree(tmp_path, more, package))
    assert len(found.ambiguous) == 1 and found.ambiguous[0].startswith(f"{package}/holder.py:14: ")


def test_a_field_that_has_the_name_of_a_method_is_no_call(tmp_path: Path) -> None:
    assert find_sites(tree(tmp_path, "return batch.size")).ambiguous == ()


def test_nothing_is_explained_that_is_not_there() -> None:
    text = "\n".join(
        path.read_text()
        for package in ("storage", "quorum", "broker", "server", "cli", "console")
        for path in sorted((ROOT / package).rglob("*.py"))
    )
    assert [name for name in OTHERS if f"{name}(" not in text and name not in text] == []
    places = {(site.file, site.function) for site in production_sites().found}
    assert [place for place in UNREACHED if place not in places] == []
