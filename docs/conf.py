"""How Sphinx builds the site: `./dev docs`. What stands in no page is made by `reference_pages/`."""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(Path(__file__).resolve().parent))
for _folder in (".", "storage", "quorum", "broker", "server", "cli", "console"):
    sys.path.insert(0, str(_ROOT / _folder))

from quorumlog import __version__ as release  # noqa: E402

project = "quorumlog"
author = "the authors of quorumlog"
copyright = "the authors of quorumlog, Apache License 2.0"
version = release

extensions = ["sphinx.ext.autodoc", "myst_parser", "reference_pages"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["rules/*", "reference_pages/*"]  # rules/: what the tables of rules are written from
nitpicky = False
smartquotes = False  # a quoted text is copied as it is
default_role = "code"  # docstrings have single backticks

myst_heading_anchors = 4  # of the levels that pages link to, by GitHub's names
myst_links_external_new_tab = False

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
add_module_names = False

html_theme = "furo"
html_title = f"quorumlog {release}"
html_static_path = ["assets"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
