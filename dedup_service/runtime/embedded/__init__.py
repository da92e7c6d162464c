"""The filter in one process: journal, snapshot and state folder on local disk."""
