"""The error of the local broker."""


class ClusterError(RuntimeError):
    """The broker could not be fetched or started; the message says why and what to do."""
