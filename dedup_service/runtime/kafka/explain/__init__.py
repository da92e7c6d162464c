"""Page sources of `why` in the service: a deciding process, or the log alone."""
