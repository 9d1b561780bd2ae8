"""Clients over raw sockets, with as little of their own as possible: the same for Kafka and for us."""
