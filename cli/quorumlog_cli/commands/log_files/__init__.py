"""Commands that read and write the files of logs."""
