"""Names of the cluster for a shell that completes a word."""
