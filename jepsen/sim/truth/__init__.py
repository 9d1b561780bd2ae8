"""What is on the disks of all machines, read independently of the processes, and what of it is committed."""
