"""Floor 1: disk, processes and clocks around the pure core."""
