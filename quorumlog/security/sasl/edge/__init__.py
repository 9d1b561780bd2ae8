"""Where OAUTHBEARER touches the machine: files, and endpoints over HTTPS."""
