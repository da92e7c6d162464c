"""Replay of archives with pywb, for tests: it has an environment of its own, since its requirements exclude ours."""
