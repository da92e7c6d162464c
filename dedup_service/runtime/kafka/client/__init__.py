"""Access to the brokers: the only package that imports the Kafka client library and handles its faults.

Every client is made by `connect`; see docs/adr/0013-the-clients-faults.md for the faults and their cures.
`config` and `errors` do not import the library. Source of all statements about the library: kafka-python
3.0.12.
"""
