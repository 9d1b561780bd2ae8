"""The bill of materials, and the licences of what users install."""

from __future__ import annotations

import json
import re
import tomllib
from datetime import UTC, datetime
from functools import cache

import pytest

from tests.packages.package_files import ROOT

pytest.importorskip("packaging.requirements", reason="packaging is part of the test extra")

import software  # isort: skip

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NOT_FOR_USERS = ("test", "dev")
EXTRAS = [name for name in PROJECT["optional-dependencies"] if name not in NOT_FOR_USERS]
EXCEPTED = {"crc32c": "kio needs it; pip installs it as a package of its own, and ours does not import it"}
COPYLEFT_IN = {"java"}  # extras that may bring such a package; NOTICE names it
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@cache
def installed(extra: str) -> list[software.Package]:
    """extra: "" for none."""
    try:
        return software.installed("quorumlog", [extra] if extra else [])
    except software.PackageNotFoundError as error:
        pytest.skip(f"not installed: {error}")


@pytest.mark.parametrize("extra", ["", *[extra for extra in EXTRAS if extra not in COPYLEFT_IN]])
def test_no_package_is_copyleft(extra: str) -> None:
    packages = installed(extra)
    assert len(packages) > 10
    assert {one.name for one in packages if software.is_copyleft(one.licence)} - set(EXCEPTED) == set()


def test_every_package_says_its_licence() -> None:
    assert [one.name for one in installed("") if not one.licence] == []


def test_each_exception_is_one_and_stands_in_the_notice() -> None:
    found = {one.name: one.licence for one in installed("")}
    notice = (ROOT / "NOTICE").read_text()
    for name in EXCEPTED:
        assert software.is_copyleft(found[name]) and re.search(rf"\b{name}\b.*LGPL", notice)


@pytest.mark.parametrize(
    ("licence", "want"),
    [
        ("GPL-3.0-or-later", True),
        ("LGPL-2.1-or-later", True),
        ("GNU Lesser General Public License v2 or later (LGPLv2+)", True),
        ("GNU General Public License v3", True),
        ("AGPLv3", True),
        ("Apache-2.0", False),
        ("MIT", False),
        ("MPL-2.0", False),
        ("PSF-2.0", False),
        ("GPL-2.0-only OR MIT", False),  # whoever has the choice takes the other
    ],
)
def test_which_licences_are_copyleft(licence: str, want: bool) -> None:
    assert software.is_copyleft(licence) == want


def test_the_bill_names_each_package_and_what_it_needs() -> None:
    packages = installed("")
    bill = software.bill_of_materials(packages, AT)
    named = {one["name"] for one in bill["components"]}
    asked = {software.canonicalize_name(re.split(r"[\[<>=!~; ]", line)[0]) for line in PROJECT["dependencies"]}
    assert asked <= named and "quorumlog" not in named
    references = {one["bom-ref"] for one in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    assert references == {one["ref"] for one in bill["dependencies"]}
    assert {ref for one in bill["dependencies"] for ref in one["dependsOn"]} <= references
    assert bill == software.bill_of_materials(packages, AT)


def test_an_extra_brings_its_own_and_what_these_need() -> None:
    more = {one.name for one in installed("ui")} - {one.name for one in installed("")}
    assert {"uvicorn", "starlette", "jinja2", "textual", "h11"} <= more


def test_the_bill_is_one_by_the_standards_schema() -> None:
    validation = pytest.importorskip("cyclonedx.validation.json", reason="cyclonedx-python-lib is in the dev extra")
    schema = pytest.importorskip("cyclonedx.schema")
    text = json.dumps(software.bill_of_materials(installed("ui"), AT))
    assert validation.JsonStrictValidator(schema.SchemaVersion.V1_6).validate_str(text) is None
