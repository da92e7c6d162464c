"""What a running service says over HTTP: whether it lives, whether it is ready, and its figures."""
