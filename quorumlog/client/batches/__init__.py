"""What a producer's records become before they are sent: numbered batches, and who is told how each one ended."""
