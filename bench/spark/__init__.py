"""Spark beside its own Kafka connector and MirrorMaker 2: the same work, round by round."""
