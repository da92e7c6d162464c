"""Deployment: container image, compose file, dashboards, alerts, and a broker for tests and trials."""
