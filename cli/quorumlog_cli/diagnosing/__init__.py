"""What `quorumlog diagnose` puts into its file. Begin with `bundle.py`.

Nothing goes in because it was there: each part names the fields that it takes, and free text passes `redact.py`.
"""
