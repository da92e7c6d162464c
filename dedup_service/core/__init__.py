"""Floor 0: pure functions and values. No I/O, no clock, no randomness; time and order are arguments."""
