"""Every block of shell on every page is run by a test, or its commands are checked and a row here says why no more.

Blocks are those without a language, `console`, `sh` and `bash`. Commands of quorumlog anywhere on a page are checked by
test_commands_of_pages.py, those of `./dev` here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")))
    if path.relative_to(ROOT / "docs" if "docs" in path.parts else ROOT).parts[0] not in ("decisions", "rules")
)
INCLUDED = {"docs/jepsen.md": "jepsen/README.md"}  # a page whose text is another file
SHELL = ("", "console", "sh", "bash")
ALL = ""  # in place of a heading: every block of the page that no other row names

_OPERATIONS = "tests/live/test_operations_page.py::test_every_section_with_commands_is_followed_by_a_test"
_LONG = "each verb runs for minutes; CI or `./dev nightly` runs it"
# By page and heading: the test that runs every command of its blocks. A page that is not there needs no row.
RUN: dict[tuple[str, str], str] = {
    ("README.md", "First minutes"): "tests/live/test_readme.py::test_the_commands_of_the_first_minutes",
    ("docs/certificates.md", "The first ones"): "tests/live/test_short_blocks.py::test_the_first_certificates",
    ("docs/guides/applications.md", ALL): "tests/live/test_guide_pages.py::test_applications",
    ("docs/guides/operators.md", ALL): "tests/live/test_operators_page.py::test_the_page_does_what_it_says",
    ("docs/guides/spark.md", ALL): "tests/spark/test_spark_guide.py::test_every_block",
    ("docs/index.md", "quorumlog"): "tests/live/test_short_blocks.py::test_a_cluster_takes_them",
    ("docs/log-files.md", ALL): "tests/cli/test_log_files_page.py::test_a_command_of_the_page_runs",
    ("docs/operations.md", ALL): _OPERATIONS,
    ("docs/operations.md", "Find what is slow"): "tests/live/test_short_blocks.py::test_a_cluster_takes_them",
    ("docs/schemas.md", ALL): "tests/live/test_schemas_page.py::test_every_block",
    ("docs/security.md", "Who changed what"): "tests/live/test_short_blocks.py::test_a_cluster_takes_them",
    ("docs/tls-and-users.md", ALL): "tests/live/test_tls_and_users_page.py::test_the_page_does_what_it_says",
    ("docs/tutorial.md", ALL): "tests/live/test_tutorial_page.py::test_every_block",
}
# The same, for blocks whose commands are only checked: why they are not run.
ONLY_CHECKED: dict[tuple[str, str], str] = {
    ("CONTRIBUTING.md", ALL): _LONG,
    ("README.md", "Two commands"): "CI runs both, each in a clone of its own",
    ("README.md", "From Kafka's clients"): "Kafka's tool; tests/clients runs it with the same options",
    ("README.md", "Beyond the laptop"): "tests/live/test_operations_page.py formats and starts nodes in the same way",
    (
        "docs/deployment.md",
        "On hosts, by systemd",
    ): "they change a host; tests/packages/test_debian_root.py installs so",
    ("docs/operations.md", "Back up and restore"): "tests/live/test_backup_drill.py runs the same commands",
    ("docs/deployment.md", "An image"): "it needs Docker; tests/packages runs the setup and the root without it",
    ("docs/deployment.md", "On Kubernetes, by Helm"): "it needs a cluster; tests/packages/test_chart.py renders it",
    ("docs/deployment.md", "What is in it"): "tests/packages/test_software.py calls both",
    ("docs/jepsen.md", ALL): _LONG,
    ("docs/mirror.md", "Mirror"): "two clusters and Spark; tests/spark/test_mirror_command.py runs it",
    ("docs/spark.md", "How tasks fetch"): "tests/spark starts workers with this path",
    ("docs/spark.md", "Exactly once"): "names stand for a writer; tests/cli/test_spark_sink_commands.py calls them",
    ("docs/spark.md", "Loading into Parquet"): "it loads for ever; tests/spark/test_load_command.py ends it",
}
NO_SHELL = {  # blocks without a language that hold something else
    ("docs/configuration.md", "TLS and logins"),
    ("docs/configuration.md", "Certificates between nodes"),
}


@dataclass(frozen=True, slots=True)
class Block:
    """heading: of the part that it stands in. line: of its fence, counted from 1. text: between the fences."""

    page: str
    heading: str
    line: int
    language: str
    text: str


def blocks_of(page: str, text: str) -> Iterator[Block]:
    """All fenced blocks, those inside of lists too."""
    heading, fence, language, began, body = "", "", "", 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r"^ *(```+)(.*)$", line)
        if fence:
            if found and found[1] == fence and not found[2]:
                yield Block(page, heading, began, language, "\n".join(body))
                fence = ""
            else:
                body.append(line.strip())
        elif found:
            fence, language, began, body = found[1], found[2].strip(), number, []
        elif line.startswith("#"):
            heading = line.lstrip("# ")


def shell_blocks() -> list[Block]:
    found = []
    for page in PAGES:
        text = (ROOT / INCLUDED.get(page, page)).read_text()
        found += [one for one in blocks_of(page, text) if one.language in SHELL]
    return found


def row_of(block: Block) -> tuple[str, str] | None:
    keys = ((block.page, block.heading), (block.page, ALL))
    return next((key for key in keys if key in RUN or key in ONLY_CHECKED), None)


def unknown_verbs(text: str) -> list[str]:
    """Words behind `./dev` that are no verb."""
    found = []
    for line in text.splitlines():
        called = re.match(r"(?:\$ )?\./dev ([a-z-]+)((?: +[^ ]+)*)", line)
        if called and called[1] not in verbs():
            found.append(called[1])
    return found


def verbs() -> set[str]:
    usage = (ROOT / "dev").read_text().partition("<<'TEXT'")[2].partition("\nTEXT")[0]
    return set(re.findall(r"^  ([a-z-]+) ", usage, re.MULTILINE))


def test_every_block_of_shell_is_run_or_has_a_reason() -> None:
    missing = [
        f"{one.page}:{one.line} {one.heading}"
        for one in shell_blocks()
        if row_of(one) is None and (one.page, one.heading) not in NO_SHELL
    ]
    assert missing == []


def test_no_block_is_both_run_and_not() -> None:
    assert RUN.keys() & ONLY_CHECKED.keys() == set() == NO_SHELL & {*RUN, *ONLY_CHECKED}
    assert {key for key in NO_SHELL if key not in {(one.page, one.heading) for one in shell_blocks()}} == set()


def test_what_is_said_to_be_run_is_there() -> None:
    used = {row_of(one) for one in shell_blocks()}
    assert [key for key in RUN if (ROOT / key[0]).exists() and key[1] and key not in used] == []


@pytest.mark.parametrize("row", [key for key in RUN if (ROOT / key[0]).exists()], ids=" ".join)
def test_the_test_that_runs_it_is_there_and_names_the_page(row: tuple[str, str]) -> None:
    path, _, function = RUN[row].partition("::")
    text = (ROOT / path).read_text()
    assert not function or f"def {function}(" in text
    here = [text, *(one.read_text() for one in (ROOT / path).parent.glob("*_world.py"))]
    assert any(Path(row[0]).name in one for one in here) or Path(row[0]).stem == "README" or row[1] in text


def test_verbs_of_dev_exist() -> None:
    assert [(one.page, wrong) for one in shell_blocks() for wrong in unknown_verbs(one.text)] == []


def test_what_is_missing_is_found() -> None:
    text = "# A\n```console\n$ a\n```\n## B\n- x\n  ```\n  ./dev tset\n  ```\n```python\n# C\n```\n````\n```\n````\n"
    found = list(blocks_of("p.md", text))
    assert [(one.heading, one.language, one.text) for one in found] == [
        ("A", "console", "$ a"), ("B", "", "./dev tset"), ("B", "python", "# C"), ("B", "", "```"),
    ]  # fmt: skip
    assert (
        row_of(found[0]) is None and unknown_verbs(found[1].text) == ["tset"] and unknown_verbs("./dev test rest") == []
    )
    assert len(shell_blocks()) > 80
