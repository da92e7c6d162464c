//! The rule: which pages are candidates, and which candidates are matches.
//!
//! Two things bring a candidate: a small distance, and a shared key if the rule uses keys. A condition bounds the
//! distance in one channel or in both. The index of the channel with the smaller bound finds the candidate, so that
//! bound is at most 7; the other bound is only checked and may be wider. Any condition suffices.
//!
//! A candidate is a match if any row of the table holds; rows look at the evidence. A rule without a table is `SimHash`
//! alone: every candidate is a match. Pages with the same text match under every rule. Wang & Wang's combined
//! similarity is an option: alone, or as a bound of a row.

use std::f64::consts::PI;
use std::fmt::{self, Display, Formatter};

use crate::error::{Result, TableError};
use crate::evidence::Evidence;
use crate::guards::Guards;
use crate::similarity::{
    Combined, Distance, Fraction, MAX_RADIUS, Similarity, most_bits_apart, sketch_distance, statements_jaccard,
};
use crate::stream::score::Card;

/// Letters from which shingles suffice: about fifty tokens, 300 letters of an alphabet. Shorter texts must be the same.
pub const LONG: u32 = 160;

/// Estimated share of the smaller page's shingles from which the other page contains it completely.
pub const CONTAINED: f64 = 0.9;

/// Rough Jaccard similarity below which a candidate is not compared.
///
/// At 0.15 one page may contain the other beside five times as much text.
pub const MIN_JACCARD: f64 = 0.15;

/// Letters of the longer page for one of the shorter, above which the rest is another article, or several.
pub const MIN_LENGTH_RATIO: f64 = 1.5;

/// A quantity of two pages.
type Quantity = fn(&Similarity) -> f64;

/// Quantities that a row bounds from below, by name, but for `jaccard`, `figures` and `combined`.
pub const AT_LEAST: [(&str, Quantity); 5] = [
    ("min_letters", |pages| pages.min_letters),
    ("containment", |pages| pages.containment),
    ("title", |pages| pages.title),
    ("title_on_host", |pages| pages.title_on_host),
    ("metadata", |pages| pages.metadata().map_or(0.0, Fraction::value)),
];

/// Quantities that a row bounds from above, by name.
pub const AT_MOST: [(&str, Quantity); 4] = [
    ("series", |pages| pages.series()),
    ("length_ratio", |pages| pages.length_ratio),
    ("words_distance", |pages| pages.words_distance),
    ("body_distance", |pages| pages.body_distance),
];

/// A row of the rule table: two pages match if every bound holds.
#[derive(Clone, Debug)]
pub struct Row {
    /// Quoted by the reason of a verdict.
    pub name: String,
    /// Jaccard similarity, at least; above 0, so that pages without a common shingle never match.
    pub jaccard: f64,
    /// Other quantities, and what they are at least.
    pub at_least: Vec<(Quantity, f64)>,
    /// Quantities, and what they are at most.
    pub at_most: Vec<(Quantity, f64)>,
    /// 1 if every figure must be equal, with sign and unit; .5 if one page may have further figures.
    pub figures: Option<f64>,
    /// Wang & Wang's combined similarity for μ = .9, at least.
    pub combined: Option<f64>,
    /// The score, at least.
    pub score: Option<f64>,
}

impl Row {
    fn holds_but_for_figures(&self, pages: &Similarity, card: &Card) -> bool {
        pages.jaccard >= self.jaccard
            && self.at_least.iter().all(|(quantity, bound)| quantity(pages) >= *bound)
            && self.at_most.iter().all(|(quantity, bound)| quantity(pages) <= *bound)
            && self.combined.is_none_or(|bound| pages.combined(Combined::OF_ROWS).at_least(bound))
            && self.score.is_none_or(|bound| pages.score(card) >= bound)
    }

    fn holds(&self, pages: &Similarity, card: &Card) -> bool {
        self.figures.is_none_or(|bound| pages.figures >= bound) && self.holds_but_for_figures(pages, card)
    }
}

/// A condition on the Hamming distance of two pages in one channel or in both: it holds if every bound holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    words: Option<u32>,
    body: Option<u32>,
}

impl Condition {
    /// Bound the differing bits of each channel; none leaves the channel out.
    ///
    /// # Errors
    /// `Configuration`: no bound is given, the smaller one is above [`MAX_RADIUS`], or one is above 64.
    pub fn new(words: Option<u32>, body: Option<u32>) -> Result<Self> {
        let smaller = words.into_iter().chain(body).min();
        if smaller.is_some_and(|bound| bound <= MAX_RADIUS) && words.max(body) <= Some(u64::BITS) {
            return Ok(Self { words, body });
        }
        let message = format!(
            "a condition needs one bound from 0 to {MAX_RADIUS} and none above 64, got words={words:?}, body={body:?}: \
             the block index finds candidates up to {MAX_RADIUS} bits away"
        );
        Err(TableError::Configuration(message))
    }

    fn holds(self, distance: Distance) -> bool {
        let is_within =
            |bits: Option<u32>, bound: Option<u32>| bound.is_none_or(|bound| bits.is_some_and(|bits| bits <= bound));
        is_within(distance.words, self.words) && is_within(distance.body, self.body)
    }

    /// Whether the index of `body` finds the candidates: the channel of the smaller bound, `body` of equal ones.
    fn probes_body(self) -> bool {
        self.body.is_some_and(|body| self.words.is_none_or(|words| words >= body))
    }
}

impl Display for Condition {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let bounds = [("body", self.body), ("words", self.words)];
        let parts = bounds.iter().filter_map(|(name, bound)| bound.map(|bound| format!("{name} ≤ {bound}")));
        formatter.write_str(&parts.collect::<Vec<_>>().join(" and "))
    }
}

/// What the rule looks at in one of two pages. Hashes and fingerprints are none where the page has no such text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Side<'a> {
    /// Fingerprint of the `words` channel.
    pub words: Option<u64>,
    /// Fingerprint of the `body` channel.
    pub body: Option<u64>,
    /// Hash of the exact form of the body.
    pub body_hash: Option<u64>,
    /// Hash of the exact form of title and body.
    pub text_hash: Option<u64>,
    /// Its evidence.
    pub evidence: Evidence<'a>,
}

impl Side<'_> {
    /// Differing bits in each channel.
    pub fn distance_to(&self, other: &Side) -> Distance {
        let bits = |one: Option<u64>, other: Option<u64>| Some((one? ^ other?).count_ones());
        Distance { words: bits(self.words, other.words), body: bits(self.body, other.body) }
    }

    /// Whether title and body are the same, or the body alone if it is long enough to say so.
    pub fn has_same_text(&self, other: &Side) -> bool {
        let is_same = |one: Option<u64>, other: Option<u64>| one.is_some() && one == other;
        is_same(self.text_hash, other.text_hash)
            || (is_same(self.body_hash, other.body_hash) && self.evidence.size.min(other.evidence.size) >= LONG)
    }
}

/// What makes two pages a match. Rows and conditions are given by their numbers in the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchedBy {
    /// Equal texts.
    SameText,
    /// A row of the table.
    Row(usize),
    /// A distance.
    Condition(usize),
    /// The combined similarity.
    Combined,
}

/// A candidate that the rule accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// How similar the pages are, 0 to 1, rounded to four places.
    pub score: f64,
    /// What held.
    pub by: MatchedBy,
}

/// A candidate that is no match, but that the verdict's reason names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NearMiss {
    /// One page contains the other completely and is more than half as long again.
    Containment {
        /// Estimated share, 0 to 1.
        containment: f64,
        /// Whether the new page contains the kept one; else it is the reverse.
        contains: bool,
    },
    /// A row would hold without its bound on figures.
    FigureChange {
        /// Jaccard similarity of the two, 0 to 1.
        jaccard: f64,
    },
}

impl NearMiss {
    /// The near miss with the highest rank gives the reason: 0 to 1 of containment, 1 to 2 of a changed figure.
    pub fn rank(self) -> f64 {
        match self {
            Self::Containment { containment, .. } => containment,
            Self::FigureChange { jaccard } => 1.0 + jaccard,
        }
    }

    /// The beginning of a verdict's reason; the name of the kept page follows.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Containment { contains: true, .. } => "contains",
            Self::Containment { .. } => "is contained in",
            Self::FigureChange { .. } => "differs in a figure from",
        }
    }
}

/// What the rule says of a candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compared {
    /// It is a near-duplicate.
    Match(Match),
    /// It is none, but the reason names it.
    NearMiss(NearMiss),
    /// It is none.
    Nothing,
}

/// Which pages are candidates, and which candidates are matches.
#[derive(Clone, Debug)]
pub struct Rule {
    conditions: Vec<Condition>,
    combined: Option<Combined>,
    rows: Vec<Row>,
    card: Card,
    most_bits: u32,
    /// Whether pages that share a key are candidates, too.
    pub keys: bool,
    /// Bounds beyond which a match is not accepted.
    pub guards: Guards,
}

impl Rule {
    /// Return the rule. conditions: distances that make a candidate. combined: as the whole rule, or none. rows: of the
    /// table; without one conditions and combined similarity decide. card: of the score that rows bound.
    ///
    /// # Errors
    /// `Configuration`: the rule finds no candidates, has keys without a table, has a table and the combined
    /// similarity, or has a row without a Jaccard similarity above 0.
    pub fn new(
        conditions: Vec<Condition>,
        combined: Option<Combined>,
        keys: bool,
        rows: Vec<Row>,
        card: Card,
        guards: Guards,
    ) -> Result<Self> {
        let refusal = if conditions.is_empty() && combined.is_none() && !keys {
            "a rule that finds no candidates matches nothing: give it a condition, or keys"
        } else if keys && rows.is_empty() {
            "a shared key does not prove a match: give the rule a table to verify candidates"
        } else if combined.is_some() && !rows.is_empty() {
            "μ is a complete rule: leave out either μ or the table"
        } else if !rows.iter().all(|row| row.jaccard > 0.0) {
            "each row needs a jaccard above 0: pages without a common shingle never match"
        } else {
            let rule = Self { conditions, combined, rows, card, most_bits: 0, keys, guards };
            return Ok(Self { most_bits: most_bits_apart(rule.min_rough_jaccard()).unwrap_or(0), ..rule });
        };
        Err(TableError::Configuration(refusal.to_owned()))
    }

    /// Whether candidates are verified by a table.
    pub fn verified(&self) -> bool {
        !self.rows.is_empty()
    }

    /// The rough Jaccard similarity below which no row can hold: a quarter below the lowest bound, as estimates are.
    pub fn min_rough_jaccard(&self) -> f64 {
        self.rows.iter().map(|row| 0.75 * row.jaccard).fold(MIN_JACCARD, f64::min)
    }

    /// Bits in which the sketches of two pages differ at most that a row of the table may hold for; none without a table.
    pub fn most_apart(&self) -> Option<u32> {
        self.verified().then_some(self.most_bits)
    }

    /// How far the block index of `words` must search, in bits; none if the rule needs no such index.
    pub fn words_radius(&self) -> Option<u32> {
        let bounds = self.conditions.iter().filter(|condition| !condition.probes_body());
        bounds.filter_map(|condition| condition.words).chain(self.combined.map(Combined::radius)).max()
    }

    /// How far the block index of `body` must search, in bits; none if the rule needs no such index.
    pub fn body_radius(&self) -> Option<u32> {
        let bounds = self.conditions.iter().filter(|condition| condition.probes_body());
        bounds.filter_map(|condition| condition.body).max()
    }

    /// What the rule says of a page and a candidate. common: values of sentences that the host of either page repeats,
    /// ascending. `same_host`: whether both are of one host. Only with a table there are near misses.
    pub fn compare(&self, kept: &Side, page: &Side, common: &[u32], same_host: bool) -> Compared {
        let distance = kept.distance_to(page);
        if page.has_same_text(kept) {
            return Compared::Match(Match { score: 1.0, by: MatchedBy::SameText });
        }
        if self.verified() {
            return self.compare_evidence(&kept.evidence, &page.evidence, distance, common, same_host);
        }
        let near = self.conditions.iter().position(|condition| condition.holds(distance)).map(|number| {
            let score = score_of(distance).unwrap_or(0.0);
            Match { score, by: MatchedBy::Condition(number) }
        });
        let by_distance = near.or_else(|| self.compare_combined(&kept.evidence, &page.evidence, distance));
        by_distance.map_or(Compared::Nothing, Compared::Match)
    }

    fn compare_evidence(
        &self,
        kept: &Evidence,
        page: &Evidence,
        distance: Distance,
        common: &[u32],
        same_host: bool,
    ) -> Compared {
        let (Some(one), Some(other)) = (kept.sketch(), page.sketch()) else { return Compared::Nothing };
        if kept.shingles == 0 || page.shingles == 0 || sketch_distance(one, other) > self.most_bits {
            return Compared::Nothing;
        }
        let pages = Similarity::of(kept, page, distance, common, same_host);
        if let Some(number) = self.rows.iter().position(|row| row.holds(&pages, &self.card)) {
            return Compared::Match(Match { score: rounded(pages.jaccard), by: MatchedBy::Row(number) });
        }
        let mut exact = self.rows.iter().filter(|row| row.figures.is_some_and(|bound| bound > 0.0));
        if exact.any(|row| row.holds_but_for_figures(&pages, &self.card)) {
            return Compared::NearMiss(NearMiss::FigureChange { jaccard: pages.jaccard });
        }
        if pages.length_ratio <= MIN_LENGTH_RATIO || pages.containment < CONTAINED {
            return Compared::Nothing;
        }
        let contains = page.letters > kept.letters;
        Compared::NearMiss(NearMiss::Containment { containment: pages.containment, contains })
    }

    fn compare_combined(&self, kept: &Evidence, page: &Evidence, distance: Distance) -> Option<Match> {
        let combined = self.combined.filter(|combined| distance.words.is_some_and(|bits| bits <= combined.radius()))?;
        let metadata = statements_jaccard(kept.metadata, page.metadata);
        let similarity = combined.similarity(distance.words?, metadata);
        let score = rounded(similarity.value());
        similarity.at_least(Combined::THRESHOLD).then_some(Match { score, by: MatchedBy::Combined })
    }

    /// What held, as the reason of a verdict says it.
    pub fn reason(&self, by: MatchedBy) -> String {
        match by {
            MatchedBy::SameText => "same text".to_owned(),
            MatchedBy::Combined => "combined similarity ≥ .25".to_owned(),
            MatchedBy::Row(number) => self.rows.get(number).map(|row| row.name.clone()).unwrap_or_default(),
            MatchedBy::Condition(number) => self.conditions.get(number).map(ToString::to_string).unwrap_or_default(),
        }
    }
}

/// Similarity from 0 to 1: the cosine that `SimHash` estimates, cos(π·d/64), averaged over the channels; none without a
/// distance.
///
/// Source: Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002, section 3.
pub fn score_of(distance: Distance) -> Option<f64> {
    let cosine = |bits: u32| f64::max(0.0, f64::cos(PI * f64::from(bits) / 64.0));
    let cosines = distance.words.into_iter().chain(distance.body).map(cosine);
    let (sum, count) = cosines.fold((0.0, 0.0), |(sum, count), cosine| (sum + cosine, count + 1.0));
    (count > 0.0).then(|| rounded(sum / count))
}

/// Round to four places as Python does: to the nearest decimal of the exact value, of two equally near ones to the
/// even.
fn rounded(value: f64) -> f64 {
    format!("{value:.4}").parse().unwrap_or(value)
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // quantities are to be equal bit for bit
mod tests {
    use super::*;
    use crate::evidence::tests::Fields;
    use crate::memory::mix64;
    use crate::stream::tokens::{Class, Token};

    fn row(jaccard: f64) -> Row {
        let name = format!("from {jaccard}");
        Row { name, jaccard, at_least: Vec::new(), at_most: Vec::new(), figures: None, combined: None, score: None }
    }

    fn table(rows: Vec<Row>) -> Rule {
        Rule::new(Vec::new(), None, true, rows, Card::default(), Guards::default()).unwrap()
    }

    /// A page of these characters, each another one.
    fn page(text: std::ops::Range<u64>, figures: u64) -> Vec<u8> {
        let letters = (text.end - text.start) as u32;
        let counts = [letters, letters, letters.saturating_sub(4), 0, 0];
        let sketch = [0; crate::evidence::sketch::BINS / 8];
        let (sentences, terms, numbers, metadata) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let tokens = text.map(|at| Token { hash: mix64(at), class: Class::Character }).collect();
        Fields { counts, figures, sketch, sentences, terms, numbers, metadata, tokens }.packed()
    }

    fn side(packed: &[u8]) -> Side<'_> {
        Side { evidence: Evidence::new(packed), ..Side::default() }
    }

    #[test]
    fn the_first_row_that_holds_makes_a_match() {
        let (kept, other) = (page(0..1000, 0), page(110..1110, 1)); // 886 of 1106 grams
        let exact = Row { figures: Some(1.0), ..row(0.7) };
        let compare = |rows: Vec<Row>| table(rows).compare(&side(&kept), &side(&other), &[], false);
        let number_of = |found| match found {
            Compared::Match(Match { score, by: MatchedBy::Row(number) }) if (0.8..0.82).contains(&score) => {
                Some(number)
            }
            _ => None,
        };
        assert_eq!(number_of(compare(vec![exact.clone(), row(0.8), row(0.7)])), Some(1));
        assert_eq!(number_of(compare(vec![row(0.9), exact.clone(), row(0.8)])), Some(2));
        let near = compare(vec![row(0.9), exact]);
        assert!(matches!(near, Compared::NearMiss(NearMiss::FigureChange { jaccard }) if jaccard > 0.8), "{near:?}");
        assert_eq!(compare(vec![Row { figures: Some(0.0), ..row(0.9) }]), Compared::Nothing);
    }

    #[test]
    fn a_page_that_holds_another_one_and_much_more_is_a_near_miss() {
        let (short, long) = (page(0..500, 0), page(0..1000, 0));
        let rule = table(vec![row(0.9)]);
        let contains = |found| match found {
            Compared::NearMiss(NearMiss::Containment { containment, contains }) if containment > 0.99 => Some(contains),
            _ => None,
        };
        assert_eq!(contains(rule.compare(&side(&short), &side(&long), &[], false)), Some(true));
        assert_eq!(contains(rule.compare(&side(&long), &side(&short), &[], false)), Some(false));
        assert_eq!(rule.compare(&side(&long), &side(&[]), &[], false), Compared::Nothing);
    }

    #[test]
    fn equal_texts_match_under_every_rule() {
        let [short, long] = [LONG - 1, LONG].map(|letters| page(0..u64::from(letters), 0));
        let same = Compared::Match(Match { score: 1.0, by: MatchedBy::SameText });
        let condition = Condition::new(Some(0), None).unwrap();
        let rule = Rule::new(vec![condition], None, false, Vec::new(), Card::default(), Guards::default()).unwrap();
        let text = Side { text_hash: Some(1), ..Side::default() };
        assert_eq!(rule.compare(&text, &text, &[], false), same);
        let body = |packed| Side { body_hash: Some(1), ..side(packed) };
        assert_eq!(rule.compare(&body(&long), &body(&long), &[], false), same);
        assert_eq!(rule.compare(&body(&long), &body(&short), &[], false), Compared::Nothing);
        assert_eq!(rule.compare(&Side::default(), &Side::default(), &[], false), Compared::Nothing);
    }

    #[test]
    fn without_a_table_distances_decide() {
        let conditions = [(Some(6), Some(16)), (None, Some(7)), (Some(2), None)];
        let conditions = conditions.map(|(words, body)| Condition::new(words, body).unwrap());
        assert_eq!(conditions[0].to_string(), "body ≤ 16 and words ≤ 6");
        let rule = Rule::new(conditions.to_vec(), None, false, Vec::new(), Card::default(), Guards::default()).unwrap();
        assert_eq!([rule.words_radius(), rule.body_radius()], [Some(6), Some(7)]);
        let kept = Side { words: Some(0), body: Some(0), ..Side::default() };
        let other = |words, body| Side { words: Some(words), body: Some(body), ..Side::default() };
        let compare = |words, body| rule.compare(&kept, &other(words, body), &[], false);
        let matched = |score, number| Compared::Match(Match { score, by: MatchedBy::Condition(number) });
        assert_eq!(compare(7, 0xFFFF), matched(0.8481, 0));
        assert_eq!(compare(0x7F, 0x7F), matched(0.9415, 1));
        assert_eq!(compare(0x7F, 0xFF), Compared::Nothing);
        assert_eq!(rule.reason(MatchedBy::Condition(1)), "body ≤ 7");
        assert_eq!(rule.reason(MatchedBy::Row(9)), "");
    }

    #[test]
    fn combined_similarity_may_be_the_whole_rule() {
        let rule = |mu| {
            Rule::new(Vec::new(), Combined::new(mu).ok(), false, Vec::new(), Card::default(), Guards::default())
                .unwrap()
        };
        let (kept, other) = (Side { words: Some(0), ..Side::default() }, Side { words: Some(7), ..Side::default() });
        let matched = Compared::Match(Match { score: 0.25, by: MatchedBy::Combined });
        assert_eq!(rule(900).compare(&kept, &other, &[], false), matched);
        assert_eq!(rule(900).compare(&kept, &Side { words: Some(15), ..kept }, &[], false), Compared::Nothing);
        assert_eq!([rule(900).words_radius(), rule(900).body_radius()], [Some(5), None]);
    }

    #[test]
    fn rules_and_conditions_that_find_nothing_are_refused() {
        let rule = |rows, keys, mu: u64| {
            Rule::new(Vec::new(), Combined::new(mu).ok(), keys, rows, Card::default(), Guards::default())
                .map(|rule| rule.verified())
        };
        assert_eq!(rule(vec![row(0.1)], true, 0), Ok(true));
        assert!(rule(vec![row(0.0)], true, 0).is_err() && rule(vec![row(f64::NAN)], true, 0).is_err());
        assert!(rule(vec![row(0.1)], true, 900).is_err() && rule(vec![], true, 0).is_err());
        assert!(rule(vec![], false, 0).is_err() && rule(vec![], false, 900).is_ok());
        let refused = [(None, None), (Some(8), None), (Some(8), Some(9)), (Some(3), Some(65))];
        assert!(refused.into_iter().all(|(words, body)| Condition::new(words, body).is_err()));
        assert!(Condition::new(Some(64), Some(7)).is_ok());
    }

    #[test]
    fn scores_are_rounded_as_python_does() {
        for (value, to) in [(1.0 / 32.0, 0.0312), (3.0 / 32.0, 0.0938), (0.00005, 0.0001), (1.0, 1.0), (0.0, 0.0)] {
            assert_eq!(rounded(value).to_bits(), f64::to_bits(to), "{value}");
        }
    }
}
