//! The words of a page, counted and weighed.
//!
//! The words are the distinct words of body and title, without stop words and punctuation. Counts are occurrences in the
//! body; a word of the title alone has a count of 1. A word is marked if a sentence of the body has both the word and a
//! marker. Markers are found before stop words are left out, since several words are both.
//!
//! The usual weight is (1 + ln n), times the IDF, the boost of the title and that of a marker.

use super::cutter::Cutter;
use super::lexicon::Lexicon;
use super::simhash::weighted;
use super::word_hash::{WordHash, xxh3_of};
use super::word_table::{Facts, Kind};
use crate::error::Result;
use crate::segmentation::Segment;
use crate::segmentation::jieba::JiebaCutter;
use crate::segmentation::scripts::Language;
use crate::text::page_text::BodyAndTitle;

/// The integer weight of a feature that weighs 1.
const FIXED_POINT: f64 = (1 << 20) as f64;
const LOGS: usize = 64;

/// How words are weighed: (1 + ln n), times what is on.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// Whether the IDF is a factor.
    pub by_idf: bool,
    /// The boost of words of the title; 1 for none.
    pub title: f64,
    /// The boost of marked words; 1 for none.
    pub marker: f64,
    /// Whether boosts are multiplied, not added.
    pub is_product: bool,
    /// The hash of words.
    pub hash: WordHash,
    /// Whether fingerprints have 128 bits, not 64.
    pub is_wide: bool,
}

/// A distinct word of a page that is a feature.
#[derive(Clone, Debug)]
pub struct CountedWord {
    /// Where it first occurs, in body and title.
    pub segment: Segment,
    /// Occurrences in the body, 1 for a word of the title alone.
    pub count: u32,
    /// Whether it is in the title.
    pub in_title: bool,
    /// Whether a marker marks it.
    pub is_marked: bool,
    /// Whether it was cut as Chinese where it first occurs.
    pub is_chinese: bool,
    /// Its inverse document frequency.
    pub idf: f64,
    /// Its xxh3 hash of 64 bits.
    pub hash: u64,
}

/// Counts the words of pages. It is kept for many pages, whose tables then need no new memory.
#[derive(Default)]
pub struct WordCounter {
    jieba: JiebaCutter,
    segments: Vec<Segment>,
    /// Of each segment.
    words: Vec<Word>,
    distinct: DistinctWords,
    hashes: [Vec<u64>; 2],
    weights: Vec<i64>,
    logs: Vec<f64>,
}

/// A segment: its kind if it is a character that cannot be a feature, else its place among the distinct words.
#[derive(Clone, Copy)]
enum Word {
    Single(Kind),
    Distinct(u32),
}

/// The distinct words of a page, in the order in which they first occur.
#[derive(Default)]
struct DistinctWords {
    all: Vec<DistinctWord>,
    /// Which of them is there, from 1 on; at most half full, as many as a power of two.
    places: Vec<u32>,
}

struct DistinctWord {
    hash: u64,
    segment: Segment,
    facts: Facts,
    in_body: u32,
    in_title: bool,
    is_marked: bool,
}

impl WordCounter {
    /// Return the fingerprint of the weighted words of a page; None without words.
    ///
    /// # Errors
    /// Those of [`Cutter::cut`].
    pub fn simhash(
        &mut self,
        page: &BodyAndTitle,
        language: Language,
        cutter: &Cutter,
        lexicon: &Lexicon,
        by: &Weights,
    ) -> Result<Option<u128>> {
        self.find(page, language, cutter, lexicon)?;
        let [low, high] = &mut self.hashes;
        low.clear();
        high.clear();
        self.weights.clear();
        if self.logs.is_empty() {
            self.logs.extend((0..LOGS).map(|count| log_of(count as u32)));
        }
        for word in self.distinct.features() {
            let hash = by.hash.of(&page.points()[word.segment.clone()], word.hash, by.is_wide);
            low.push(hash as u64);
            high.push((hash >> 64) as u64);
            let count = word.in_body.max(1);
            let log = self.logs.get(count as usize).copied().unwrap_or_else(|| log_of(count));
            self.weights.push(by.weight(log, lexicon.idf(word.facts), word.in_title, word.is_marked));
        }
        let half = |hashes: &[u64]| u128::from(weighted(hashes, &self.weights));
        let high_half = if by.is_wide { half(high) << 64 } else { 0 };
        Ok((!low.is_empty()).then(|| high_half | half(low)))
    }

    /// Return the distinct words of a page, in the order in which they first occur.
    ///
    /// # Errors
    /// Those of [`Cutter::cut`].
    pub fn count(
        &mut self,
        page: &BodyAndTitle,
        language: Language,
        cutter: &Cutter,
        lexicon: &Lexicon,
    ) -> Result<Vec<CountedWord>> {
        let are_chinese = self.find(page, language, cutter, lexicon)?;
        let counted = self.distinct.features().map(|word| CountedWord {
            segment: word.segment.clone(),
            count: word.in_body.max(1),
            in_title: word.in_title,
            is_marked: word.is_marked,
            is_chinese: are_chinese[usize::from(word.segment.start >= page.body().len())],
            idf: lexicon.idf(word.facts),
            hash: word.hash,
        });
        Ok(counted.collect())
    }

    /// Find the distinct words; return whether body and title were cut as Chinese.
    fn find(
        &mut self,
        page: &BodyAndTitle,
        language: Language,
        cutter: &Cutter,
        lexicon: &Lexicon,
    ) -> Result<[bool; 2]> {
        let (text, body) = (page.points(), page.body().len());
        let end = if lexicon.needs.with_title { text.len() } else { body };
        self.segments.clear();
        let body_is_chinese = cutter.cut(text, 0..body, language, &mut self.jieba, &mut self.segments)?;
        let of_body = self.segments.len();
        let title_is_chinese = cutter.cut(text, body..end, language, &mut self.jieba, &mut self.segments)?;
        self.look_up(text, lexicon);
        self.count_body(text, of_body, lexicon);
        for word in &self.words[of_body..] {
            if let Word::Distinct(place) = *word {
                self.distinct.all[place as usize].in_title = true;
            }
        }
        Ok([body_is_chinese, title_is_chinese])
    }

    /// Look up the distinct words. First all are asked for: they wait for memory together.
    fn look_up(&mut self, text: &[u32], lexicon: &Lexicon) {
        let Self { segments, words, distinct, .. } = self;
        distinct.clear(segments.len());
        words.clear();
        words.extend(segments.iter().map(|segment| {
            let word = &text[segment.clone()];
            let single = if let [code] = *word { lexicon.kind_of_single(code) } else { None };
            single.map_or_else(|| Word::Distinct(distinct.place(xxh3_of(word), segment, lexicon)), Word::Single)
        }));
        for word in &mut distinct.all {
            let points = &text[word.segment.clone()];
            word.facts = lexicon.facts(word.hash, points);
            word.is_marked = lexicon.has_marker_inside(points);
        }
    }

    /// Count the words of the body, sentence by sentence.
    fn count_body(&mut self, text: &[u32], of_body: usize, lexicon: &Lexicon) {
        let (body, distinct) = (&self.words[..of_body], &mut self.distinct);
        let mut start = 0;
        while start < body.len() {
            let (mut end, mut is_marked) = (start, false);
            for word in &body[start..] {
                let kind = distinct.kind(*word);
                is_marked |= kind.has(Kind::MARKER)
                    || (kind.has(Kind::PHRASE) && lexicon.begins_phrase(text, &self.segments[end..]));
                end += 1;
                if kind.has(Kind::SENTENCE_END) {
                    break;
                }
            }
            for word in &body[start..end] {
                if let Word::Distinct(place) = *word {
                    let word = &mut distinct.all[place as usize];
                    word.in_body += 1;
                    word.is_marked |= is_marked;
                }
            }
            start = end;
        }
    }
}

impl DistinctWords {
    /// Forget all words, and make room for so many.
    fn clear(&mut self, words: usize) {
        self.all.clear();
        self.places.clear();
        self.places.resize((2 * words).next_power_of_two(), 0);
    }

    fn features(&self) -> impl Iterator<Item = &DistinctWord> {
        self.all.iter().filter(|word| word.facts.kind.has(Kind::FEATURE))
    }

    fn kind(&self, word: Word) -> Kind {
        match word {
            Word::Single(kind) => kind,
            Word::Distinct(place) => self.all[place as usize].facts.kind,
        }
    }

    /// Return the place of a word, which may be new.
    #[inline]
    fn place(&mut self, hash: u64, segment: &Segment, lexicon: &Lexicon) -> u32 {
        let mask = self.places.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            match self.places[slot] {
                0 => break,
                place if self.all[place as usize - 1].hash == hash => return place - 1,
                _ => slot = (slot + 1) & mask,
            }
        }
        lexicon.prefetch(hash);
        let (segment, facts) = (segment.clone(), Facts::default());
        self.all.push(DistinctWord { hash, segment, facts, in_body: 0, in_title: false, is_marked: false });
        self.places[slot] = self.all.len() as u32;
        self.places[slot] - 1
    }
}

impl Weights {
    /// Return the fixed-point weight of a word. log: 1 + ln n.
    fn weight(&self, log: f64, idf: f64, in_title: bool, is_marked: bool) -> i64 {
        let weight = if self.by_idf { log * idf } else { log };
        let of_title = if in_title { self.title } else { 1.0 };
        let of_marker = if is_marked { self.marker } else { 1.0 };
        let is_on = |boost: f64| boost.total_cmp(&1.0).is_ne();
        let boost = if self.is_product || !is_on(self.title) || !is_on(self.marker) {
            of_marker * of_title // a factor that is off is not part of the sum
        } else {
            of_marker + of_title
        };
        (weight * boost * FIXED_POINT).round_ties_even() as i64
    }
}

fn log_of(count: u32) -> f64 {
    1.0 + f64::from(count).ln()
}
