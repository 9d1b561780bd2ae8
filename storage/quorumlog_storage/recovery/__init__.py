"""Opening a log whose files are not trusted: what belongs to it, and where it ends."""
