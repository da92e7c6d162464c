"""The two steps of the service: fingerprinting fills the log; deciding reads it and writes the outputs."""
