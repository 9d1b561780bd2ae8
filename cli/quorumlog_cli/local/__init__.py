"""The local cluster of `quorumlog up`: find it, format it, wait until it is ready, follow its logs."""
