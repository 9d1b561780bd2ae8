"""The profile that `up` creates and selects, so that later commands need no address."""

from __future__ import annotations

import os

from quorumlog.testing.layout import Layout
from quorumlog_cli.profile_file import read_text, user_file, with_current, with_profile, without_profile, write_text

PROFILE_NAME = "local"


def select_local(layout: Layout) -> None:
    path = user_file(os.environ)
    values = {
        "bootstrap_servers": [node.client_address for node in layout.nodes],
        "data_dir": str(layout.root),
    }
    write_text(path, with_current(with_profile(read_text(path), PROFILE_NAME, values), PROFILE_NAME))


def forget_local(layout: Layout) -> None:
    """Remove the profile after a purge, unless it belongs to another cluster."""
    from quorumlog_cli.profile import parse_profiles

    path = user_file(os.environ)
    text = read_text(path)
    profiles = parse_profiles(str(path), text)
    if profiles.by_name.get(PROFILE_NAME, {}).get("data_dir") != str(layout.root):
        return
    text = without_profile(text, PROFILE_NAME)
    write_text(path, with_current(text, "") if profiles.current == PROFILE_NAME else text)
