"""`config set`: a value, or words added to and removed from a list."""

from __future__ import annotations

import pytest

from quorumlog.client.administration.config_change import Append, ConfigChange, Subtract
from quorumlog_cli.commands.cluster.config import _changes
from quorumlog_cli.commands.cluster.config_values import keys_and_values
from quorumlog_cli.terminal.errors import CliError

CASES: list[tuple[str, str, ConfigChange]] = [
    ("k=v", "k", "v"),
    ("k+=v", "k", Append("v")),
    ("k -= v,w", "k", Subtract("v,w")),
    ("k=a+=b", "k", "a+=b"),
    ("k+-=v", "k+", Subtract("v")),  # no setting has this name; the controller refuses it
]


@pytest.mark.parametrize(("text", "key", "change"), CASES, ids=[text for text, _, _ in CASES])
def test_the_change_of_a_setting(text: str, key: str, change: ConfigChange) -> None:
    assert _changes(keys_and_values([text])) == {key: change}


def test_a_setting_is_changed_once() -> None:
    with pytest.raises(CliError, match="k is given twice"):
        _changes(keys_and_values(["k=v", "k+=w"]))
