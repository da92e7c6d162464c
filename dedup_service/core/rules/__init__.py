"""When a candidate is a match: rule tables, named profiles, guards."""
