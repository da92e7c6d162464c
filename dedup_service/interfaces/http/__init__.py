"""HTTP: the dashboard with its live stats, explanations and corrections; probes and metrics of a service."""
