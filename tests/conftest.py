"""Settings for the whole suite."""

from hypothesis import settings

# Compiled code loads on first use, so a deadline would time the machine instead of the code.
settings.register_profile("twinsieve", deadline=None, max_examples=100)
settings.load_profile("twinsieve")
