"""Floor 2: interfaces for people and frameworks. An interface knows its framework; the core decides."""
