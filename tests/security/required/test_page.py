"""The table of rights in docs/security.md is the one that a node asks."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "proto" / "generate_rights.py"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_rights", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_fresh(generator: ModuleType) -> None:
    text = generator.PAGE.read_text()
    assert generator.page(text) == text
    assert "| DeleteRecords | Topic Delete | each topic |" in text


def test_a_page_without_a_place_for_the_table_is_an_error(generator: ModuleType) -> None:
    with pytest.raises(ValueError, match="no place"):
        generator.page("# Security\n")
