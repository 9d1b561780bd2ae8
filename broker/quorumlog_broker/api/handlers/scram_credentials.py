"""AlterUserScramCredentials: forwarded to the controller. DescribeUserScramCredentials: from this broker's metadata.

A salted password is as good as the password, so it is refused from a client whose connection others may read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

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
from quorumlog.rpc.transport import Context
from quorumlog.security.sasl.scram_mechanism import ScramMechanism
from quorumlog_broker.api.await_metadata import until_image
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.services import Services
from quorumlog_quorum.metadata.access import Access
from quorumlog_quorum.metadata.credentials import find_credential, user_names
from quorumlog_quorum.metadata.image import Image

FORWARD_TIMEOUT_MS = 30_000  # the request names none
IN_CLEAR = "a salted password is taken over TLS or from the same machine only; use an SSL or SASL_SSL listener"


async def handle_describe_scram(
    services: Services, _context: Context, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    access = services.caught_up_image().access
    asked = Counter(one.name for one in request.users) or Counter(set(user_names(access)))
    results = [_described(access, name, times) for name, times in sorted(asked.items())]
    return DescribeUserScramCredentialsResponse(results=tuple(results))


async def handle_alter_scram(
    services: Services, context: Context, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    refused = () if context.private else tuple(sorted({one.name for one in request.upsertions}))
    results = tuple(
        AlteredScramUser(user=name, error_code=ErrorCode.UNACCEPTABLE_CREDENTIAL, error_message=IN_CLEAR)
        for name in refused
    )
    if refused:
        request = replace(
            request, deletions=tuple(one for one in request.deletions if one.name not in refused), upsertions=()
        )
    if not request.deletions and not request.upsertions:
        return AlterUserScramCredentialsResponse(results=results)
    response: AlterUserScramCredentialsResponse = await forward(
        services.controller_for(context), request, FORWARD_TIMEOUT_MS
    )
    done = {one.user for one in response.results if one.error_code == ErrorCode.NONE}
    await until_image(services, lambda image: _shows(image, request, done))
    return replace(response, results=(*response.results, *results))


def _described(access: Access, name: str, times: int) -> DescribedScramUser:
    if times > 1:
        text = f"user {name} is in the request twice"
        return DescribedScramUser(user=name, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=text)
    found = [(mechanism, find_credential(access, mechanism, name)) for mechanism in ScramMechanism]
    infos = [
        ScramCredentialInfo(mechanism=int(mechanism), iterations=credential.iterations)
        for mechanism, credential in found
        if credential is not None
    ]
    if not infos:
        text = f"user {name} has no SCRAM credential"
        return DescribedScramUser(user=name, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=text)
    return DescribedScramUser(user=name, credential_infos=tuple(infos))


def _shows(image: Image, request: AlterUserScramCredentialsRequest, done: set[str]) -> bool:
    for deleted in request.deletions:
        if deleted.name in done and find_credential(image.access, ScramMechanism(deleted.mechanism), deleted.name):
            return False
    for wanted in request.upsertions:
        if wanted.name in done:
            found = find_credential(image.access, ScramMechanism(wanted.mechanism), wanted.name)
            if found is None or (found.salt, found.iterations) != (wanted.salt, wanted.iterations):
                return False
    return True
