"""Connections of commands to the cluster that is meant, and who answers instead."""
