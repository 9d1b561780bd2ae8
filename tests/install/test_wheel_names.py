"""Every name that an installation adds to a user's environment begins with quorumlog."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from quorumlog_cli import site_pages
from tests.install.real_environment import TEST_S, BuildTools
from tests.install.wheel_content import Wheel

pytestmark = pytest.mark.timeout(TEST_S)

OURS = "quorumlog"
OTHERS = {"pyspark_quorumlog.py": "Spark finds the format by this name"}
OTHER_SCRIPTS = {"ql": "the short name of the command"}
STAY_IN_THE_SOURCE = ("applications", "bench", "differential", "docs", "jepsen", "proto", "tests")


def foreign_names(entries: Iterable[str]) -> list[str]:
    """The top-level names of paths that neither begin with ours nor are excepted; a folder `.data` may go anywhere."""
    names = dict.fromkeys(entry.partition("/")[0] for entry in entries)
    return [
        name for name in names if name not in OTHERS and (not name.startswith(OURS) or name.endswith((".data", ".pth")))
    ]


def test_every_top_level_name_is_ours(wheel: Wheel) -> None:
    assert not foreign_names(wheel.entries)
    assert {entry.partition("/")[0] for entry in wheel.entries}.isdisjoint(STAY_IN_THE_SOURCE)
    assert OTHERS.keys() <= set(wheel.entries)


def test_every_script_is_ours(wheel: Wheel) -> None:
    groups = wheel.entry_points()
    assert set(groups) == {"console_scripts", "pytest11"}
    scripts = groups["console_scripts"]
    assert [name for name in scripts if not name.startswith(OURS)] == list(OTHER_SCRIPTS)
    assert set(groups["pytest11"]) == {OURS}
    assert all(target.startswith(OURS) for group in groups.values() for target in group.values())


def test_the_wheel_of_an_sdist_has_the_same_files(wheel: Wheel, tools: BuildTools, sdist: Path, work: Path) -> None:
    assert sdist.name.startswith(OURS)
    assert sorted(Wheel(tools.wheel(sdist, work / "wheel of the sdist")).entries) == sorted(wheel.entries)


@pytest.mark.parametrize(
    ("entries", "want"),
    [
        (["quorumlog/a.py", "quorumlog_cli/b.py", "quorumlog-1.dist-info/RECORD", *OTHERS], []),
        (["quorumlog/a.py", "cli/main.py", "storage/log.py", "jepsen/a.py"], ["cli", "storage", "jepsen"]),
        (["quorumlog-1.data/data/etc/x"], ["quorumlog-1.data"]),
        (["quorumlog.pth", "LICENSE"], ["quorumlog.pth", "LICENSE"]),
    ],
)
def test_what_counts_as_foreign(entries: list[str], want: list[str]) -> None:
    assert foreign_names(entries) == want


PAGES = ("quorumlog_console/templates", "quorumlog_console/static")
DOCUMENTATION = "quorumlog_cli/pages/"
MAX_DOCUMENTATION_BYTES = 600_000  # before compression; a wheel is for nodes, too


def test_nothing_but_modules_and_their_types_is_in_the_packages(wheel: Wheel) -> None:
    """Data, examples and a forgotten output would be installed for everybody. The console has pages in two folders."""
    entries = [entry for entry in wheel.entries if not entry.startswith((wheel.metadata_folder, DOCUMENTATION))]
    packages = [Path(entry) for entry in entries]
    pages = [path for path in packages if str(path.parent) in PAGES]
    assert {path.suffix for path in pages} == {".html", ".css", ".js", ".svg"}
    assert {path.suffix for path in packages if path.name != "py.typed" and path not in pages} == {".py", ".pyi"}


def test_the_documentation_is_what_the_index_names(wheel: Wheel) -> None:
    carried = [entry.removeprefix(DOCUMENTATION) for entry in wheel.entries if entry.startswith(DOCUMENTATION)]
    named = [page.path.relative_to(site_pages.SOURCE).as_posix() for page in site_pages.pages(site_pages.SOURCE)]
    assert sorted(carried) == sorted([*named, site_pages.INDEX])
    texts = [wheel.text(f"{DOCUMENTATION}{name}") for name in carried]
    assert texts == [(site_pages.SOURCE / name).read_text() for name in carried]
    assert sum(map(len, texts)) < MAX_DOCUMENTATION_BYTES
