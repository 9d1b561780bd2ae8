"""docs/cves.md and the tests name the same flaws."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "cves.md"
NUMBER = re.compile(r"CVE-\d{4}-\d{4,}")
ROW = re.compile(r"^\| (CVE-\S+) \| [^|]+ \| [^|]+ \| (?:`(tests/[^`]+)`|([^`|].+)) \|$", re.MULTILINE)


def named_by(path: Path) -> set[str]:
    return set(NUMBER.findall(path.read_text()))


def test_each_row_has_its_test_or_says_why_there_is_none() -> None:
    rows = [(found[1], found[2]) for found in ROW.finditer(PAGE.read_text())]
    assert len(rows) == len({number for number, _ in rows}) == PAGE.read_text().count("\n| CVE-")
    for number, test in rows:
        if test:
            name, _, function = test.partition("::")
            text = (ROOT / name).read_text()
            assert number in text, f"{name} does not say {number}"
            assert not function or re.search(rf"def {function}\([^)]*\)[^:]*:\n    \"\"\"[^\"]*{number}", text), test


def test_each_number_of_a_test_has_a_row() -> None:
    rows = {found[1] for found in ROW.finditer(PAGE.read_text())}
    said = {number for path in (ROOT / "tests").rglob("*.py") for number in named_by(path)}
    assert said <= rows, f"write rows for {sorted(said - rows)}"
