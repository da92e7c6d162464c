"""Stub: replaced by the branch of the room."""

import numpy as np
import numpy.typing as npt


class HostText:
    """Nothing is common."""

    def __init__(self, state: bytes = b"") -> None:
        self._state = state

    def state(self) -> bytes:
        """Return the state."""
        return self._state

    def follow(self, host: int, title: int | None, sentences: npt.NDArray[np.uint32]) -> None:
        """Follow a page."""

    def common(self, host: int, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """Return which sentences are common."""
        return np.zeros(len(sentences), np.bool_)
