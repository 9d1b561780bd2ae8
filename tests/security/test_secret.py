"""A secret shows itself nowhere by accident."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass

import pytest

from quorumlog.security.secret import Secret


@dataclass
class Settings:
    user: str
    password: Secret


def test_it_prints_as_hidden_wherever_it_is_printed() -> None:
    secret = Secret("hunter2")
    shown = [repr(secret), str(secret), f"{secret}", f"{secret:>20}", f"{secret!s} {secret!r}", repr([secret])]
    shown += [repr(Settings("ada", secret)), repr({"password": secret}), str(ValueError(secret))]
    assert all("[hidden]" in one and "hunter2" not in one for one in shown)
    assert secret.reveal() == "hunter2"


def test_it_is_compared_by_its_text() -> None:
    assert Secret("a") == Secret("a") != Secret("b")
    assert Secret("a") != "a"


def test_it_is_neither_hashed_nor_pickled_nor_has_it_a_dict() -> None:
    secret = Secret("hunter2")
    with pytest.raises(TypeError):
        hash(secret)
    with pytest.raises(TypeError, match="not pickled") as refused:
        pickle.dumps(Settings("ada", secret))
    assert "hunter2" not in str(refused.value)
    with pytest.raises(TypeError):
        copy.deepcopy(secret)
    assert not hasattr(secret, "__dict__")
