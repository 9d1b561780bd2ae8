"""The cluster under test: its nodes, the software that they run, the proxy between them."""
