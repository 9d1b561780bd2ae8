"""A broker whose certificate has expired cannot be asked for the event that says so; the refusal does."""

from __future__ import annotations

import pytest

from quorumlog.explaining.facts import BrokerFact, Facts
from quorumlog.explaining.judging import judge
from quorumlog.explaining.thresholds import Thresholds


@pytest.mark.parametrize(("why", "named"), [("the certificate has expired", True), ("connection refused", False)])
def test_a_refused_certificate_of_a_broker_is_named(why: str, named: bool) -> None:
    found = judge(Facts(at_ms=0, brokers=(BrokerFact(node_id=3, silent=why),)), Thresholds())
    told = [one.subject for one in found if one.cause == "certificate.expired"]
    assert told == (["broker/3"] if named else [])
