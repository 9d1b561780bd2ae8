"""An authority of one's own: what it issues, and the folder with its files that `quorumlog tls` keeps.

- certificates.py: keys and certificates, all that `openssl verify -x509_strict` asks for. subjects.py: whom for.
- folder.py: the files and who may read them. rolls.py: three steps that renew the authority under its name.
- client_files.py: what a client reads, in the forms of Java, librdkafka and ours. keystores.py: PKCS#12 into PEM.
- trial.py: whether the files work, by a handshake in memory.
"""
