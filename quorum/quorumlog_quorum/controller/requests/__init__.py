"""What each request to the controller writes into the metadata log, one file each."""
