"""BeginImport, ImportRecords, FinishImport: a topic that takes the copy of a foreign log (decision 37).

The first and the last are forwarded to the controller. The records go to the broker of each replica.
"""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, Uuid
from quorumlog.messages.imports import (
    BeginImportRequest,
    BeginImportResponse,
    FinishImportRequest,
    FinishImportResponse,
    ImportRecordsRequest,
    ImportRecordsResponse,
)
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.await_metadata import until_image
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.services import Services
from quorumlog_quorum.metadata.image import Image


async def handle_begin_import(services: Services, context: Context, request: BeginImportRequest) -> BeginImportResponse:
    response: BeginImportResponse = await forward(services.controller_for(context), request, request.timeout_ms)
    if response.error_code == ErrorCode.NONE:
        await until_image(services, lambda image: response.topic_id in image.topics)
    return response


async def handle_import_records(
    services: Services, _context: Context, request: ImportRecordsRequest
) -> ImportRecordsResponse:
    return await services.import_path.take(request)


async def handle_finish_import(
    services: Services, context: Context, request: FinishImportRequest
) -> FinishImportResponse:
    response: FinishImportResponse = await forward(services.controller_for(context), request, request.timeout_ms)
    if response.error_code == ErrorCode.NONE:
        await until_image(services, lambda image: _leads(image, request.topic_id))
    return response


def _leads(image: Image, topic_id: Uuid) -> bool:
    topic = image.topics.get(topic_id)
    return topic is not None and all(partition.leader != NO_NODE for _, partition in topic.sorted_partitions())
