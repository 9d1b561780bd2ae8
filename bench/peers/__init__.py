"""What is measured beside ours, and what it needs: Kafka's jars and nodes, MirrorMaker, etcd, Python environments."""
