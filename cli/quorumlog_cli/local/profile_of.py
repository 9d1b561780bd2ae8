"""The profile that `up` makes of a local cluster, for commands that are typed elsewhere.

It never takes the name of a profile that means something else, and never takes the place of one that was chosen.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from itertools import chain, count
from pathlib import Path
from typing import Any

from quorumlog.testing.layout import Layout, has_cluster
from quorumlog.testing.protected import Access
from quorumlog_cli.profiles.profile import PLACE_KEYS, Profiles, parse_profiles, without_written_login
from quorumlog_cli.profiles.profile_file import (
    read_text,
    user_file,
    with_current,
    with_profile,
    without_profile,
    write_text,
)
from quorumlog_cli.terminal.errors import CliError

PROFILE_NAME = "local"
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]+")


def select_local(layout: Layout) -> str:
    """Make or renew the cluster's profile. Select it unless another one is selected. Returns what to tell of it.

    Without a file that can be written there is none: in their own directory commands find the cluster all the same.
    """
    path = user_file(os.environ)
    try:
        text = read_text(path)
        profiles = parse_profiles(str(path), text)
        name = free_name(profiles, layout.root, has_cluster)
        kept = without_written_login(profiles.by_name[name]) if _is_of(profiles, name, layout) else {}
        text = with_profile(text, name, {**kept, **values_of(layout)})
        current = chosen(profiles, name)
        write_text(path, with_current(text, current))
    except (OSError, CliError) as error:
        return f"none: {_why_not(path, error)}; in this directory commands use this cluster anyway"
    if current == name:
        return f"{name!r} is selected: commands use this cluster here, and where no other one is above"
    return f"{name!r} was made; elsewhere commands still use {current!r} (quorumlog profile use {name} changes that)"


def values_of(layout: Layout) -> dict[str, Any]:
    return {
        "bootstrap_servers": [node.client_address for node in layout.nodes],
        "data_dir": str(layout.root),
        "cluster_id": layout.cluster_id,
        **(Access(layout).profile() if layout.user else {}),
    }


def free_name(profiles: Profiles, root: Path, is_there: Callable[[Path], bool]) -> str:
    """The profile of the cluster in `root`, or a name for it. is_there: whether a folder still holds a cluster: the
    profile of one that was removed may be replaced."""
    own = next((name for name, values in profiles.by_name.items() if values.get("data_dir") == str(root)), None)
    if own is not None:
        return own
    folder = _ILLEGAL.sub("-", root.parent.name).strip("-")
    names = [PROFILE_NAME, *([f"{PROFILE_NAME}-{folder}"] if folder else [])]
    candidates = chain(names, (f"{names[-1]}-{number}" for number in count(2)))
    return next(candidate for candidate in candidates if _is_free(profiles.by_name.get(candidate), is_there))


def _is_free(values: Mapping[str, Any] | None, is_there: Callable[[Path], bool]) -> bool:
    """True also for one that `up` made of a cluster that is gone."""
    if values is None:
        return True
    made_by_up = set(without_written_login(values)) <= {"bootstrap_servers", *PLACE_KEYS} and "data_dir" in values
    return made_by_up and not is_there(Path(values["data_dir"]))


def chosen(profiles: Profiles, name: str) -> str:
    """The profile that is current once `name` was made."""
    return profiles.current if profiles.current in profiles.by_name else name


def _is_of(profiles: Profiles, name: str, layout: Layout) -> bool:
    return profiles.by_name.get(name, {}).get("data_dir") == str(layout.root)


def forget_local(layout: Layout) -> str:
    """Remove the cluster's profiles after a purge. Returns "", or why one may be left."""
    path = user_file(os.environ)
    try:
        text = read_text(path)
        profiles = parse_profiles(str(path), text)
        mine = [name for name, values in profiles.by_name.items() if values.get("data_dir") == str(layout.root)]
        for name in mine:
            text = without_profile(text, name)
        if mine:
            write_text(path, with_current(text, "") if profiles.current in mine else text)
    except (OSError, CliError) as error:
        return f"its profile is left: {_why_not(path, error)}"
    return ""


def _why_not(path: Path, error: OSError | CliError) -> str:
    return error.message if isinstance(error, CliError) else f"{path} cannot be written ({error.strerror})"
