"""Floor 2: interfaces for people and frameworks. An interface knows its framework and leaves every step to the core."""
