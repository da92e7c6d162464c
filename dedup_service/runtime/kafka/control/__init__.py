"""What operators do to a log: policies, retractions, corrections, hanging transactions."""
