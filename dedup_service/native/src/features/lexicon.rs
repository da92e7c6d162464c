//! What is known of words before any page is read: IDF, stop words and markers.
//!
//! idf(i) = log(|D| / |{j : tᵢ ∈ dⱼ}|). A word that the table lacks gets the median of the table, as in jieba. A table
//! is a text of lines `word value`, the value a plain decimal (source: Wang & Wang 2019, section 2; Zhang & He 2020 use
//! the same). A marker word announces a sentence that carries the point (总之, 但是, in conclusion; source: Zhang & He
//! 2020).
//!
//! The tables do not change, so all threads share them. The kind of a word that they lack follows from its letters.

use std::collections::HashMap;

use super::cutter::Cutter;
use super::word_hash::xxh3_of;
use super::word_table::{Facts, Kind, WordTable};
use crate::characters::{PLANE, characters};
use crate::error::{Result, TableError};
use crate::segmentation::Segment;
use crate::segmentation::jieba::JiebaCutter;
use crate::segmentation::scripts::Language;

const SENTENCE_ENDS: &str = "。.!?;…\n";
/// The place of the default among the IDF values.
const DEFAULT: u32 = 0;
const MAX_IDFS: usize = 1 << 24;
/// Digits of an IDF; more would overflow, and none needs them.
const MAX_DIGITS: u32 = 18;
/// Characters of a line in a message.
const SHOWN: usize = 80;

/// What a marker marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerBy {
    /// Nothing: the scheme has no markers.
    Nothing,
    /// The words of its sentence.
    Sentence,
    /// The words that contain it.
    Word,
}

/// Which words of a page are features, and what marks them.
#[derive(Clone, Copy, Debug)]
pub struct WordNeeds {
    /// Whether words of the title are.
    pub with_title: bool,
    /// What a marker marks.
    pub marker_by: MarkerBy,
    /// Words with fewer characters are not.
    pub min_chars: usize,
}

/// The word lists of a space, folded; an IDF table as text.
#[derive(Clone, Copy, Debug)]
pub struct WordLists<'a> {
    /// Lines `word value`, natural logarithms ≥ 0.
    pub idf: &'a str,
    /// Words that are no features.
    pub stop_words: &'a [String],
    /// Markers, which may be phrases.
    pub markers: &'a [String],
}

/// The word lists, ready to look up.
#[derive(Debug)]
pub struct Lexicon {
    /// Which words are features.
    pub needs: WordNeeds,
    words: WordTable,
    /// The different IDF values, the default first.
    idfs: Vec<f64>,
    /// The kinds of characters of the first plane as words, if all are too short to be features; else empty.
    singles: Vec<Kind>,
    /// Marker phrases as segments.
    phrases: Vec<Vec<Vec<u32>>>,
    /// Markers that mark the words that contain them.
    inside: Vec<Vec<u32>>,
}

impl Lexicon {
    /// Return the lists. Markers are cut as texts are.
    ///
    /// # Errors
    /// A configuration error with the first line of the IDF table that is not in its format.
    pub fn new(lists: &WordLists, needs: WordNeeds, cutter: &Cutter) -> Result<Self> {
        let lines = lists.idf.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let room = lines + lists.stop_words.len() + lists.markers.len() + SENTENCE_ENDS.len();
        let mut lexicon = Self {
            needs,
            words: WordTable::with_capacity(room),
            idfs: vec![1.0],
            singles: Vec::new(),
            phrases: Vec::new(),
            inside: Vec::new(),
        };
        lexicon.read_idf(lists.idf)?;
        for end in SENTENCE_ENDS.chars() {
            lexicon.change(&[end.into()], Kind::SENTENCE_END, true);
        }
        for word in lists.stop_words {
            lexicon.change(&points(word), Kind::FEATURE, false);
        }
        match needs.marker_by {
            MarkerBy::Nothing => {}
            MarkerBy::Word => lexicon.inside = lists.markers.iter().map(|marker| points(marker)).collect(),
            MarkerBy::Sentence => lexicon.read_markers(lists.markers, cutter)?,
        }
        if needs.min_chars > 1 {
            lexicon.singles = (0..PLANE).map(|code| lexicon.facts(xxh3_of(&[code]), &[code]).kind).collect();
        }
        Ok(lexicon)
    }

    fn read_idf(&mut self, text: &str) -> Result<()> {
        let (mut values, mut places) = (Vec::new(), HashMap::new());
        for (number, line) in text.split_terminator('\n').enumerate() {
            let (word, value) = entry(line).ok_or_else(|| {
                let shown = line.chars().take(SHOWN).collect::<String>();
                let expected = "expected 'word value', got";
                TableError::Configuration(format!(
                    "IDF table, line {}: {expected} '{}'",
                    number + 1,
                    shown.escape_debug()
                ))
            })?;
            values.push(value);
            let idf = *places.entry(value.to_bits()).or_insert_with(|| {
                self.idfs.push(value);
                self.idfs.len() as u32 - 1
            });
            let kind = kind_by_letters(word.chars().map(u32::from));
            self.words.insert(xxhash_rust::xxh3::xxh3_64(word.as_bytes()), Facts { kind, idf });
        }
        if self.idfs.len() > MAX_IDFS {
            let message = format!("an IDF table has up to {MAX_IDFS} different values, got {}", self.idfs.len());
            return Err(TableError::Configuration(message));
        }
        self.idfs[DEFAULT as usize] = median(&mut values).unwrap_or(1.0);
        Ok(())
    }

    fn read_markers(&mut self, markers: &[String], cutter: &Cutter) -> Result<()> {
        let mut jieba = JiebaCutter::default();
        for marker in markers {
            let (marker, mut segments) = (points(marker), Vec::new());
            cutter.cut(&marker, 0..marker.len(), Language::Other, &mut jieba, &mut segments)?;
            let mut words: Vec<Vec<u32>> = segments.into_iter().map(|segment| marker[segment].to_vec()).collect();
            match &words[..] {
                [] => {}
                [word] => self.change(word, Kind::MARKER, true),
                [first, ..] => {
                    self.change(first, Kind::PHRASE, true);
                    self.phrases.push(std::mem::take(&mut words));
                }
            }
        }
        Ok(())
    }

    fn change(&mut self, word: &[u32], kind: Kind, is_set: bool) {
        let hash = xxh3_of(word);
        let known = self.words.get(hash);
        let facts = known.unwrap_or_else(|| Facts { kind: kind_by_letters(word.iter().copied()), idf: DEFAULT });
        self.words.insert(hash, Facts { kind: facts.kind.with(kind, is_set), ..facts });
    }

    /// Ask memory for a word that is looked up later, by its [`xxh3_of`].
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.words.prefetch(hash);
    }

    /// Return the kind of a character as a word; None if it has to be looked up.
    #[inline]
    pub fn kind_of_single(&self, code: u32) -> Option<Kind> {
        self.singles.get(code as usize).copied()
    }

    /// Return what is known of a word, with its [`xxh3_of`].
    #[inline]
    pub fn facts(&self, hash: u64, word: &[u32]) -> Facts {
        let known = self.words.get(hash);
        let facts = known.unwrap_or_else(|| Facts { kind: kind_by_letters(word.iter().copied()), idf: DEFAULT });
        let is_short = word.len() < self.needs.min_chars;
        if is_short { Facts { kind: facts.kind.with(Kind::FEATURE, false), ..facts } } else { facts }
    }

    /// Return the inverse document frequency of a word.
    pub fn idf(&self, facts: Facts) -> f64 {
        self.idfs[facts.idf as usize]
    }

    /// Whether a marker phrase begins with a segment, in the segments from it on.
    pub fn begins_phrase(&self, text: &[u32], segments: &[Segment]) -> bool {
        let is_here = |phrase: &Vec<Vec<u32>>| {
            segments.len() >= phrase.len()
                && phrase.iter().zip(segments).all(|(word, segment)| text[segment.clone()] == word[..])
        };
        self.phrases.iter().any(is_here)
    }

    /// Whether a word contains a marker that marks it: what the paper literally says.
    pub fn has_marker_inside(&self, word: &[u32]) -> bool {
        self.inside.iter().any(|marker| word.windows(marker.len().max(1)).any(|part| part == &marker[..]))
    }
}

/// Return the word and the value of a line.
fn entry(line: &str) -> Option<(&str, f64)> {
    let (word, value) = line.rsplit_once(' ')?;
    if word.is_empty() { None } else { Some((word, decimal(value)?)) }
}

/// Return a plain decimal, as exact as `f64` up to 15 digits; None if it is not one.
fn decimal(text: &str) -> Option<f64> {
    let (mut number, mut scale, mut digits, mut has_point) = (0_u64, 1.0, 0, false);
    for byte in text.bytes() {
        match byte {
            b'.' if !has_point => has_point = true,
            b'0'..=b'9' if digits < MAX_DIGITS => {
                digits += 1;
                number = number * 10 + u64::from(byte - b'0');
                scale *= if has_point { 10.0 } else { 1.0 };
            }
            b'0'..=b'9' if has_point => {}
            _ => return None,
        }
    }
    (digits > 0).then_some(number as f64 / scale)
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    let upper = *values.get(half)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(values[half - 1], upper) })
}

/// Return the kind of a word that no list has: a feature if it has a letter or digit.
fn kind_by_letters(word: impl Iterator<Item = u32>) -> Kind {
    let (characters, mut word) = (characters(), word);
    Kind::default().with(Kind::FEATURE, word.any(|code| characters.is_alphanumeric(code)))
}

fn points(text: &str) -> Vec<u32> {
    text.chars().map(u32::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_decimal_is_digits_with_one_point_at_most() {
        let numbers =
            [("12.5", 12.5), ("7", 7.0), (".5", 0.5), ("3.", 3.0), ("0.1234567890123456789", 0.123_456_789_012_345_68)];
        for (text, number) in numbers {
            assert!(decimal(text).is_some_and(|found| (found - number).abs() < 1e-15), "{text}");
        }
        for text in ["", ".", "1.2.3", "-1", "1e3", "nan", "1234567890123456789", "１"] {
            assert_eq!(decimal(text), None, "{text}");
        }
    }

    #[test]
    fn a_line_is_a_word_and_its_value() {
        assert_eq!(entry("two words 1.5"), Some(("two words", 1.5)));
        assert!([" 1.5", "word", "word x", "", "word 1.5 "].iter().all(|line| entry(line).is_none()));
    }

    #[test]
    fn the_default_is_the_median() {
        assert_eq!(median(&mut []), None);
        assert_eq!([median(&mut [3.0, 1.0, 2.0]), median(&mut [4.0, 1.0, 2.0, 3.0])], [Some(2.0), Some(2.5)]);
    }
}
