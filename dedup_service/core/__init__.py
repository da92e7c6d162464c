"""Pure functions and values: no I/O, no clock, no randomness. Time and order are arguments."""
