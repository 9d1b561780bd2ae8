"""A hook of hatchling: the wheel carries the pages of the documentation that `quorumlog docs` shows."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

READER = "cli/quorumlog_cli/site_pages.py"
TO = "quorumlog_cli/pages"


class PagesHook(BuildHookInterface[Any]):
    """An editable installation reads them where they are."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects the files. version: `standard` or `editable`."""
        if version == "editable":
            return
        reader = _reader(Path(self.root) / READER)
        folder = Path(self.root) / "docs"
        files = [folder / reader.INDEX, *(page.path for page in reader.pages(folder))]
        build_data["force_include"].update({str(one): f"{TO}/{one.relative_to(folder).as_posix()}" for one in files})


def _reader(path: Path) -> ModuleType:
    """The command's own reader of the index, without its package, whose requirements are not installed here."""
    spec = importlib.util.spec_from_file_location("site_pages", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"{path}: the wheel is built from the whole source")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
