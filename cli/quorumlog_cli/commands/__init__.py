"""The commands, by noun, one file each. A file declares its options, calls a client or a node's files, and prints the
result.
"""
