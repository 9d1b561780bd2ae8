"""What an installation brings: a bill of materials (CycloneDX 1.6, JSON) or a list of licences, of this environment.

    python packaging/software.py sbom --extra ui --extra oauth > quorumlog.cdx.json
    python packaging/software.py licences --extra ui

Run it with the Python of the environment that is meant; `packaging`, of PyPI, has to be there, too.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = "quorumlog"
COPYLEFT = re.compile(r"\b[AL]?GPL|GNU (Affero |Lesser |Library )?General Public", re.IGNORECASE)


@dataclass(frozen=True)
class Package:
    """licence: as its metadata say, "" where they do not. needs: names of what it needs, sorted."""

    name: str
    version: str
    licence: str
    needs: tuple[str, ...]

    @property
    def reference(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def installed(root: str, extras: Iterable[str]) -> list[Package]:
    """The distribution and all that it needs with these extras, itself first, the others by name.

    Raises PackageNotFoundError if one of them is not installed.
    """
    wanted = {canonicalize_name(root): frozenset(extras)}
    found: dict[str, Package] = {}
    todo = [canonicalize_name(root)]
    while todo:
        name = todo.pop()
        one = distribution(name)
        needs = list(needs_of(one, wanted[name]))
        found[name] = Package(name, one.version, licence_of(one), tuple(sorted({need for need, _ in needs})))
        for need, more in needs:
            known = wanted.get(need, frozenset())
            if need not in wanted or more - known:
                wanted[need] = known | more
                todo.append(need)
    first = found.pop(canonicalize_name(root))
    return [first, *(found[name] for name in sorted(found))]


def needs_of(one: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Names of what it needs here with these extras, each with the extras that it is asked for."""
    for line in one.requires or ():
        asked = Requirement(line)
        if asked.marker is None or any(asked.marker.evaluate({"extra": extra}) for extra in ("", *sorted(extras))):
            yield canonicalize_name(asked.name), frozenset(asked.extras)


def licence_of(one: Distribution) -> str:
    said = one.metadata
    if expression := said.get("License-Expression"):
        return str(expression)
    classified = [
        line.rpartition(" :: ")[2] for line in said.get_all("Classifier", []) if line.startswith("License ::")
    ]
    named = [line for line in classified if line != "OSI Approved"]
    return " OR ".join(named) or str(said.get("License") or "").strip().partition("\n")[0]


def is_copyleft(licence: str) -> bool:
    """Where a licence may be chosen, the freest counts."""
    return all(COPYLEFT.search(choice) for choice in re.split(r"\bOR\b", licence)) if licence else False


def bill_of_materials(packages: Sequence[Package], at: datetime) -> dict[str, Any]:
    """packages: of `installed`."""
    refs = {package.name: package.reference for package in packages}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, ' '.join(refs.values()))}",
        "version": 1,
        "metadata": {
            "timestamp": at.isoformat(timespec="seconds"),
            "component": component("application", packages[0]),
        },
        "components": [component("library", package) for package in packages[1:]],
        "dependencies": [
            {"ref": package.reference, "dependsOn": [refs[name] for name in package.needs]} for package in packages
        ],
    }


def component(kind: str, package: Package) -> dict[str, Any]:
    licences = [{"license": {"name": package.licence}}] if package.licence else []
    return {
        "type": kind,
        "bom-ref": package.reference,
        "name": package.name,
        "version": package.version,
        "purl": package.reference,
        "licenses": licences,
    }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="What an installation of quorumlog brings.")
    parser.add_argument("what", choices=["sbom", "licences"])
    parser.add_argument("--extra", action="append", default=[], help="with this extra, too; may be repeated")
    options = parser.parse_args(arguments)
    try:
        packages = installed(ROOT, options.extra)
    except PackageNotFoundError as error:
        print(f"error: not installed: {error}", file=sys.stderr)
        return 1
    if options.what == "sbom":
        print(json.dumps(bill_of_materials(packages, datetime.now(UTC)), indent=2))
    else:
        for package in packages:
            print(f"{package.name:28} {package.version:14} {package.licence or '?'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
