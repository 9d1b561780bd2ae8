"""Whether the records inside a stored batch are whole: the audit of what the checksum covers, but does not explain."""

from __future__ import annotations

from quorumlog.errors import ApiError
from quorumlog.records.batch import MAGIC
from quorumlog.records.control import decode_control
from quorumlog.records.corrupt import CorruptRecords
from quorumlog.records.plain import iter_batch
from quorumlog.records.record_check import check_records, look_at_once
from quorumlog_storage.audit.batches import FoundBatch


def record_problem(found: FoundBatch) -> str:
    """Why the records of a batch with the right checksum cannot be read; "" if they can. A huge batch is believed."""
    header, data = found.header, found.data
    if not data:
        return ""
    try:
        is_dense = header.count == header.last_offset_delta + 1 and header.magic == MAGIC
        if is_dense and not header.is_control:
            if look_at_once(data, header) is None:
                for _ in check_records(data, header):
                    pass
            return ""
        for record in iter_batch(data, header):
            if header.is_control:
                decode_control(record.key, record.value)
    except CorruptRecords as error:
        return error.reason
    except ApiError as error:
        return str(error)
    return ""
