"""The door to the brokers: every fault of the client library is survived here (docs/adr/0013), and nowhere else."""
