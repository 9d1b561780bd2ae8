"""What clients were told and read, what the nodes left on their disks, and what must hold of both."""
