"""The kept pages on disk: the store of the native core as a decider uses it, and what a commit has beside the rows."""
