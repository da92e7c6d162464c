"""Groups of a log: its pages, from a state folder or a service, sorted into groups on disk."""
