"""State of a service process: its folder, and the restore from snapshot and log."""
