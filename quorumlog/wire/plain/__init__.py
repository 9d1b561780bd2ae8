"""Produce and Fetch, nearly all of the traffic, straight between bytes and messages, as they look nearly always.

A message is plain if it is flexible (Produce 9, Fetch 12 and newer) and says nothing rare: no error's text, no leader
elsewhere, no unknown tag. Whatever else comes, and all that is damaged, raises one of NOT_PLAIN, and is then read or
written anew by the schema's walk (wire/schema, wire/convert), which alone says Malformed. So these readers and writers
may be quick, and need not be complete: tests hold them against the walk. One call costs 1 to 6 us, the walk 8 to 15
(CPython 3.11, two partitions).
"""
