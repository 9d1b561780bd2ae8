"""Between the dataclasses of `quorumlog.messages` and bytes: one generated module for each schema file.

`encode_X(m) -> bytes`, `decode_X(data) -> X` or DecodeError; `fill_X` and `read_X` do the same with a protobuf object.
"""
