"""The stubs that protoc writes, and their types. Only `quorumlog.rpc` imports them."""
