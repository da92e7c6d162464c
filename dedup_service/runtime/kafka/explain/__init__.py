"""Why, in the service: pages of the log by sequence, from a process that decides or from the log alone."""
