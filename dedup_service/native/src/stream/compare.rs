//! What two streams say of two pages: how much of each the other holds, and what differs.
//!
//! A seed is the shortest window of tokens that weighs as much as five characters, or three words (coarse: seven
//! characters); one at the end may weigh less, for a last token that is in no other. A token is held if a seed with it
//! occurs in the other page; order does not count. A hunk is a run of tokens that are not held. Two hunks are paired if
//! one begins where the token before the other was found; facts that stand on both sides of a pair and differ were
//! swapped.
//!
//! Every quantity is the same in both orders. Sources: Manber, "Finding similar files in a large file system", 1994
//! (equal passages by hashes of windows); docs/adr/0038 (the quantities, and what each is worth).

use super::grams::{GRAM, find_grams};
use super::packed::{CODES, MOST_TITLE, Stream, Tokens};

/// Weight of a seed, in thirds of a character.
pub(super) const SEED: [usize; 2] = [GRAM, 21];
/// Weight of the widest hunk whose facts can be swapped.
pub(super) const WIDE: usize = 180;
/// Facts that one hunk can swap.
pub(super) const MOST_SWAPPED: usize = 6;
/// How near to the cut of a page the other's last held token is, if what follows in the other was cut off.
pub(super) const NEAR_CUT: usize = 64;
/// Tokens at the beginning of a page among which its date is.
pub(super) const BEGINNING: usize = 24;
/// Weight of the widest hunk that is the date of an item of a series, and not another beginning of the same text.
pub(super) const DATE: usize = 75;
const NOWHERE: i32 = -1;

/// What is compared of two pages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quantities {
    /// Share of the page with more text that the other holds, 0 to 1.
    pub held_longer: f64,
    /// Share of the page with less text that the other holds, 0 to 1.
    pub held_shorter: f64,
    /// Hunks of both pages in a weight of 100 characters.
    pub hunks: f64,
    /// Facts that were swapped in a weight of 100 characters of the shorter page.
    pub swapped: f64,
    /// Share of numbers that were swapped, of those and the held ones, 0 to 1.
    pub swapped_numbers: f64,
    /// Share of the facts of the page with fewer that the other lacks, 0 to 1; two more are assumed.
    pub missing_facts: f64,
    /// Share of the facts of both that are in hunks, 0 to 1.
    pub facts_in_hunks: f64,
    /// Share of what only one title has that stands in its page's hunks, 0 to 1, the mean of both.
    pub title_in_hunks: f64,
    /// Jaccard similarity of their seeds, 0 to 1.
    pub seeds_in_both: f64,
    /// Share of the hunks in which something stands that only its page's title has, 0 to 1; 0 if one has no title.
    pub hunks_with_title: f64,
    /// Whether each page has a number at its beginning, as of a date in the same words, that the other does not hold.
    pub begin_with_own_numbers: bool,
}

/// Compares pages. It is kept for many, whose parts then need no new memory.
#[derive(Debug, Default)]
pub struct Comparer {
    pages: [Side; 2],
    table: Vec<u32>,
    starts: Vec<u32>,
    held: [f64; 2],
}

#[derive(Debug, Default)]
struct Side {
    tokens: Tokens,
    seeds: Vec<u64>,
    ends: Vec<u32>,
    /// For each seed, where the other page has it first.
    found: Vec<i32>,
    /// For each token, where the other page has it; [`NOWHERE`] in a hunk.
    held: Vec<i32>,
}

impl Comparer {
    /// Compare two pages.
    pub fn compare(&mut self, one: &Stream, other: &Stream) -> Quantities {
        let is_coarse = one.is_coarse || other.is_coarse;
        for (side, stream) in self.pages.iter_mut().zip([one, other]) {
            stream.decode(is_coarse, &mut side.tokens);
            side.find_seeds(SEED[usize::from(is_coarse)]);
        }
        let seeds_in_both = self.find_equal_seeds();
        for side in &mut self.pages {
            side.mark();
        }
        if is_coarse {
            let [ours, theirs] = &mut self.pages;
            ours.lengthen(&theirs.tokens.codes);
            theirs.lengthen(&ours.tokens.codes);
        }
        self.leave_out_what_was_cut([one, other]);
        self.quantities([one, other], is_coarse, seeds_in_both)
    }

    /// Share of the first page and of the second one that were compared last that the other holds, 0 to 1.
    pub fn held(&self) -> [f64; 2] {
        self.held
    }

    /// Find for each seed of a page where the other has it; return the Jaccard similarity of their seeds.
    fn find_equal_seeds(&mut self) -> f64 {
        let [one, other] = &mut self.pages;
        let (count, seeds) = (one.seeds.len(), one.seeds.len() + other.seeds.len());
        let bits = (2 * seeds).next_power_of_two().ilog2().max(4);
        self.table.clear();
        self.table.resize(1 << bits, 0);
        let (mask, shift) = (self.table.len() - 1, u64::BITS - bits);
        let (mut distinct, mut in_both) = (0, 0);
        // The number of a seed, of those of both pages, that is equal and came first.
        let mut first_of = |at: usize, seed: u64, ours: &[u64], theirs: &[u64]| {
            let mut place = (seed >> shift) as usize;
            loop {
                match self.table[place] as usize {
                    0 => {
                        self.table[place] = at as u32 + 1;
                        distinct += 1;
                        return at;
                    }
                    first if first <= count && ours[first - 1] == seed => return first - 1,
                    first if first > count && theirs[first - 1 - count] == seed => return first - 1,
                    _ => place = (place + 1) & mask,
                }
            }
        };
        // For each seed of one, where it is first in one; then where it is first in the other.
        one.found.clear();
        for (at, &seed) in one.seeds.iter().enumerate() {
            one.found.push(first_of(at, seed, &one.seeds, &[]) as i32);
        }
        self.starts.clear();
        self.starts.resize(count, 0);
        other.found.clear();
        for (at, &seed) in other.seeds.iter().enumerate() {
            let first = first_of(count + at, seed, &one.seeds, &other.seeds);
            if first < count && self.starts[first] == 0 {
                self.starts[first] = at as u32 + 1;
                in_both += 1;
            }
            other.found.push(if first < count { first as i32 } else { NOWHERE });
        }
        for found in &mut one.found {
            *found = self.starts[*found as usize] as i32 - 1;
        }
        share(in_both, distinct)
    }

    /// Of a page that was cut, the other's text behind the last held token is unknown, and not different.
    fn leave_out_what_was_cut(&mut self, streams: [&Stream; 2]) {
        let ends = self
            .pages
            .each_ref()
            .map(|side| side.held.iter().rposition(|&held| held != NOWHERE).map_or(0, |at| at + 1));
        for (place, other) in [(0, 1), (1, 0)] {
            let reaches_cut = streams[other].is_cut() && streams[other].kept - ends[other] < NEAR_CUT;
            if reaches_cut {
                self.pages[place].held.truncate(ends[place].max(1));
            }
        }
    }

    fn quantities(&mut self, streams: [&Stream; 2], is_coarse: bool, seeds_in_both: f64) -> Quantities {
        let [one, other] = &self.pages;
        let weights = [one.weights(), other.weights()];
        let held = weights.map(|[held, all]| share(held, all));
        let lengths = [0, 1].map(|place| streams[place].tokens_weight(&weights[place]));
        // Of pages of one length, the one that is held less counts as the longer one.
        let is_first_longer = lengths[0] > lengths[1] || (lengths[0] == lengths[1] && held[0] <= held[1]);
        let [longer, shorter] = if is_first_longer { [0, 1] } else { [1, 0] };
        let all = weights[0][1] + weights[1][1];
        let least = weights[0][1].min(weights[1][1]).max(3);
        let hunks = one.hunks().count() + other.hunks().count();
        // A passage that is repeated is found where it is first, so pairs depend on the order: the mean of both.
        let swaps = [swaps(one, other, &mut self.starts), swaps(other, one, &mut self.starts)];
        let [facts, numbers] = [0, 1].map(|kind| swaps[0][kind] + swaps[1][kind]);
        let held_numbers = one.held_numbers().min(other.held_numbers());
        let [of_one, of_other] = [one.facts(), other.facts()];
        let titles = titles_in_hunks(streams, [one, other], is_coarse);
        let quantities = Quantities {
            held_longer: held[longer],
            held_shorter: held[shorter],
            hunks: 300.0 * share(hunks, all),
            swapped: 300.0 * share(facts, 2 * least),
            swapped_numbers: share(numbers, numbers + 2 * held_numbers),
            missing_facts: missing_facts(one, other),
            facts_in_hunks: share(of_one[1] + of_other[1], of_one[0] + of_other[0]),
            title_in_hunks: f64::midpoint(titles[0].0, titles[1].0),
            hunks_with_title: share(titles[0].1 + titles[1].1, hunks),
            seeds_in_both,
            begin_with_own_numbers: one.begins_with_own_number() && other.begins_with_own_number(),
        };
        self.held = held;
        quantities
    }
}

impl Stream<'_> {
    /// Which page is longer: by all its tokens if one was cut, by their weight otherwise.
    fn tokens_weight(&self, [_, all]: &[usize; 2]) -> usize {
        if self.is_cut() { self.tokens * 5 } else { *all }
    }
}

impl Side {
    fn find_seeds(&mut self, least: usize) {
        let tokens = &self.tokens;
        let (value, weight) = (|at: usize| u64::from(tokens.codes[at]) + 1, |at| tokens.weight(at));
        find_grams(tokens.codes.len(), value, weight, least, &mut self.seeds, &mut self.ends);
    }

    /// Mark the tokens of the seeds that were found.
    fn mark(&mut self) {
        self.held.clear();
        self.held.resize(self.tokens.codes.len(), NOWHERE);
        let mut done = 0;
        for (start, (&end, &found)) in self.ends.iter().zip(&self.found).enumerate() {
            if found == NOWHERE {
                continue;
            }
            let end = end as usize;
            for at in start.max(done)..end {
                self.held[at] = found + (at - start) as i32;
            }
            self.held[end - 1] = found + (end - 1 - start) as i32;
            done = done.max(end);
        }
    }

    /// Lengthen runs by equal tokens: coarse seeds are long.
    fn lengthen(&mut self, theirs: &[u8]) {
        let codes = &self.tokens.codes;
        for (at, code) in codes.iter().enumerate().skip(1) {
            if self.held[at] == NOWHERE && self.held[at - 1] != NOWHERE {
                let other = self.held[at - 1] + 1;
                if theirs.get(other as usize) == Some(code) {
                    self.held[at] = other;
                }
            }
        }
        for at in (0..codes.len().saturating_sub(1)).rev() {
            if self.held[at] == NOWHERE && self.held[at + 1] > 0 {
                let other = self.held[at + 1] - 1;
                if theirs[other as usize] == codes[at] {
                    self.held[at] = other;
                }
            }
        }
    }

    /// Weight of what the other page holds, and of all.
    fn weights(&self) -> [usize; 2] {
        let mut sums = [0; 2];
        for (at, &held) in self.held.iter().enumerate() {
            let weight = self.tokens.weight(at);
            sums[0] += if held == NOWHERE { 0 } else { weight };
            sums[1] += weight;
        }
        sums
    }

    fn weight_of(&self, (start, end): (usize, usize)) -> usize {
        (start..end).map(|at| self.tokens.weight(at)).sum()
    }

    /// Runs of tokens that are not held.
    fn hunks(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = at + self.held[at..].iter().position(|&held| held == NOWHERE)?;
            at = self.held[start..].iter().position(|&held| held != NOWHERE).map_or(self.held.len(), |run| start + run);
            Some((start, at))
        })
    }

    /// Whether a number at the beginning is not held, in a hunk with little else.
    fn begins_with_own_number(&self) -> bool {
        let is_number = |(start, end): (usize, usize)| {
            self.tokens.facts[start..end.min(BEGINNING)].contains(&2) && self.weight_of((start, end)) <= DATE
        };
        self.hunks().take_while(|&(start, _)| start < BEGINNING).any(is_number)
    }

    fn held_numbers(&self) -> usize {
        self.held.iter().zip(&self.tokens.facts).filter(|&(&held, &fact)| held != NOWHERE && fact == 2).count()
    }

    /// How many facts there are, and how many of them in hunks.
    fn facts(&self) -> [usize; 2] {
        let mut counts = [0; 2];
        for (&held, _) in self.held.iter().zip(&self.tokens.facts).filter(|(_, fact)| **fact > 0) {
            counts[0] += 1;
            counts[1] += usize::from(held == NOWHERE);
        }
        counts
    }

    fn fact_values(&self) -> Vec<u16> {
        let facts = self.tokens.facts[..self.held.len()].iter().zip(&self.tokens.values);
        let mut values: Vec<u16> = facts.filter(|(fact, _)| **fact > 0).map(|(_, &value)| value).collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}

/// Facts, and numbers, that pairs of hunks swap: each hunk of one page and that of the other which begins where its
/// held token says.
fn swaps(one: &Side, other: &Side, ends: &mut Vec<u32>) -> [usize; 2] {
    ends.clear();
    ends.resize(other.held.len() + 2, 0);
    for (start, end) in other.hunks() {
        ends[start] = end as u32;
    }
    let mut counts = [0; 2];
    for ours in one.hunks() {
        let start = ours.0.checked_sub(1).map_or(0, |before| one.held[before] as usize + 1);
        let Some(&end) = ends.get(start).filter(|&&end| end > 0) else { continue };
        let theirs = (start, end as usize);
        if one.weight_of(ours) <= WIDE && other.weight_of(theirs) <= WIDE {
            for (count, least) in counts.iter_mut().zip([1, 2]) {
                *count += swapped(&one.tokens, ours, &other.tokens, theirs, least);
            }
        }
    }
    counts
}

/// Facts of a kind that a pair of hunks swaps: distinct ones that only one has, of the hunk with fewer.
fn swapped(ours: &Tokens, own: (usize, usize), theirs: &Tokens, others: (usize, usize), least: u8) -> usize {
    let only = |tokens: &Tokens, (start, end): (usize, usize), others: &Tokens, (from, to): (usize, usize)| {
        (start..end)
            .filter(|&at| tokens.facts[at] >= least)
            .filter(|&at| {
                let value = tokens.values[at];
                let is_in = |tokens: &Tokens, range: std::ops::Range<usize>| {
                    range.into_iter().any(|other| tokens.facts[other] >= least && tokens.values[other] == value)
                };
                !is_in(tokens, start..at) && !is_in(others, from..to)
            })
            .count()
    };
    only(ours, own, theirs, others).min(only(theirs, others, ours, own)).min(MOST_SWAPPED)
}

/// Share of the distinct facts of the page with fewer that the other lacks, of those and two more.
fn missing_facts(one: &Side, other: &Side) -> f64 {
    let [one, other] = [one.fact_values(), other.fact_values()];
    let (fewer, more) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let missing = fewer.iter().filter(|value| more.binary_search(value).is_err()).count();
    missing as f64 / (fewer.len() + 2) as f64
}

/// Of each page, the share of the words and pairs of neighbours of its title alone that stand in its hunks, and in how
/// many hunks one of them stands.
fn titles_in_hunks(streams: [&Stream; 2], sides: [&Side; 2], is_coarse: bool) -> [(f64, usize); 2] {
    let titles = streams.map(|stream| stream.title().collect::<smallvec::SmallVec<[u16; MOST_TITLE]>>());
    if titles.iter().any(smallvec::SmallVec::is_empty) {
        return [(0.0, 0); 2];
    }
    [0, 1].map(|place| own_terms_in_hunks(streams[place], &titles[place], &titles[1 - place], sides[place], is_coarse))
}

fn own_terms_in_hunks(stream: &Stream, title: &[u16], other: &[u16], side: &Side, is_coarse: bool) -> (f64, usize) {
    let code = |value: u16| Stream::title_code(value, is_coarse);
    let is_new = |terms: &[u16], place: usize| {
        !other.windows(terms.len()).any(|window| window == terms)
            && !title[..place + terms.len() - 1].windows(terms.len()).any(|window| window == terms)
    };
    let mut total = 0;
    let mut pairs = smallvec::SmallVec::<[(u8, u8); MOST_TITLE]>::new();
    let mut wanted = smallvec::SmallVec::<[u8; MOST_TITLE]>::new();
    for place in 0..title.len() {
        if title[place] >> 15 == 0 && is_new(&title[place..=place], place) {
            total += 1;
            if stream.is_in_body(place, false) {
                wanted.push(code(title[place]));
            }
        }
        if place + 1 < title.len() && is_new(&title[place..place + 2], place) {
            total += 1;
            if stream.is_in_body(place, true) {
                pairs.push((code(title[place]), code(title[place + 1])));
            }
        }
    }
    if total == 0 {
        return (0.0, 0);
    }
    let codes = &side.tokens.codes;
    let mut found_singles = [false; CODES];
    let (mut found_pairs, mut hunks) = (0_u64, 0);
    for (start, end) in side.hunks() {
        let mut stands = false;
        // A pair may begin before the hunk, or end behind it.
        for at in start.saturating_sub(1)..end {
            if at >= start {
                found_singles[usize::from(codes[at])] = true;
                stands |= wanted.contains(&codes[at]);
            }
            let is_last = at + 1 >= side.held.len();
            for (place, pair) in pairs.iter().enumerate().filter(|_| !is_last) {
                if *pair == (codes[at], codes[at + 1]) {
                    found_pairs |= 1 << place;
                    stands = true;
                }
            }
        }
        hunks += usize::from(stands);
    }
    let singles = wanted.iter().filter(|&&code| found_singles[usize::from(code)]).count();
    ((singles + found_pairs.count_ones() as usize) as f64 / f64::from(total), hunks)
}

/// A share of something, 0 of nothing.
fn share(part: usize, all: usize) -> f64 {
    if all > 0 { part as f64 / all as f64 } else { 0.0 }
}
