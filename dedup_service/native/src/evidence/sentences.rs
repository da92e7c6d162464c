//! The sentences of a text, as values of 32 bits: 26 bits of a hash, and the length.
//!
//! A sentence is a run of letters and digits between two ends; everything else is left out. It ends at a line break, at
//! the marks of its language, at a full stop before a space, and at a space after a Thai or Lao letter. Sentences of
//! fewer than `MIN_SENTENCE` letters are ignored.
//!
//! A value is `hash << 6 | quarters`, where `quarters` is the number of letters divided by four and rounded, at most 63.
//! Values are ordered by the hash, so the smallest values of a text are a sample that does not depend on the lengths.

use std::ops::Range;
use std::sync::LazyLock;

use crate::characters::{PLANE, characters};
use crate::memory::{GAMMA, mix64};

/// Letters of a sentence; shorter ones are interjections and labels.
pub const MIN_SENTENCE: u64 = 6;
/// Bits of a value that say the length of the sentence.
pub const LENGTH_BITS: u32 = 6;
/// Letters that count as one in a value.
pub const LETTERS_A_QUARTER: u32 = 4;
/// The largest length in a value, and the bits of the length.
pub const LONGEST: u32 = (1 << LENGTH_BITS) - 1;

const ENDS: &str = "。！？!?；;…؟۔।\n";
const SPACE: u32 = 0x20;

/// What a character is to a sentence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Other,
    Letter,
    End,
    /// A full stop, which ends a sentence only before a space.
    Stop,
}

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let characters = characters();
    let letter = |code| if characters.is_letter(code) { Kind::Letter } else { Kind::Other };
    let mut kinds: Vec<Kind> = (0..PLANE).map(letter).collect();
    for (marks, kind) in [(ENDS, Kind::End), (".", Kind::Stop)] {
        marks.chars().for_each(|mark| kinds[mark as usize] = kind);
    }
    kinds
});

/// Replace `values` by those of the distinct sentences of a folded text, ascending.
pub fn find_sentences(text: &[u32], values: &mut Vec<u32>) {
    values.clear();
    each_sentence(text, |value, _| values.push(value));
    values.sort_unstable();
    values.dedup();
}

/// Call `found` with the value of each sentence of a folded text, in their order, and with its place among the letters
/// of the text; return how many letters there are.
pub fn each_sentence(text: &[u32], mut found: impl FnMut(u32, Range<u64>)) -> u64 {
    let (kinds, characters) = (&KINDS[..], characters());
    let (mut sentence, mut before) = (Sentence::default(), 0);
    let mut end = |sentence: &mut Sentence| {
        let Sentence { letters, .. } = *sentence;
        if let Some(value) = std::mem::take(sentence).value() {
            found(value, before..before + letters);
        }
        before += letters;
        before
    };
    for (at, &code) in text.iter().enumerate() {
        let letter = || if characters.is_letter(code) { Kind::Letter } else { Kind::Other };
        let ends = match kinds.get(code as usize).copied().unwrap_or_else(letter) {
            Kind::Letter => {
                sentence.letters += 1;
                sentence.hash = sentence.hash.wrapping_mul(GAMMA).wrapping_add(u64::from(code));
                false
            }
            Kind::End => true,
            Kind::Stop => text.get(at + 1).is_none_or(|&next| next == SPACE),
            Kind::Other => code == SPACE && at > 0 && (0x0E00..0x0F00).contains(&text[at - 1]),
        };
        if ends {
            end(&mut sentence);
        }
    }
    end(&mut sentence)
}

#[derive(Default)]
struct Sentence {
    letters: u64,
    hash: u64,
}

impl Sentence {
    /// Return the value; None of a sentence that is too short.
    fn value(self) -> Option<u32> {
        let quarters = (self.letters + u64::from(LETTERS_A_QUARTER) / 2) / u64::from(LETTERS_A_QUARTER);
        let hash = mix64(self.hash) >> (32 + LENGTH_BITS) << LENGTH_BITS;
        (self.letters >= MIN_SENTENCE).then_some(hash as u32 | (quarters as u32).min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(text: &str) -> Vec<u32> {
        let (mut values, points) = (Vec::new(), text.chars().map(u32::from).collect::<Vec<_>>());
        find_sentences(&points, &mut values);
        let mut lengths: Vec<u32> = values.into_iter().map(|value| value & LONGEST).collect();
        lengths.sort_unstable();
        lengths
    }

    #[test]
    fn sentences_end_at_marks_breaks_and_stops_before_a_space() {
        let long = "字".repeat(400);
        let cases = [
            ("", vec![]),
            ("short. end", vec![]),
            ("eight letters. ten letters here", vec![3, 4]),
            ("version 1.2.3 came out", vec![4]),
            ("สวัสดีครับ ขอบคุณมาก", vec![2, 3]),
            ("第一句话很短吗？第二句话也不长！\n第一句话很短吗", vec![2, 2]),
            (long.as_str(), vec![63]),
        ];
        for (text, expected) in cases {
            assert_eq!(lengths(text), expected, "{text}");
        }
    }

    #[test]
    fn only_letters_and_digits_count() {
        let values = |text: &str| {
            let (mut values, points) = (Vec::new(), text.chars().map(u32::from).collect::<Vec<_>>());
            find_sentences(&points, &mut values);
            values
        };
        assert_eq!(values("a sentence, of some 30 letters"), values("a sentence of some (30) letters."));
    }

    #[test]
    fn sentences_have_their_places_among_the_letters() {
        let points: Vec<u32> = "ab. first one here! second one, here".chars().map(u32::from).collect();
        let mut places = Vec::new();
        assert_eq!(each_sentence(&points, |_, place| places.push(place)), 27);
        assert_eq!(places, [2..14, 14..27]);
    }
}
