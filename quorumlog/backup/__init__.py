"""What a backup is, on paper: `manifest.py`. The cut is `quorumlog.client.administration.backup_cut` (decision 151)."""
