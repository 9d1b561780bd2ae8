"""TLS: keys and certificates of listeners and clients, and who a certificate speaks for.

- settings.py: what an operator says, under Kafka's names. ciphers.py: names of suites.
- pem.py, der.py: the bytes. material.py: a key with its chain and authorities, read and checked.
- contexts.py: contexts of Python's ssl from it. refusals.py: why the other side was refused, in words.
- distinguished_name.py, mapping.py, peer.py: from a certificate to a principal, a node, a fingerprint.
- reload.py: when files on disk have changed, and whether they may take the place of what is in use.
- issuing/: an authority of one's own, and the files that `quorumlog tls` writes.
"""
