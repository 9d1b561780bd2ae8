"""Limits of the controller that nobody sets."""

from __future__ import annotations

MAX_PARTITIONS_PER_REQUEST = 10_000  # of CreateTopics and CreatePartitions, summed: an atomic change
MAX_TRANSACTION_BYTES = 64 << 20  # of the records of one change; what is larger than a batch is a transaction
MAX_REASSIGNED_PER_REQUEST = 10_000  # partitions, of AlterPartitionReassignments
MAX_ELECTIONS_PER_REQUEST = 10_000  # partitions named by ElectLeaders; a request for all of them has no limit
MAX_ASSIGNMENTS_PER_REQUEST = 2_250  # of AssignReplicasToDirectories
MAX_ACLS_PER_REQUEST = 10_000  # access rules made or removed; also filters
MAX_WAITING_OPERATIONS = 10_000  # appended or read, not yet committed; above it requests are refused
MAX_USERS_PER_REQUEST = 400  # of AlterUserScramCredentials, whose records are written in one step of some 20 ms
MAX_QUOTAS_PER_REQUEST = 400  # of AlterClientQuotas: values that are set or removed, likewise
