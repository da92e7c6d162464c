"""The Helm chart of a service over many machines, in `twinsieve/`, and the program that renders it for tests."""
