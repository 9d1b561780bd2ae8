"""From a backup to the directories of a new cluster: read `restore.py` first."""
