"""What jieba's algorithm needs to know, in arrays: the words with their probabilities, and the hidden Markov model.

`runtime.jieba_dictionary` reads both from the installed jieba package. Source: https://github.com/fxsjy/jieba
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.kernels import kernel_inline
from dedup_service.core.text.segmentation.trie import FIRST_PLANE, MAX_VALUE, Trie

FIRST_HAN, LAST_HAN = 0x4E00, 0x9FD5
"""What jieba takes for Chinese letters."""

OTHER_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+#&._%-"
"""What else jieba looks up in its dictionary."""

STATES = "BEMS"
"""Of a letter: first, last, between the two, or alone in its word. In this order: ties go to the later one."""

END = 0b1010
"""States that end a word, as bits: E and S."""

IMPOSSIBLE = -3.14e100
"""The log probability that jieba gives to what it has never seen."""


@dataclass(frozen=True, slots=True)
class HiddenMarkovModel:
    """Log probabilities. start: of each state. transitions: state → next state. emissions: state → letter."""

    start: Mapping[str, float]
    transitions: Mapping[str, Mapping[str, float]]
    emissions: Mapping[str, Mapping[str, float]]


class ModelArrays(NamedTuple):
    """What kernels take.

    codes: uint16[65536] and nodes: int64[m], see `Trie`; the value of a node is a place in `word_logs`: float64[k], the
    log probability of words, -inf for a node at which no word ends. emissions: float64[c, 4], by code and state.
    start: float64[4], transitions: float64[4, 4], from and to a state. unknown: log probability of a letter that is no
    word.
    """

    codes: npt.NDArray[np.uint16]
    nodes: npt.NDArray[np.int64]
    word_logs: npt.NDArray[np.float64]
    emissions: npt.NDArray[np.float64]
    start: npt.NDArray[np.float64]
    transitions: npt.NDArray[np.float64]
    unknown: float


@dataclass(frozen=True, slots=True, eq=False)
class JiebaModel:
    """The dictionary and the hidden Markov model."""

    arrays: ModelArrays

    @classmethod
    def of(cls, frequencies: Mapping[str, int], total: int, model: HiddenMarkovModel) -> Self:
        """Return the model of a dictionary.

        frequencies: word → how often it was seen, 0 for one that is not to be used. total: of all words; jieba adds a
        frequency to it each time that a word is added. ConfigurationError without words, or with more than 65,535
        different frequencies.
        """
        different = sorted({frequency for frequency in frequencies.values() if frequency > 0})
        if not different or len(different) > MAX_VALUE or total <= 0:
            raise ConfigurationError(f"a dictionary has 1 to {MAX_VALUE:,} different frequencies, not {len(different)}")
        log_total = math.log(total)
        word_logs = np.array([-np.inf, *(math.log(frequency) - log_total for frequency in different)])
        places = {frequency: place + 1 for place, frequency in enumerate(different)}
        trie = Trie.of({word: places.get(frequency, 0) for word, frequency in frequencies.items()}, _letters())
        emissions = np.full((int(trie.codes.max()) + 1, len(STATES)), IMPOSSIBLE)
        for place, state in enumerate(STATES):
            for letter, log in model.emissions[state].items():
                if len(letter) == 1 and FIRST_HAN <= ord(letter) <= LAST_HAN:
                    emissions[trie.codes[ord(letter)], place] = log
        start = np.array([model.start[state] for state in STATES])
        transitions = np.array([[model.transitions[one].get(other, IMPOSSIBLE) for other in STATES] for one in STATES])
        return cls(ModelArrays(trie.codes, trie.nodes, word_logs, emissions, start, transitions, -log_total))


@kernel_inline
def is_han(point: int) -> bool:
    """Whether jieba takes a code point for a Chinese letter."""
    return FIRST_HAN <= point <= LAST_HAN


def _letters() -> npt.NDArray[np.bool_]:
    """Return which code points jieba looks up: bool[65536]."""
    letters = np.zeros(FIRST_PLANE, np.bool_)
    letters[FIRST_HAN : LAST_HAN + 1] = True
    letters[[ord(letter) for letter in OTHER_LETTERS]] = True
    return letters
