"""Deployment: a container image, a compose file, dashboards and alerts, and a broker for tests and trials."""
