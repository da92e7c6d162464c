//! Unicode word boundaries, and pairs of characters for scripts without spaces.
//!
//! 1. Each code point has a kind: its word-break property, and apart from others of that property vowels, the curly
//!    apostrophe and pictographs, which rules name.
//! 2. A state machine reads a text from left to right. Its state is the kind of the last character, where marks and
//!    invisible characters do not count. State and next kind say what the state is then and whether there is a boundary
//!    between the two; the few rules that ask for a third character (`don't`, `3.14`) are looked at apart.
//! 3. Neighbouring pieces of scripts without spaces are joined and become overlapping pairs.
//!
//! Boundaries are those of `(?w)\b` in Python's `regex`. It departs from the annex where rules ask for a third character
//! (marks count there), for half a flag and marks at the beginning of a text (they belong to what follows), and between
//! an apostrophe and a vowel (no boundary: `l'amour`). A run of 64 letters of flags or more is one piece, and what follows
//! it is cut like the beginning of a text.
//!
//! Source: Unicode Standard Annex 29, section 4.1.1 (rules WB1 to WB999)

use super::Segment;
use crate::characters::{Characters, characters};

/// Letters of flags in a row; no text has so many.
const MAX_FLAG_LETTERS: usize = 64;
/// The bit of a character in a script without spaces, beside its kind.
const UNSPACED: u8 = 32;
const KIND: u8 = UNSPACED - 1;
const VERDICT_SHIFT: u8 = 5;
/// The verdict that a third character decides.
const LOOK: u8 = 2;

// Kinds, as `make_tables.py` numbers them; the last two are only states.
const OTHER: u8 = 0;
const NUMERIC: u8 = 11;
const HEBREW: u8 = 15;
const DOUBLE_QUOTE: u8 = 5;
const JOINER: u8 = 18;
const FLAG: u8 = 20;
const START: u8 = 22;
const GLUE: u8 = 23;

/// Several kinds, as bits.
#[derive(Clone, Copy)]
struct Kinds(u32);

impl Kinds {
    const PICTOGRAPHS: Self = Self::of(&[21, 14]);
    const LETTERS: Self = Self::of(&[12, 13, 14, HEBREW]);
    const MID_LETTERS: Self = Self::of(&[6, 7, 9, 10]);
    const MID_NUMBERS: Self = Self::of(&[6, 7, 9, 8]);
    const INVISIBLE: Self = Self::of(&[17, JOINER]);

    const fn of(kinds: &[u8]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < kinds.len() {
            bits |= 1 << kinds[at];
            at += 1;
        }
        Self(bits)
    }

    fn has(self, kind: u8) -> bool {
        self.0 >> kind & 1 != 0
    }
}

/// Append the words of a text and the pieces between them.
pub fn cut(points: &[u32], segments: &mut Vec<Segment>) {
    let text = Text { points, characters: characters() };
    let first = segments.len();
    if text.cut(segments) {
        let pieces = segments.split_off(first);
        text.cut_in_pairs(&pieces, segments);
    }
}

struct Text<'a> {
    points: &'a [u32],
    characters: &'a Characters,
}

impl Text<'_> {
    /// Append the words and the pieces between them; return whether any character is of a script without spaces.
    fn cut(&self, segments: &mut Vec<Segment>) -> bool {
        let mut state = START;
        let (mut begin, mut at, mut word, mut seen) = (0, 0, 0, 0);
        while let Some(&code) = self.points.get(at) {
            let bits = self.characters.word_kind(code);
            seen |= bits;
            let kind = bits & KIND;
            let step = self.characters.word_step(state, kind);
            let is_break = match step >> VERDICT_SHIFT {
                LOOK => {
                    if kind == FLAG && (at == begin || self.kind(at - 1) != FLAG) {
                        let after = self.end_of_flags(at);
                        if after - at >= MAX_FLAG_LETTERS {
                            if state != START {
                                segments.push(word..at);
                            }
                            segments.push(at..after);
                            (begin, at, word, state) = (after, after, after, START);
                            continue;
                        }
                    }
                    !self.is_joined(at, begin, state, kind)
                }
                verdict => verdict != 0,
            };
            if is_break {
                segments.push(word..at);
                word = at;
            }
            state = step & KIND;
            at += 1;
        }
        if state != START {
            segments.push(word..at);
        }
        seen & UNSPACED != 0
    }

    fn kind(&self, at: usize) -> u8 {
        self.points.get(at).map_or(OTHER, |&code| self.characters.word_kind(code) & KIND)
    }

    fn end_of_flags(&self, at: usize) -> usize {
        (at..=self.points.len()).find(|&at| self.kind(at) != FLAG).unwrap_or(at)
    }

    /// Return whether there is no boundary before a character, where the verdict of state and kind is to look.
    fn is_joined(&self, at: usize, begin: usize, state: u8, kind: u8) -> bool {
        if kind == FLAG {
            return matches!(state, FLAG | GLUE | START);
        }
        let mut left = at - 1;
        if Kinds::PICTOGRAPHS.has(kind) && self.kind(left) == JOINER {
            return true;
        }
        let after = self.kind(at + 1);
        if Kinds::LETTERS.has(state) {
            let is_quote = state == HEBREW && kind == DOUBLE_QUOTE && after == HEBREW;
            return is_quote || (Kinds::MID_LETTERS.has(kind) && Kinds::LETTERS.has(after));
        }
        if state == NUMERIC {
            return Kinds::MID_NUMBERS.has(kind) && after == NUMERIC;
        }
        while left > begin && Kinds::INVISIBLE.has(self.kind(left)) {
            left -= 1;
        }
        let before = if left > begin { self.kind(left - 1) } else { OTHER };
        if kind == NUMERIC {
            return Kinds::MID_NUMBERS.has(state) && before == NUMERIC;
        }
        let is_quote = state == DOUBLE_QUOTE && kind == HEBREW && before == HEBREW;
        is_quote || (Kinds::MID_LETTERS.has(state) && Kinds::LETTERS.has(kind) && Kinds::LETTERS.has(before))
    }

    /// Append pieces; neighbouring ones that have only characters of scripts without spaces as overlapping pairs.
    fn cut_in_pairs(&self, pieces: &[Segment], segments: &mut Vec<Segment>) {
        let is_unspaced = |piece: &Segment| {
            self.points[piece.clone()].iter().all(|&code| self.characters.word_kind(code) & UNSPACED != 0)
        };
        for run in pieces.chunk_by(|one, other| is_unspaced(one) && is_unspaced(other)) {
            let (begin, end) = (run[0].start, run[run.len() - 1].end);
            if is_unspaced(&run[0]) && end - begin > 2 {
                segments.extend((begin..end - 1).map(|at| at..at + 2));
            } else {
                segments.push(begin..end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        let points: Vec<u32> = text.chars().map(u32::from).collect();
        let mut segments = Vec::new();
        cut(&points, &mut segments);
        segments
            .into_iter()
            .map(|segment| points[segment].iter().map(|&code| char::from_u32(code).unwrap()).collect())
            .collect()
    }

    #[test]
    fn words_are_between_boundaries() {
        assert_eq!(words("don't pay 3.14 euros."), ["don't", " ", "pay", " ", "3.14", " ", "euros", "."]);
        assert_eq!(words("l’amour e\u{301}t\u{301}\r\nא\"א"), ["l’amour", " ", "e\u{301}t\u{301}", "\r\n", "א\"א"]);
        assert_eq!(words("👩\u{200D}👩🇩🇪🇫🇷a"), ["👩\u{200D}👩", "🇩🇪", "🇫🇷", "a"]);
    }

    #[test]
    fn scripts_without_spaces_are_cut_in_pairs() {
        assert_eq!(words("ひらがな x วัน เ"), ["ひら", "らが", "がな", " ", "x", " ", "วั", "ัน", " ", "เ"]);
    }

    /// A run of flags takes linear time and is one piece.
    #[test]
    fn many_flags_are_one_piece() {
        let flags = "🇩".repeat(100_001);
        assert_eq!(words(&format!("a{flags}b c")), ["a", &flags, "b", " ", "c"]);
    }

    proptest! {
        /// Pieces come in order and together are the text, but for pairs, which overlap.
        #[test]
        fn pieces_cover_the_text(points in prop::collection::vec(prop_oneof![0..0x80u32, 0x300..0x310u32, 0x1F1E6..0x1F1EAu32, 0x5D0..0x5D4u32, 0x3040..0x3048u32, any::<u32>()], 0..60)) {
            let mut segments = Vec::new();
            cut(&points, &mut segments);
            let mut end = 0;
            for segment in &segments {
                prop_assert!(segment.start <= end && segment.end > end.max(segment.start));
                prop_assert!(segment.start == end || (segment.len() == 2 && segment.start + 1 == end));
                end = segment.end;
            }
            prop_assert_eq!(end, points.len());
        }
    }
}
