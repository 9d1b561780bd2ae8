"""`./dev spark-versions` counts a version only if it ran, and if all of its tests passed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.spark.versions import (
    LEAST,
    NEEDS_FILTERS,
    NEEDS_LIMITS,
    RAN,
    ROOT,
    Failed,
    allowed,
    may_skip,
    passed,
    requirement,
)

PYPROJECT = '[project.optional-dependencies]\nspark = ["quorumlog[arrow]", "pyspark>=4.1"]\n'


def report(version: str | None, *, good: int = LEAST, bad: str = "", skipped: Sequence[str] = ()) -> str:
    """A report as pytest writes it. version: None: no session ran. skipped: the reasons."""
    told = f'<properties><property name="{RAN}" value="{version}"/></properties>' if version else ""
    skips = [f'<testcase name="left"><skipped type="pytest.skip" message="{why}"/></testcase>' for why in skipped]
    cases = '<testcase name="good"/>' * good + "".join(skips)
    return f'<testsuites><testsuite name="pytest">{told}{cases}{bad}</testsuite></testsuites>'


def test_all_versions_that_are_allowed_are_tried_oldest_first() -> None:
    offered = ["4.10.0", "4.2.0", "4.1.0", "4.0.5", "3.5.9", "4.3.0.dev1"]
    assert allowed(requirement(PYPROJECT), offered) == ["4.1.0", "4.2.0", "4.10.0"]


def test_no_version_is_no_success() -> None:
    with pytest.raises(SystemExit, match=r"offers no version of pyspark>=4\.1"):
        allowed(requirement(PYPROJECT), ["4.0.5"])


def test_the_requirement_is_read_from_the_project() -> None:
    assert str(requirement((ROOT / "pyproject.toml").read_text()).specifier)


def test_tests_that_passed_are_counted() -> None:
    assert passed(report("4.1.0", good=LEAST + 5, skipped=[NEEDS_LIMITS, "no mvn"]), "4.1.0") == LEAST + 5


@pytest.mark.parametrize(
    ("reason", "version", "may"),
    [
        (NEEDS_FILTERS, "4.0.5", True), (NEEDS_FILTERS, "4.1.0", False),
        (NEEDS_LIMITS, "4.1.2", True), (NEEDS_LIMITS, "4.2.0", False), (NEEDS_LIMITS, "4.10.0", False),
        ("java is 11: Spark needs 17", "4.3.0", True), ("it is slow", "4.0.0", False), ("None", "4.0.0", False),
    ],
)  # fmt: skip
def test_only_what_a_version_or_a_machine_lacks_leaves_a_test_out(reason: str, version: str, may: bool) -> None:
    assert may_skip(reason, version) is may


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("", "no report"),
        (report("4.3.0"), r"was of \['4.3.0'\]"),
        (report(None), "was of no version"),
        (report("4.1.0", good=LEAST - 1, skipped=[NEEDS_LIMITS]), f"{LEAST - 1} tests passed, and not {LEAST}"),
        (
            report("4.1.0", skipped=["no mvn", NEEDS_FILTERS]),
            r"1 tests were skipped .* left \(filters need Spark 4.1\)",
        ),
        (report("4.1.0", bad='<testcase name="a"><failure/></testcase>'), "1 tests failed: a"),
        (report("4.1.0", bad='<testcase name="b"><error/></testcase>'), "1 tests failed: b"),
    ],
)
def test_a_version_fails_with_a_reason(told: str, why: str) -> None:
    with pytest.raises(Failed, match=why):
        passed(told, "4.1.0")
