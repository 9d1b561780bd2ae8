"""The admin client, users and quotas: what leaves the process, and what it makes of answers."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import virtual_time
from fake_cluster import FakeCluster, TestClock

from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.administration.quotas import ANY_NAME, ENTITIES_PER_REQUEST, QuotaChange, QuotaOutcome
from quorumlog.client.administration.users import USERS_PER_REQUEST, DeleteCredential, SetPassword, UserOutcome
from quorumlog.errors import ErrorCode
from quorumlog.messages.credentials import (
    AlteredScramUser,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribedScramUser,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramCredentialInfo,
)
from quorumlog.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredQuota,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribedQuota,
    QuotaComponent,
    QuotaValue,
)
from quorumlog.rpc.transport import OutcomeUnknown
from quorumlog.security.quota.entity import BadQuota
from quorumlog.security.sasl.scram_keys import salted_password
from quorumlog.security.sasl.scram_mechanism import ScramMechanism

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
DONE = UserOutcome(ErrorCode.NONE)
ADA = (("user", "ada"),)


class Controller(FakeCluster):
    """users: what is kept, salt and salted password. fail: errors of the next answers, in all their entries."""

    def __init__(self) -> None:
        super().__init__()
        self.users: dict[tuple[str, int], tuple[bytes, bytes]] = {}
        self.fail: list[ErrorCode] = []
        self.lose = 0  # answers
        self.altered: list[Any] = []

    async def _AlterUserScramCredentialsRequest(
        self, _node: int, request: AlterUserScramCredentialsRequest
    ) -> AlterUserScramCredentialsResponse:
        names = [one.name for one in (*request.deletions, *request.upsertions)]
        assert len(set(names)) == len(names) <= USERS_PER_REQUEST
        self.altered.append(request)
        if self.fail:
            code = self.fail.pop(0)
            return AlterUserScramCredentialsResponse(
                results=tuple(AlteredScramUser(user=name, error_code=code) for name in names)
            )
        results = []
        for gone in request.deletions:
            there = self.users.pop((gone.name, gone.mechanism), None)
            code = ErrorCode.NONE if there else ErrorCode.RESOURCE_NOT_FOUND
            results.append(AlteredScramUser(user=gone.name, error_code=code))
        for new in request.upsertions:
            self.users[new.name, new.mechanism] = (new.salt, new.salted_password)
            results.append(AlteredScramUser(user=new.name))
        if self.lose:
            self.lose -= 1
            raise OutcomeUnknown("lost")
        return AlterUserScramCredentialsResponse(results=tuple(results))

    async def _DescribeUserScramCredentialsRequest(
        self, _node: int, request: DescribeUserScramCredentialsRequest
    ) -> DescribeUserScramCredentialsResponse:
        names = [one.name for one in request.users] or sorted({name for name, _ in self.users})
        results = []
        for name in names:
            found = tuple(
                ScramCredentialInfo(mechanism=one, iterations=4096) for of, one in sorted(self.users) if of == name
            )
            code = ErrorCode.NONE if found else ErrorCode.RESOURCE_NOT_FOUND
            results.append(DescribedScramUser(user=name, error_code=code, credential_infos=found))
        return DescribeUserScramCredentialsResponse(results=tuple(results))

    async def _AlterClientQuotasRequest(
        self, _node: int, request: AlterClientQuotasRequest
    ) -> AlterClientQuotasResponse:
        self.altered.append(request)
        code = self.fail.pop(0) if self.fail else ErrorCode.NONE
        return AlterClientQuotasResponse(
            entries=tuple(AlteredQuota(entity=one.entity, error_code=code) for one in request.entries)
        )

    async def _DescribeClientQuotasRequest(
        self, _node: int, request: DescribeClientQuotasRequest
    ) -> DescribeClientQuotasResponse:
        self.altered.append(request)
        (change,) = [one for one in self.altered if isinstance(one, AlterClientQuotasRequest)]
        values = (QuotaValue(key="request_percentage", value=0.5),)
        return DescribeClientQuotasResponse(
            entries=tuple(DescribedQuota(entity=one.entity[::-1], values=values) for one in change.entries)
        )


@pytest.fixture
def controller() -> Controller:
    return Controller()


def run(controller: Controller, work: Callable[[AsyncAdmin], Awaitable[Any]]) -> Any:
    async def scenario() -> Any:
        options = {
            "bootstrap_servers": "b1:9092",
            "security_protocol": "SSL",
            "retry_backoff_ms": 1,
            "default_api_timeout_ms": 500,
        }
        admin = AsyncAdmin(controller, options, clock=TestClock(), rng=random.Random(1))  # type: ignore[arg-type]
        async with admin:
            return await work(admin)

    return virtual_time.run(scenario())


def alter(controller: Controller, *changes: Any) -> dict[Any, UserOutcome]:
    found: dict[Any, UserOutcome] = run(controller, lambda admin: admin.alter_user_scram_credentials(changes))
    return found


def test_the_password_itself_stays_here_and_each_salt_is_another(controller: Controller) -> None:
    both = [SetPassword("ada", "canary", one) for one in (SHA_256, SHA_512)]
    assert alter(controller, *both) == dict.fromkeys(both, DONE)
    assert len(controller.altered) == 2  # a request may name a user once
    assert "canary" not in repr(controller.altered) + repr(both)
    for mechanism in (SHA_256, SHA_512):
        salt, salted = controller.users["ada", mechanism]
        assert len(salt) == 16 and salted == salted_password("canary", salt, 4096, mechanism.hash)
    assert len({salt for salt, _ in controller.users.values()}) == 2
    assert run(controller, lambda admin: admin.describe_user_scram_credentials()) == {
        "ada": {SHA_256: 4096, SHA_512: 4096}
    }
    assert run(controller, lambda admin: admin.describe_user_scram_credentials(["bob"])) == {}
    assert run(controller, lambda admin: admin.describe_user_scram_credentials([])) == {}


def test_many_users_go_in_portions(controller: Controller) -> None:
    changes = [DeleteCredential(f"u{number}") for number in range(2 * USERS_PER_REQUEST + 1)]
    outcomes = alter(controller, *changes)
    assert {outcome.error for outcome in outcomes.values()} == {ErrorCode.RESOURCE_NOT_FOUND}
    assert list(outcomes) == changes and len(controller.altered) == 3


def test_a_deletion_whose_answer_was_lost_is_done(controller: Controller) -> None:
    alter(controller, SetPassword("ada", "p", SHA_256))
    controller.lose = 1
    gone, never = DeleteCredential("ada", SHA_256), DeleteCredential("eve", SHA_256)
    assert alter(controller, gone) == {gone: DONE}
    assert alter(controller, never)[never].error is ErrorCode.RESOURCE_NOT_FOUND


def test_a_controller_that_is_not_active_is_asked_again(controller: Controller) -> None:
    controller.fail = [ErrorCode.NOT_CONTROLLER, ErrorCode.UNACCEPTABLE_CREDENTIAL]
    change = SetPassword("ada", "p")
    assert alter(controller, change)[change].error is ErrorCode.UNACCEPTABLE_CREDENTIAL
    first, second = controller.altered
    assert first == second  # with the same salt


def test_iterations_are_checked_before_anything_is_sent(controller: Controller) -> None:
    for iterations in (4095, 16_385):
        with pytest.raises(ValueError, match="4096 to 16384"):
            alter(controller, SetPassword("ada", "p", iterations=iterations))
    assert not controller.altered


def test_quotas_are_sent_and_told_by_entity(controller: Controller) -> None:
    entity = {"user": "ops,eu=1", "client-id": None}
    change = QuotaChange(entity, {"request_percentage": 0.5, "producer_byte_rate": None})
    outcomes = run(controller, lambda admin: admin.alter_client_quotas([change], validate_only=True))
    key = (("client-id", None), ("user", "ops,eu=1"))
    assert outcomes == {key: QuotaOutcome(ErrorCode.NONE)}
    (sent,) = controller.altered
    assert sent.validate_only and [(op.key, op.value, op.remove) for op in sent.entries[0].ops] == [
        ("request_percentage", 0.5, False),
        ("producer_byte_rate", 0.0, True),
    ]
    wanted = {"user": "ada", "client-id": None, "ip": ANY_NAME}
    found = run(controller, lambda admin: admin.describe_client_quotas(wanted, strict=True))
    assert found == {key: {"request_percentage": 0.5}}
    assert controller.altered[1] == DescribeClientQuotasRequest(
        components=(
            QuotaComponent(entity_type="user", match_type=0, match="ada"),
            QuotaComponent(entity_type="client-id", match_type=1),
            QuotaComponent(entity_type="ip", match_type=2),
        ),
        strict=True,
    )


def test_many_quotas_go_in_portions_and_bad_ones_nowhere(controller: Controller) -> None:
    changes = [QuotaChange({"user": f"u{number}"}, {"x": 1.0}) for number in range(ENTITIES_PER_REQUEST + 1)]
    controller.fail = [ErrorCode.NOT_CONTROLLER]
    assert len(run(controller, lambda admin: admin.alter_client_quotas(changes))) == len(changes)
    assert [len(one.entries) for one in controller.altered] == [ENTITIES_PER_REQUEST] * 2 + [1]
    with pytest.raises(BadQuota, match="host"):
        run(controller, lambda admin: admin.alter_client_quotas([QuotaChange({"ip": "host"}, {"x": 1.0})]))
