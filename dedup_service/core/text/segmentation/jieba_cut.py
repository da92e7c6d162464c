r"""jieba's segmentation in compiled loops: where the words of a text end.

1. Letters (Chinese ones, and ASCII letters, digits and `+#&._%-`) are looked up in the dictionary, from each place on.
   All else is a piece of its own, `\\r\\n` together.
2. The path with the highest product of word probabilities is found from right to left; of equal ones the longer word.
3. Neighbouring words of one letter are joined and cut again, unless they are a word together: Chinese letters by the
   hidden Markov model, numbers and Latin words (`3.5%`) by jieba's pattern for them.

Words are those of `jieba.cut(text)`, to the last rounding: sums are made in the same order. Words of one to three
letters are looked up at all places first, without branches and in passes: a look-up waits for memory, and many can wait
together.

Source: https://github.com/fxsjy/jieba (`Tokenizer.cut`, `finalseg.cut`)
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel_inline, kernel_inline_allocating, long_kernel, prefetch
from dedup_service.core.text.segmentation.jieba_model import END, ModelArrays, is_han
from dedup_service.core.text.segmentation.trie import NO_NODE, child, child_place, if_reached, value_in, value_of

Points = npt.NDArray[np.uint32]
_Codes = npt.NDArray[np.uint16]
_Nodes = npt.NDArray[np.int32]
_Logs = npt.NDArray[np.float64]
_Marks = npt.NDArray[np.uint8]

_AHEAD = 3
"""Letters of the words that are looked up at all places at once."""

_RETURN, _LINE_FEED, _DOT, _PERCENT = 13, 10, 46, 37


@long_kernel
def word_ends(
    points: Points,
    starts: npt.NDArray[np.int64],
    bodies: npt.NDArray[np.int64],
    codes: _Codes,
    nodes: npt.NDArray[np.int64],
    word_logs: _Logs,
    emissions: _Logs,
    start: _Logs,
    transitions: _Logs,
    unknown: float,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return where the words of n pages and the pieces between them end, ascending: int64[k].

    With them, as numbers of words and pieces: where each page begins, and the end of the last one, int64[n + 1], and
    where each body ends, int64[n]. points, starts, bodies: of `PageTexts`; each title and body is cut alone. What comes
    after them are the fields of `ModelArrays`: Python passes a named tuple in the time of seven arrays.
    """
    model = ModelArrays(codes, nodes, word_logs, emissions, start, transitions, unknown)
    ends = np.empty(len(points), np.int64)
    first, of_body = np.zeros(len(starts), np.int64), np.empty(len(bodies), np.int64)
    found = 0
    for page in range(len(bodies)):
        for part in range(2):
            begin, end = (bodies[page], starts[page + 1]) if part else (starts[page], bodies[page])
            marks = marked_ends(points[begin:end], model)
            for at in range(len(marks)):
                ends[np.uint64(found)] = begin + at + 1
                found += marks[at]
            if part == 0:
                of_body[page] = found
        first[page + 1] = found
    return ends[:found], first, of_body


@kernel_inline_allocating
def marked_ends(points: Points, model: ModelArrays) -> _Marks:
    """Return 1 for the last code point of each word or piece of a text, else 0: uint8[n]."""
    size = len(points)
    codes = codes_of(points, model.codes)
    twos, threes = np.empty(size, np.int32), np.empty(size, np.int32)
    logs = np.empty((_AHEAD, size))
    look_up(codes, size, model, twos, threes, logs)
    lengths = np.empty(size, np.int64)
    best_path(codes, size, model, threes, logs, lengths)
    marks = np.zeros(size, np.uint8)
    cut_path(points, codes, model, twos, threes, lengths, marks)
    return marks


@kernel_inline_allocating
def codes_of(points: Points, of_points: _Codes) -> _Codes:
    """Return the codes of a text, 0 for what is no letter and for _AHEAD places behind the end."""
    codes = np.zeros(len(points) + _AHEAD, np.uint16)
    for at in range(len(points)):
        point = points[np.uint64(at)]
        if point < np.uint32(len(of_points)):
            codes[np.uint64(at)] = of_points[point]
    return codes


@kernel_inline
def look_up(codes: _Codes, size: int, model: ModelArrays, twos: _Nodes, threes: _Nodes, logs: _Logs) -> None:
    """Find the nodes of two and three letters from each place on, and the log probabilities of up to three.

    Each pass asks for the nodes that the next one reads, which so wait for memory together.
    """
    nodes, word_logs = model.nodes, model.word_logs
    for at in range(size):
        word = nodes[np.uint64(codes[np.uint64(at)])]
        place = child_place(word, int(np.int64(codes[np.uint64(at + 1)])))
        prefetch(nodes, place)
        twos[np.uint64(at)] = place
        logs[np.uint64(0), np.uint64(at)] = word_logs[np.uint64(value_in(word))]
    for at in range(size):
        place = int(np.int64(twos[np.uint64(at)]))
        word = nodes[np.uint64(place)]
        reached = if_reached(word, int(np.int64(codes[np.uint64(at + 1)])))
        twos[np.uint64(at)] = place & reached
        logs[np.uint64(1), np.uint64(at)] = word_logs[np.uint64(value_in(word) & reached)]
        place = child_place(word, int(np.int64(codes[np.uint64(at + 2)]))) & reached
        prefetch(nodes, place)
        threes[np.uint64(at)] = place
    for at in range(size):
        place = int(np.int64(threes[np.uint64(at)]))
        word = nodes[np.uint64(place)]
        reached = if_reached(word, int(np.int64(codes[np.uint64(at + 2)])))
        threes[np.uint64(at)] = place & reached
        logs[np.uint64(2), np.uint64(at)] = word_logs[np.uint64(value_in(word) & reached)]
        prefetch(nodes, child_place(word, int(np.int64(codes[np.uint64(at + 3)]))) & reached)


@kernel_inline_allocating
def best_path(
    codes: _Codes, size: int, model: ModelArrays, threes: _Nodes, logs: _Logs, lengths: npt.NDArray[np.int64]
) -> None:
    """Write to `lengths` how long the word is that the best path takes from each place on."""
    nodes, word_logs = model.nodes, model.word_logs
    sums = np.zeros(size + _AHEAD)
    first = second = third = 0.0  # sums at the next three places
    for at in range(size - 1, -1, -1):
        one = logs[np.uint64(0), np.uint64(at)] + first
        two = logs[np.uint64(1), np.uint64(at)] + second
        three = logs[np.uint64(2), np.uint64(at)] + third
        best, length = one, 1
        length = 2 if two >= best else length
        best = max(two, best)
        length = 3 if three >= best else length
        best = max(three, best)
        node = int(np.int64(threes[np.uint64(at)]))
        if node != NO_NODE:
            end = at + _AHEAD
            node = child(nodes, node, int(np.int64(codes[np.uint64(end)])))
            while node != NO_NODE:
                end += 1
                longer = word_logs[np.uint64(value_of(nodes, node))] + sums[np.uint64(end)]
                if longer >= best:
                    best, length = longer, end - at
                node = child(nodes, node, int(np.int64(codes[np.uint64(end)])))
        if best == -np.inf:
            best, length = model.unknown + first, 1
        best = 0.0 if codes[np.uint64(at)] == 0 else best  # each run of letters is a path of its own
        sums[np.uint64(at)] = best
        lengths[np.uint64(at)] = length
        first, second, third = best, first, second


@kernel_inline_allocating
def cut_path(
    points: Points,
    codes: _Codes,
    model: ModelArrays,
    twos: _Nodes,
    threes: _Nodes,
    lengths: npt.NDArray[np.int64],
    ends: _Marks,
) -> None:
    """Mark the last letters of words in `ends`, which is all 0: along the path, and within its runs of single ones."""
    size = len(points)
    states = np.empty(size, np.uint8)
    at = 0
    while at < size:
        if codes[at] == 0:
            at += 2 if points[at] == _RETURN and at + 1 < size and points[at + 1] == _LINE_FEED else 1
            ends[at - 1] = 1
            continue
        if lengths[at] > 1:
            at += lengths[at]
            ends[at - 1] = 1
            continue
        begin = at
        while at < size and codes[at] != 0 and lengths[at] == 1:
            ends[at] = 1
            at += 1
        if at - begin > 1 and not is_word(codes, begin, at, model, twos, threes):
            cut_singles(points, codes, begin, at, model, states, ends)


@kernel_inline
def is_word(codes: _Codes, begin: int, end: int, model: ModelArrays, twos: _Nodes, threes: _Nodes) -> bool:
    """Whether two letters or more are a word."""
    nodes = model.nodes
    node = int(np.int64(twos[begin]))
    if node == NO_NODE:
        return False
    if end - begin > 2:
        node = int(np.int64(threes[begin]))
        for at in range(begin + _AHEAD, end):
            node = child(nodes, node, int(np.int64(codes[at])))
    return value_of(nodes, node) != 0


@kernel_inline
def cut_singles(
    points: Points, codes: _Codes, begin: int, end: int, model: ModelArrays, states: _Marks, ends: _Marks
) -> None:
    """Cut a run of single letters into Chinese ones, numbers or Latin words, and what is between those."""
    at = begin
    while at < end:
        start = at
        if is_han(points[at]):
            while at < end and is_han(points[at]):
                at += 1
            cut_unknown(codes, start, at, model, states, ends)
            continue
        if is_alphanumeric(points[at]):
            at = end_of_number(points, at, end)
        else:
            while at < end and not is_alphanumeric(points[at]) and not is_han(points[at]):
                at += 1
        ends[start : at - 1] = 0


@kernel_inline
def is_digit(point: int) -> bool:
    """Whether a code point is one of 0 to 9."""
    return 48 <= point <= 57


@kernel_inline
def is_alphanumeric(point: int) -> bool:
    """Whether a code point is an ASCII letter or digit."""
    return is_digit(point) or 65 <= point <= 90 or 97 <= point <= 122


@kernel_inline
def end_of_number(points: Points, at: int, end: int) -> int:
    r"""Return where jieba's pattern `[a-zA-Z0-9]+(?:\\.\\d+)?%?` ends, which begins at a place."""
    while at < end and is_alphanumeric(points[at]):
        at += 1
    if at + 1 < end and points[at] == _DOT and is_digit(points[at + 1]):
        at += 2
        while at < end and is_digit(points[at]):
            at += 1
    return at + 1 if at < end and points[at] == _PERCENT else at


@kernel_inline
def cut_unknown(codes: _Codes, begin: int, end: int, model: ModelArrays, states: _Marks, ends: _Marks) -> None:
    """Cut Chinese letters by the hidden Markov model, with Viterbi's algorithm.

    Before B come E and S, before E come B and M, before M come B and M, before S come E and S: a bit for each state
    says which of the two it was, 1 for the second. states: scratch, uint8[size of the text].
    """
    emissions, start, moves = model.emissions, model.start, model.transitions
    code = np.uint64(codes[begin])
    first = start[0] + emissions[code, 0]
    last = start[1] + emissions[code, 1]
    middle = start[2] + emissions[code, 2]
    alone = start[3] + emissions[code, 3]
    for at in range(begin + 1, end):
        code = np.uint64(codes[np.uint64(at)])
        first_by_last = last + moves[1, 0] + emissions[code, 0]
        first_by_alone = alone + moves[3, 0] + emissions[code, 0]
        last_by_first = first + moves[0, 1] + emissions[code, 1]
        last_by_middle = middle + moves[2, 1] + emissions[code, 1]
        middle_by_first = first + moves[0, 2] + emissions[code, 2]
        middle_by_middle = middle + moves[2, 2] + emissions[code, 2]
        alone_by_last = last + moves[1, 3] + emissions[code, 3]
        alone_by_alone = alone + moves[3, 3] + emissions[code, 3]
        states[np.uint64(at)] = (
            np.uint8(first_by_alone >= first_by_last)
            | np.uint8(last_by_middle >= last_by_first) << 1
            | np.uint8(middle_by_middle >= middle_by_first) << 2
            | np.uint8(alone_by_alone >= alone_by_last) << 3
        )
        first, last = max(first_by_last, first_by_alone), max(last_by_first, last_by_middle)
        middle, alone = max(middle_by_first, middle_by_middle), max(alone_by_last, alone_by_alone)
    state = 3 if alone >= last else 1
    for at in range(end - 1, begin, -1):
        second = (int(np.int64(states[np.uint64(at)])) >> state) & 1
        ends[np.uint64(at)] = (END >> state) & 1
        # The first of the two is E for B and S, B for E and M; the second S for B and S, M for E and M.
        state = ((0b1001 >> state) & 1) + 2 * second
    ends[begin] = (END >> state) & 1
    ends[end - 1] = 1
