//! The similarity of two pages, by their evidence: the quantities that a rule sets bounds on.
//!
//! Containment follows from the Jaccard similarity J and the sizes: |A ∩ B| = J·(|A| + |B|)/(1 + J). Shares refer to
//! the page that has fewer, so a page that was cut or lengthened still shares everything it has. Every quantity is the
//! same in both orders, which is why the verdict on a pair does not depend on which page came first.
//!
//! Common sentences are the own text of a host. A sketch cannot be taken apart, but the sizes that it estimates can: of
//! the shingles that two pages share, those of common sentences in both are subtracted, and of the shingles that either
//! has, those of common sentences in either. A sentence brings as many shingles as its letters times the page's
//! shingles a letter. Of a page with many sentences only those with the smallest hashes are known, the same part for
//! each page. The letters of all its common sentences are then estimated by their share of the letters that are known.
//!
//! Source: Wang & Wang 2019 (metadata as one set, `MinHash`, combined similarity); Broder 1997 (`MinHash`); Dahlgaard,
//! Knudsen, Thorup, "Fast similarity sketching", FOCS 2017, and Li and König, "b-bit minwise hashing", WWW 2010
//! (sketch).

use std::cell::RefCell;

use crate::error::{Result, TableError};
use crate::evidence::metadata::{Metadata, PERMUTATIONS};
use crate::evidence::sentences::{LETTERS_A_QUARTER, LONGEST};
use crate::evidence::sketch::{self, Sketch};
use crate::evidence::{Evidence, MAX_NUMBERS, MAX_SENTENCES};
use crate::memory::vectorised;
use crate::stream::compare::{Comparer, Quantities};
use crate::stream::score::Card;

/// The largest distance, in bits, at which the block index finds candidates.
pub const MAX_RADIUS: u32 = 7;

/// Share of title terms in common from which two pages of one host have one title.
const SERIES_TITLE: f64 = 0.8;
/// Share of the places that differ in which a word of one title alone stands, from which two pages are of two things.
const OTHER_SUBJECT: f64 = 0.4;
/// Share of a page's own shingles that a kept page of a template has at least, by sketches, to be compared.
///
/// What is left of an estimate of both after the template was subtracted is noise: at a template of .8 its standard error
/// is .14 of the own shingles, so one in 500 pages of the site passes.
const OWN_IN_COMMON: f64 = 0.4;
/// Tokens that a page needs to be compared by them: a list of links has few.
const MIN_TOKENS: usize = 30;
/// Bits of a sketch.
const BINS: u32 = sketch::BINS as u32;

thread_local! {
    /// Of each thread, so that its parts need no new memory.
    static COMPARER: RefCell<Comparer> = RefCell::default();
}

/// In how many bits two sketches differ.
#[inline]
pub fn sketch_distance(one: &Sketch, other: &Sketch) -> u32 {
    vectorised(
        #[inline(always)]
        || {
            let mut differing = 0;
            for (one, other) in one.chunks_exact(8).zip(other.chunks_exact(8)) {
                differing += (word(one) ^ word(other)).count_ones();
            }
            differing
        },
    )
}

/// A word of 8 bytes.
#[inline(always)]
#[allow(clippy::inline_always)] // as `vectorised` says
fn word(bytes: &[u8]) -> u64 {
    u64::from_le(bytemuck::pod_read_unaligned(bytes))
}

/// In how many bits sketches differ at most that say a Jaccard similarity of `min_jaccard`; none of more than 1.
pub fn most_bits_apart(min_jaccard: f64) -> Option<u32> {
    (0..=BINS).rev().find(|&differing| sketch_jaccard(differing) >= min_jaccard)
}

/// Estimated Jaccard similarity of the shingles of two pages whose sketches differ in so many bits, 0 to 1.
fn sketch_jaccard(differing: u32) -> f64 {
    f64::max(0.0, 1.0 - 2.0 * f64::from(differing) / f64::from(BINS))
}

/// Jaccard similarity that sketches say at least of pages that may have `min_jaccard`; sizes: their shingles.
///
/// Sketches say .15 of one in 3,000 pairs of strangers, and .2 of one in 300,000. Where one page is five times as large
/// as the other, .15 may be all of the smaller one; of pages of one size, a third more is asked.
fn least_rough_jaccard(min_jaccard: f64, sizes: [f64; 2]) -> f64 {
    let ratio = f64::max(sizes[0], sizes[1]) / f64::max(1.0, f64::min(sizes[0], sizes[1]));
    min_jaccard * (1.0 + (5.0 - f64::min(5.0, ratio)) / 12.0)
}

/// Differing bits of the fingerprints in each channel; none if a page has no fingerprint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distance {
    /// Of the `words` channel, 0 to 64.
    pub words: Option<u32>,
    /// Of the `body` channel, 0 to 64.
    pub body: Option<u32>,
}

/// The similarity of two pages.
///
/// Jaccard similarity, containment and lengths are those of the pages without common sentences; figures, titles and
/// distances are of all.
#[derive(Clone, Debug)]
pub struct Similarity<'a> {
    /// Estimated Jaccard similarity of the shingles, 0 to 1; 0 if a page has none.
    pub jaccard: f64,
    /// The same of the whole pages.
    pub whole_jaccard: f64,
    /// Estimated share of the smaller page's shingles that the larger one has, 0 to 1.
    pub containment: f64,
    /// Letters of the page with fewer, where 15 of an alphabet count as 8.
    pub min_letters: f64,
    /// Letters of the longer page for each letter of the shorter, 1 or more; infinite if one has none.
    pub length_ratio: f64,
    /// 1 if both pages have the same figures; .5 if one has those of the other and more; else 0.
    ///
    /// A figure is a value with its sign and unit. Figures are compared as often as they occur and without their order,
    /// by a digest of all of them. Only pages of up to [`MAX_NUMBERS`] numbers can have .5: of more, the evidence does
    /// not say which were added, so any difference counts as a changed figure.
    pub figures: f64,
    /// Jaccard similarity of the terms of the titles, 0 to 1; 0 if one has no title.
    pub title: f64,
    /// The same for two pages of one host that have titles; 1 for any others.
    pub title_on_host: f64,
    /// Letters of the common sentences in each page, at most all; estimated if its sentences were sampled.
    pub common_letters: [f64; 2],
    /// Differing bits in the `words` channel; infinite if one page has no fingerprint.
    pub words_distance: f64,
    /// Differing bits in the `body` channel; infinite if one page has no fingerprint.
    pub body_distance: f64,
    words: Option<u32>,
    statements: [&'a [u8]; 2],
    same_host: bool,
    texts: [OwnText; 2],
    common_in_both: f64,
    intersection: f64,
    quantities: Quantities,
}

impl<'a> Similarity<'a> {
    /// Compare two pages. common: values of sentences that a host of the two repeats, ascending.
    pub fn of(one: &Evidence<'a>, other: &Evidence<'a>, distance: Distance, common: &[u32], same_host: bool) -> Self {
        let title = title(one, other);
        let shared = common_in_both(one, other, common);
        let texts = [one, other].map(|page| OwnText::of(page, common));
        let (compared, held) = COMPARER.with_borrow_mut(|comparer| match (&one.stream, &other.stream) {
            (Some(ours), Some(theirs)) => (comparer.compare(ours, theirs), comparer.held()),
            _ => Default::default(),
        });
        let whole_jaccard = jaccard(one, other, &compared);
        let (intersection, union) = overlap(whole_jaccard, one, other, &texts, shared);
        let common_letters = texts[0].common_letters + texts[1].common_letters;
        let shorter = f64::min(texts[0].letters, texts[1].letters);
        let longer = f64::max(texts[0].letters, texts[1].letters);
        let pages = Self {
            jaccard: share(intersection, union).min(1.0),
            whole_jaccard,
            containment: share(intersection, f64::min(texts[0].shingles, texts[1].shingles)).min(1.0),
            min_letters: f64::max(0.0, f64::min(texts[0].size, texts[1].size)),
            length_ratio: if shorter > 0.0 { longer / shorter } else { f64::INFINITY },
            figures: figures(one, other),
            title,
            title_on_host: if same_host && one.terms().len().min(other.terms().len()) > 0 { title } else { 1.0 },
            common_letters: texts.map(|text| text.common_letters),
            words_distance: distance.words.map_or(f64::INFINITY, f64::from),
            body_distance: distance.body.map_or(f64::INFINITY, f64::from),
            words: distance.words,
            statements: [one.metadata, other.metadata],
            same_host,
            texts,
            common_in_both: shared * common_letters / (1.0 + shared),
            intersection,
            quantities: Quantities::default(),
        };
        let has_few = |page: &Evidence| page.stream.is_none_or(|stream| stream.tokens < MIN_TOKENS);
        let is_cut = is_cut(one) || is_cut(other);
        if has_few(one) || has_few(other) {
            pages
        } else if is_cut || common_letters > 0.0 {
            let quantities = pages.without_common_text(compared, held, is_cut);
            Self { quantities, ..pages }
        } else {
            Self { quantities: compared, ..pages }
        }
    }

    /// What the streams of tokens say of the two pages; nothing is held if one has too few.
    pub fn quantities(&self) -> &Quantities {
        &self.quantities
    }

    /// The quantities with the shares that are held of the pages' own text: streams have the common sentences, too.
    ///
    /// Of a page that was cut, the sketch says how much the other can hold of all of it.
    fn without_common_text(&self, quantities: Quantities, held: [f64; 2], is_cut: bool) -> Quantities {
        let own = [0, 1].map(|place| {
            let OwnText { letters, common_letters, shingles, .. } = self.texts[place];
            let held_letters = held[place] * (letters + common_letters) - self.common_in_both;
            let most = if is_cut { share(self.intersection, shingles) } else { 1.0 };
            share(f64::max(0.0, held_letters), letters).min(most)
        });
        let [one, other] = [0, 1].map(|place| self.texts[place].letters);
        let is_first_longer = one > other || (one.total_cmp(&other).is_eq() && own[0] <= own[1]);
        let [held_longer, held_shorter] = if is_first_longer { own } else { [own[1], own[0]] };
        Quantities { held_longer, held_shorter, ..quantities }
    }

    /// The score of the two pages by a card; see `stream::score`.
    pub fn score(&self, card: &Card) -> f64 {
        card.score(self.quantities(), self.min_letters)
    }

    /// 1 if the pages look like two items of a series: of one host, and either under one title, each with a number of its
    /// own at the beginning in the same words, or under titles that name two things, of which the text speaks where the pages differ.
    pub fn series(&self) -> f64 {
        let is_dated = self.title >= SERIES_TITLE && self.quantities().begin_with_own_numbers;
        f64::from(self.same_host && (is_dated || self.quantities().hunks_with_title >= OTHER_SUBJECT))
    }

    /// Jaccard similarity of keywords, tags and references, 0 to 1; none if one page states none.
    pub fn metadata(&self) -> Option<Fraction> {
        statements_jaccard(self.statements[0], self.statements[1])
    }

    /// The combined similarity of word distance and metadata, 0 to 1; 0 if one page has no fingerprint.
    pub fn combined(&self, by: Combined) -> Fraction {
        let nothing = Fraction { numerator: 0, denominator: 1 };
        self.words.map_or(nothing, |words| by.similarity(words, self.metadata()))
    }
}

/// Jaccard similarity of two packed sets of keywords, tags and references, exact if both are small; none if either is
/// empty, or not as a page has it.
pub fn statements_jaccard(one: &[u8], other: &[u8]) -> Option<Fraction> {
    let (one, other) = (Metadata::read(one)?, Metadata::read(other)?);
    if one.is_signature || other.is_signature {
        let equal = one.signature().into_iter().zip(other.signature()).filter(|(one, other)| one == other).count();
        return Some(Fraction { numerator: equal as u64, denominator: PERMUTATIONS });
    }
    let (either, both) = merged(one.values(), other.values())
        .fold((0, 0), |(either, both), (_, ours, theirs)| (either + 1, both + u64::from(ours && theirs)));
    Some(Fraction { numerator: both, denominator: either })
}

/// Jaccard similarity of the terms of two titles, 0 to 1; 0 if one has none.
fn title(one: &Evidence, other: &Evidence) -> f64 {
    let both = shared(one.terms(), other.terms()).count();
    share(both as f64, (one.terms().len() + other.terms().len() - both) as f64)
}

/// Whether a copy's title is that of its kept page, but for some added words: 7 in 10 terms of the shorter one are in
/// the other.
///
/// No title is not another one. But a kept page without a title has none that a copy's could be equal to: its copies'
/// titles count, or an untitled frame would absorb all articles of its site.
pub fn same_title(kept: &Evidence, copy: &Evidence) -> bool {
    let shorter = kept.terms().len().min(copy.terms().len());
    let both = shared(kept.terms(), copy.terms()).count();
    copy.terms().len() == 0 || (shorter > 0 && 10 * both >= 7 * shorter)
}

/// 1 if two pages have the same figures; .5 if one has those of the other and more; else 0.
fn figures(one: &Evidence, other: &Evidence) -> f64 {
    if one.figures == other.figures {
        return 1.0;
    }
    let (fewer, more) = if one.number_count < other.number_count { (one, other) } else { (other, one) };
    if more.number_count as usize > MAX_NUMBERS || fewer.number_count == more.number_count {
        return 0.0;
    }
    let mut others = more.numbers();
    let is_among = fewer.numbers().all(|number| others.find(|&other| other >= number) == Some(number));
    if is_among { 0.5 } else { 0.0 }
}

/// Share of the letters of common sentences that is in both pages; 0 if there are none.
fn common_in_both(one: &Evidence, other: &Evidence, common: &[u32]) -> f64 {
    let end = common_end(one.sentences(), other.sentences(), MAX_SENTENCES);
    let (mut in_both, mut in_either) = (0, 0);
    for (value, ours, theirs) in merged(one.sentences(), other.sentences()) {
        if end.is_some_and(|end| value > end) {
            break;
        }
        if common.binary_search(&value).is_ok() {
            in_either += letters_in(value);
            in_both += if ours && theirs { letters_in(value) } else { 0 };
        }
    }
    share(f64::from(in_both), f64::from(in_either))
}

/// Jaccard similarity of the shingles: of the seeds of two streams, which are the same passages, or as the sketches
/// estimate it if one is too long for that. A page without shingles is similar to none.
fn jaccard(one: &Evidence, other: &Evidence, compared: &Quantities) -> f64 {
    let is_fine = |page: &Evidence| page.stream.is_some_and(|stream| !stream.is_coarse);
    match (one.sketch(), other.sketch()) {
        _ if one.shingles == 0 || other.shingles == 0 => 0.0,
        _ if is_fine(one) && is_fine(other) => compared.seeds_in_both,
        (Some(ours), Some(theirs)) => sketch_jaccard(sketch_distance(ours, theirs)),
        _ => 0.0,
    }
}

fn is_cut(page: &Evidence) -> bool {
    page.stream.is_some_and(|stream| stream.is_cut())
}

/// Sizes of intersection and union of the shingles, without common sentences. shared: share of the letters of common
/// sentences that is in both. |A ∩ B| = J·(|A| + |B|)/(1 + J).
fn overlap(jaccard: f64, one: &Evidence, other: &Evidence, texts: &[OwnText; 2], shared: f64) -> (f64, f64) {
    let union = (f64::from(one.shingles) + f64::from(other.shingles)) / (1.0 + jaccard);
    let common = texts[0].common_shingles + texts[1].common_shingles;
    let both = shared * common / (1.0 + shared);
    let either = common - both;
    let intersection = f64::max(0.0, jaccard * union - both);
    (intersection, f64::max(intersection, union - either))
}

/// How much of a page is not common on its host.
#[derive(Clone, Copy, Debug)]
struct OwnText {
    letters: f64,
    common_letters: f64,
    size: f64,
    shingles: f64,
    common_shingles: f64,
}

impl OwnText {
    fn of(page: &Evidence, common: &[u32]) -> Self {
        let [letters, size, shingles] = [page.letters, page.size, page.shingles].map(f64::from);
        let is_cut = page.sentence_count as usize > MAX_SENTENCES;
        let found = common_letters(page, common, is_cut);
        let common_shingles = if letters > 0.0 { found * f64::min(1.0, shingles / letters) } else { 0.0 };
        let size = if found > 0.0 { size * (1.0 - found / letters) } else { size };
        Self {
            letters: letters - found,
            common_letters: found,
            size,
            shingles: shingles - common_shingles,
            common_shingles,
        }
    }
}

/// The letters that common sentences have in a page, at most all of them. `is_cut`: whether it has more sentences than
/// are known.
fn common_letters(page: &Evidence, common: &[u32], is_cut: bool) -> f64 {
    let found: u32 = shared(common.iter().copied(), page.sentences()).map(letters_in).sum();
    let scale = if is_cut { unknown_scale(page) } else { 1.0 };
    f64::min(f64::from(found) * scale, f64::from(page.letters))
}

/// How many times as many letters a page has as its known sentences, 1 or more; 1 if none is known.
fn unknown_scale(page: &Evidence) -> f64 {
    let known: u32 = page.sentences().map(letters_in).sum();
    if known > 0 { f64::max(1.0, f64::from(page.letters) / f64::from(known)) } else { 1.0 }
}

/// Letters of a sentence, as its value has them.
fn letters_in(value: u32) -> u32 {
    (value & LONGEST) * LETTERS_A_QUARTER
}

/// A share of something, 0 of nothing.
fn share(part: f64, all: f64) -> f64 {
    if all > 0.0 { part / all } else { 0.0 }
}

/// Walk through two ascending samples at once: each value, and which of them have it.
fn merged<T: Ord + Copy>(
    one: impl Iterator<Item = T>,
    other: impl Iterator<Item = T>,
) -> impl Iterator<Item = (T, bool, bool)> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || {
        let value = match (one.peek(), other.peek()) {
            (Some(&ours), Some(&theirs)) => ours.min(theirs),
            (Some(&only), None) | (None, Some(&only)) => only,
            (None, None) => return None,
        };
        Some((value, one.next_if_eq(&value).is_some(), other.next_if_eq(&value).is_some()))
    })
}

/// The values that are in two ascending samples.
fn shared<T: Ord + Copy>(one: impl Iterator<Item = T>, other: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let mut other = other.peekable();
    one.filter(move |value| {
        while other.next_if(|theirs| theirs < value).is_some() {}
        other.peek() == Some(value)
    })
}

/// The largest value up to which two ascending samples are known; none if they are known completely.
///
/// A sample of `limit` values was cut off after its largest one. What follows is unknown, so it is not compared.
fn common_end<S: ExactSizeIterator<Item = u32> + DoubleEndedIterator>(one: S, other: S, limit: usize) -> Option<u32> {
    let end = |mut sample: S| if sample.len() == limit { sample.next_back() } else { None };
    [end(one), end(other)].into_iter().flatten().min()
}

/// A page without the own text of its host, to leave out quickly the pages that cannot be similar to it.
///
/// On a site whose template is most of each page, every kept page is a candidate by its sketch. Compared without the
/// host's own text, nearly none is similar. Only what is common in both pages is known here, so a page that passes may
/// still be less similar.
#[derive(Clone, Copy, Debug)]
pub struct Screen<'a> {
    sketch: Option<&'a Sketch>,
    common: &'a [u32],
    shingles: f64,
    own_shingles: f64,
    shingles_a_letter: f64,
    min_jaccard: f64,
}

impl<'a> Screen<'a> {
    /// Return the screen of a page. common: those of its sentences that are common on its host, ascending; without them
    /// the similarity is that of the sketches. `min_jaccard`: that a page which passes may have, at least.
    pub fn of(page: &Evidence<'a>, common: &'a [u32], min_jaccard: f64) -> Self {
        let shingles = f64::from(page.shingles);
        let a_letter = share(shingles, f64::from(page.letters)) * unknown_scale(page);
        let own_shingles = shingles - common_letters(page, common, false) * a_letter;
        let sketch = page.sketch().filter(|_| page.shingles > 0);
        Self { sketch, common, shingles, own_shingles, shingles_a_letter: a_letter, min_jaccard }
    }

    /// Whether a kept page may have the Jaccard similarity. A page without shingles is similar to none.
    pub fn passes(&self, sketch: &Sketch, shingles: u32, sentences: impl Iterator<Item = u32>) -> bool {
        let Some(own) = self.sketch else { return false };
        let jaccard = sketch_jaccard(sketch_distance(own, sketch));
        let sizes = [self.shingles, f64::from(shingles)];
        if shingles == 0 || jaccard < least_rough_jaccard(self.min_jaccard, sizes) {
            return false;
        }
        let union = (self.shingles + f64::from(shingles)) / (1.0 + jaccard);
        let both: u32 = shared(self.common.iter().copied(), sentences).map(letters_in).sum();
        let rest = f64::max(0.0, jaccard * union - f64::from(both) * self.shingles_a_letter);
        let least = if self.common.is_empty() { self.min_jaccard } else { self.min_jaccard.max(OWN_IN_COMMON) };
        rest >= least * f64::max(rest, self.own_shingles)
    }
}

/// An exact fraction from 0 to 1. The denominator is above 0 and below 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction {
    pub(crate) numerator: u64,
    pub(crate) denominator: u64,
}

impl Fraction {
    /// The nearest number.
    pub fn value(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// Whether it is at least a bound, exactly.
    pub fn at_least(self, bound: f64) -> bool {
        if bound < 1.0 / (1_u64 << 32) as f64 {
            return bound <= 0.0 || self.numerator > 0;
        }
        // From 2^-32 on, the lowest bit of the bound is 2^-84 or more.
        let scaled = (bound * (1_u128 << 84) as f64) as u128;
        bound <= 1.0 && u128::from(self.numerator) << 84 >= scaled * u128::from(self.denominator)
    }
}

/// Wang & Wang's combined similarity: μ/(H + 1) + (1 − μ)·J, of word distance H and metadata similarity J; pages are
/// similar from .25.
///
/// The paper prints "smaller than", which its own figures contradict. Thousandths make .9/6 + .1 exactly .25.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combined {
    mu_thousandths: u64,
}

impl Combined {
    /// The weight of the text of a bound in a row: μ = .9.
    pub const OF_ROWS: Self = Self { mu_thousandths: 900 };

    /// The similarity from which pages are near-duplicates.
    pub const THRESHOLD: f64 = 0.25;

    /// Return the similarity for a weight μ of the text, in thousandths.
    ///
    /// # Errors
    /// `Configuration`: μ is 0 or above 1.
    pub fn new(mu_thousandths: u64) -> Result<Self> {
        if (1..=1000).contains(&mu_thousandths) {
            return Ok(Self { mu_thousandths });
        }
        let mu = mu_thousandths as f64 / 1000.0;
        Err(TableError::Configuration(format!("μ must be above 0 and at most 1, got {mu}")))
    }

    /// The similarity, 0 to 1. words: distance in bits, at most 64. metadata: Jaccard similarity, none if either page
    /// states none.
    pub fn similarity(self, words: u32, metadata: Option<Fraction>) -> Fraction {
        let near = u64::from(words.min(u64::BITS)) + 1;
        let Some(Fraction { numerator, denominator }) = metadata else {
            return Fraction { numerator: 1, denominator: near };
        };
        let mu = self.mu_thousandths;
        Fraction {
            numerator: mu * denominator + (1000 - mu) * numerator * near,
            denominator: 1000 * near * denominator,
        }
    }

    /// The largest word distance at which pages can be similar, at least 3 and at most [`MAX_RADIUS`].
    pub fn radius(self) -> u32 {
        let same = Some(Fraction { numerator: 1, denominator: 1 });
        let reaches = |words: &u32| self.similarity(*words, same).at_least(Self::THRESHOLD);
        (4..=MAX_RADIUS).rev().find(reaches).unwrap_or(3)
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // quantities are to be equal bit for bit
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;
    use crate::evidence::metadata::{EXACT_LIMIT, pack};
    use crate::evidence::tests::{Fields, fields};
    use crate::memory::mix64;
    use crate::stream::score::tests::card;
    use crate::stream::tokens::{Class, Token};

    fn quantities(pages: &Similarity) -> Vec<f64> {
        let texts = [pages.jaccard, pages.containment, pages.min_letters, pages.length_ratio, pages.figures];
        let card = card(-3.0, [(1.0, 2.0); 9]);
        let titles = [pages.title, pages.title_on_host, pages.score(&card), pages.series()];
        let rest = [pages.words_distance, pages.body_distance, pages.combined(Combined::OF_ROWS).value()];
        [&texts[..], &titles, &rest].concat()
    }

    proptest! {
        #[test]
        fn both_orders_say_the_same(
            one in fields(),
            other in fields(),
            same_host: bool,
            words in 0..=64_u32,
            chosen in vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let (first, second) = (one.packed(), other.packed());
            let (first, second) = (Evidence::new(&first), Evidence::new(&second));
            let known: Vec<u32> = one.sentences.iter().chain(&other.sentences).copied().collect();
            let common = chosen.iter().filter(|_| !known.is_empty()).map(|place| *place.get(&known));
            let common: Vec<u32> = common.collect::<BTreeSet<_>>().into_iter().collect();
            let distance = Distance { words: Some(words), body: None };
            let pages = Similarity::of(&first, &second, distance, &common, same_host);
            let turned = Similarity::of(&second, &first, distance, &common, same_host);
            prop_assert_eq!(quantities(&pages), quantities(&turned));
            prop_assert!(quantities(&pages).iter().all(|quantity| !quantity.is_nan()));
        }

        #[test]
        fn titles_are_compared_as_sets(one in fields(), other in fields()) {
            let (first, second) = (one.packed(), other.packed());
            let (first, second) = (Evidence::new(&first), Evidence::new(&second));
            let pages = Similarity::of(&first, &second, Distance::default(), &[], true);

            let terms = |page: &Fields| page.terms.iter().copied().collect::<BTreeSet<_>>();
            let (ours, theirs) = (terms(&one), terms(&other));
            let (both, either) = (ours.intersection(&theirs).count(), ours.union(&theirs).count());
            prop_assert_eq!(pages.title, share(both as f64, either as f64));
            let is_bound = !ours.is_empty() && !theirs.is_empty();
            prop_assert_eq!(pages.title_on_host, if is_bound { pages.title } else { 1.0 });
            let is_most = ours.len().min(theirs.len()) * 7 <= both * 10;
            prop_assert_eq!(same_title(&first, &second), theirs.is_empty() || (!ours.is_empty() && is_most));
        }

        #[test]
        fn further_figures_are_no_changed_ones(
            of in fields(),
            chosen in vec(any::<bool>(), MAX_NUMBERS),
            changed: bool,
            count in 1..=MAX_NUMBERS as u32,
        ) {
            let kept = |(number, is_kept): (&u16, &bool)| is_kept.then_some(*number);
            let mut fewer: Vec<_> = of.numbers.iter().zip(&chosen).filter_map(kept).collect();
            if changed && !fewer.is_empty() {
                fewer[0] = 400;
                fewer.sort_unstable();
            }
            let is_changed = fewer.contains(&400);
            let more = Fields { figures: 1, counts: [0, 0, 0, count, 0], ..of.clone() }.packed();
            let fewer = Fields { figures: 2, counts: [0, 0, 0, count - 1, 0], numbers: fewer, ..of }.packed();
            let figures = figures(&Evidence::new(&fewer), &Evidence::new(&more));
            prop_assert_eq!(figures, if is_changed { 0.0 } else { 0.5 });
        }

        #[test]
        fn a_page_is_the_same_as_itself(of in fields()) {
            let packed = of.packed();
            let page = Evidence::new(&packed);
            let pages = Similarity::of(&page, &page, Distance::default(), &[], false);
            // Eight tokens weigh as much as a seed, of a long page too.
            let all = f64::from(u8::from(page.shingles > 0 && of.tokens.len() >= 8));
            prop_assume!(all > 0.0 || page.shingles == 0 || of.tokens.is_empty());
            prop_assert_eq!([pages.jaccard, pages.containment, pages.figures], [all, all, 1.0]);
            prop_assert_eq!(pages.min_letters, f64::from(page.size));
        }

        #[test]
        fn without_common_sentences_the_sketches_decide_what_passes(
            one in fields(),
            other in fields(),
            min_jaccard in 0.001..1.0,
        ) {
            let (first, second) = (one.packed(), other.packed());
            let (page, kept) = (Evidence::new(&first), Evidence::new(&second));
            let passes = Screen::of(&page, &[], min_jaccard).passes(&other.sketch, kept.shingles, kept.sentences());
            let differing = sketch_distance(&one.sketch, &other.sketch);
            let is_near = most_bits_apart(min_jaccard).is_some_and(|most| differing <= most);
            prop_assert_eq!(is_near, sketch_jaccard(differing) >= min_jaccard);
            let [smaller, larger] = [page.shingles.min(kept.shingles), page.shingles.max(kept.shingles)];
            // Without common text, only a larger page can have too much that the other lacks.
            let is_enough = sketch_jaccard(differing) >= least_rough_jaccard(min_jaccard, [smaller, larger].map(f64::from));
            prop_assert!(!passes || (is_near && is_enough && smaller > 0));
            prop_assert!(passes || !is_enough || smaller == 0 || larger > smaller);
        }

        #[test]
        fn metadata_is_compared_as_sets(
            one in btree_set(0..150_u64, 0..110),
            other in btree_set(0..150_u64, 0..110),
        ) {
            let packed = [&one, &other].map(|members| pack(members.iter().copied().collect()));
            let found = statements_jaccard(&packed[0], &packed[1]).map(Fraction::value);
            let (both, either) = (one.intersection(&other).count() as f64, one.union(&other).count() as f64);
            if one.is_empty() || other.is_empty() {
                prop_assert_eq!(found, None);
            } else if one.len().max(other.len()) <= EXACT_LIMIT {
                prop_assert_eq!(found, Some(both / either));
            } else {
                // Five standard errors of 128 permutations.
                prop_assert!(found.is_some_and(|found| (found - both / either).abs() < 0.23));
            }
        }

        #[test]
        fn metadata_of_strangers_is_none_or_a_share(one in vec(any::<u8>(), 0..40), other in vec(0..90_u8, 0..40)) {
            let found = statements_jaccard(&one, &other);
            prop_assert!(found.is_none_or(|found| found.value() <= 1.0));
        }

        #[test]
        fn fractions_are_compared_exactly(
            (numerator, denominator) in (1..u64::from(u32::MAX)).prop_flat_map(|below| (0..=below, Just(below))),
            of_2_50 in 0..=1_u64 << 50,
        ) {
            let fraction = Fraction { numerator, denominator };
            let bound = of_2_50 as f64 / (1_u64 << 50) as f64;
            let is_more = u128::from(numerator) << 50 >= u128::from(of_2_50) * u128::from(denominator);
            prop_assert_eq!(fraction.at_least(bound), is_more);
            let nearest = fraction.value().to_bits();
            prop_assert!(fraction.at_least(f64::from_bits(nearest.saturating_sub(1))));
            prop_assert!(!fraction.at_least(f64::from_bits(nearest + 1)));
        }
    }

    #[test]
    fn bounds_that_no_fraction_reaches_and_those_that_all_do() {
        let [nothing, least, all] = [(0, 1), (1, u64::from(u32::MAX)), (1, 1)]
            .map(|(numerator, denominator)| Fraction { numerator, denominator });
        assert!(nothing.at_least(0.0) && !nothing.at_least(f64::MIN_POSITIVE) && least.at_least(1e-300));
        assert!(all.at_least(1.0) && !all.at_least(f64::INFINITY) && !all.at_least(f64::NAN));
    }

    #[test]
    fn combined_similarity_reaches_a_quarter_up_to_its_radius() {
        let same = Some(Fraction { numerator: 1, denominator: 1 });
        assert!(Combined::OF_ROWS.similarity(5, same).at_least(Combined::THRESHOLD));
        assert!(Combined::OF_ROWS.similarity(3, None).at_least(Combined::THRESHOLD));
        let radii = [1, 900, 1000].map(|mu| Combined::new(mu).map(Combined::radius));
        assert_eq!(radii, [Ok(7), Ok(5), Ok(3)]);
        assert!(Combined::new(0).is_err() && Combined::new(1001).is_err());
    }

    #[test]
    fn pages_that_share_the_text_of_their_host_alone_are_not_similar() {
        let sentences: Vec<u32> = (1..=5).map(|number| number << 20 | 63).collect();
        let page = |text: std::ops::Range<u64>| Fields {
            counts: [1000, 1000, 996, 0, 5],
            figures: 0,
            sketch: [0; sketch::BINS / 8],
            sentences: sentences.clone(),
            terms: Vec::new(),
            numbers: Vec::new(),
            metadata: Vec::new(),
            tokens: text.map(|at| Token { hash: mix64(at), class: Class::Character }).collect(),
        };
        // The first 800 letters are in both; 756 letters, or 504, are common.
        let (first, second) = (page(0..1000), Fields { sketch: [3; sketch::BINS / 8], ..page(200..1200) });
        let (one, other) = (first.packed(), second.packed());
        let (page, kept) = (Evidence::new(&one), Evidence::new(&other));
        for (common, is_similar) in [(&sentences[..3], false), (&sentences[..1], true)] {
            let pages = Similarity::of(&page, &kept, Distance::default(), common, true);
            assert_eq!(pages.jaccard >= 0.5, is_similar, "{}", pages.jaccard);
            let screen = Screen::of(&page, common, 0.3);
            assert_eq!(screen.passes(&second.sketch, kept.shingles, kept.sentences()), is_similar);
        }
    }
}
