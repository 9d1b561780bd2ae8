"""The bytes of records and batches: numbers, checksums, headers, compression, and the formats before v2."""
