"""What goes wrong with a broker of our own: one class, one line that says what to do."""


class ClusterError(RuntimeError):
    """The broker could not be fetched or started; the message says why and what to do."""
