"""A proposed change of the ISR: by table, and against any order of answers and metadata."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.errors import ErrorCode
from quorumlog_broker.partition.events import IsrAnswered, ProposeIsr
from quorumlog_broker.partition.isr_agreement import AWAIT_METADATA, REFUSED, IsrAgreement, ProposalStatus
from quorumlog_broker.partition.isr_state import Committed, PendingExpand, PendingShrink
from tests.parts import few

ME, A, B = 1, 2, 3
EPOCH = 5


def agreed(version: int = 7) -> IsrAgreement:
    agreement = IsrAgreement()
    agreement.commit((ME,), version)
    return agreement


def ask(agreement: IsrAgreement, node: int = A) -> ProposeIsr:
    return agreement.propose(PendingExpand(agreement.state.isr, node), EPOCH, lambda node: node * 10)


def granted(proposal: ProposeIsr, *, epoch: int = EPOCH, version: int = 8) -> IsrAnswered:
    isr = tuple(node for node, _ in proposal.members)
    return IsrAnswered(proposal=proposal, error=ErrorCode.NONE, leader_epoch=epoch, partition_epoch=version, isr=isr)


def test_a_proposal_names_the_new_members_and_the_state_it_is_based_on() -> None:
    want = ProposeIsr(leader_epoch=EPOCH, partition_epoch=7, members=((ME, 10), (A, 20)))
    assert ask(agreed()) == want


GRANTS = [
    ("newer", EPOCH, 8, ProposalStatus.SETTLED),
    ("nothing had to be changed", EPOCH, 7, ProposalStatus.SETTLED),
    ("of a state older than ours", EPOCH, 6, ProposalStatus.PENDING),
    ("of an older leadership", EPOCH - 1, 8, ProposalStatus.PENDING),
    ("of a newer leadership", EPOCH + 1, 8, ProposalStatus.PENDING),
]


@pytest.mark.parametrize(("epoch", "version", "want"), [c[1:] for c in GRANTS], ids=[c[0] for c in GRANTS])
def test_a_grant_counts_in_its_leadership_and_never_backwards(epoch: int, version: int, want: ProposalStatus) -> None:
    agreement = agreed()
    assert agreement.answered(granted(ask(agreement), epoch=epoch, version=version), EPOCH) is want
    settled = want is ProposalStatus.SETTLED
    assert agreement.state == (Committed((ME, A)) if settled else PendingExpand((ME,), A))
    assert agreement.partition_epoch == (version if settled else 7)
    agreement.check_invariants()


def test_nothing_else_is_asked_while_a_change_is_pending() -> None:
    agreement = agreed()
    ask(agreement)
    with pytest.raises(AssertionError, match="one change"):
        ask(agreement, B)


def test_the_same_proposal_made_again_is_another_one() -> None:
    """The answer to a withdrawn proposal must not settle the next one."""
    agreement = agreed()
    first = ask(agreement)
    agreement.withdraw()
    second = ask(agreement)
    assert first == second
    assert agreement.answered(granted(first), EPOCH) is ProposalStatus.PENDING
    assert agreement.answered(granted(second), EPOCH) is ProposalStatus.SETTLED


def test_no_error_means_two_things() -> None:
    assert not REFUSED & AWAIT_METADATA and ErrorCode.NONE not in REFUSED | AWAIT_METADATA


STEPS = st.sampled_from(["expand", "shrink", "answer", "old answer", "metadata", "withdraw"])


@given(st.lists(st.tuples(STEPS, st.sampled_from(ErrorCode), st.integers(0, 2)), max_size=30))
@settings(max_examples=few(100), deadline=None)
def test_whatever_comes_the_larger_set_counts_until_it_is_settled(steps: list[tuple[str, ErrorCode, int]]) -> None:
    agreement, asked = agreed(), []
    for step, error, ahead in steps:
        before, version = agreement.state, agreement.partition_epoch
        if step == "expand" and isinstance(before, Committed) and A not in before.isr:
            asked.append(ask(agreement))
        elif step == "shrink" and isinstance(before, Committed) and A in before.isr:
            asked.append(agreement.propose(PendingShrink(before.isr, (A,)), EPOCH, lambda _: -1))
        elif step == "metadata":
            agreement.commit((ME, B), version + 1)
        elif step == "withdraw":
            agreement.withdraw()
        elif asked and "answer" in step:
            proposal = asked[0 if step == "old answer" else -1]
            isr = tuple(node for node, _ in proposal.members)
            answer = IsrAnswered(
                proposal=proposal, error=error, leader_epoch=EPOCH, partition_epoch=version + ahead, isr=isr
            )
            if agreement.answered(answer, EPOCH) is not ProposalStatus.SETTLED:
                assert agreement.state is before
        agreement.check_invariants()
        assert agreement.partition_epoch >= version
        if not isinstance(agreement.state, Committed):
            assert set(agreement.state.maximal) == set(agreement.state.isr) | set(agreement.state.proposed)
