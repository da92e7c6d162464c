//! A host's own text: which sentences came under several titles on one host.
//!
//! Frames, sidebars, comment threads, disclaimers and consent walls are the same under any title, so they say nothing
//! about two pages being copies. A sentence is common on a host once it came there under `TITLES` different titles. A
//! page that is fetched again, or is at a hundred addresses, has one title and makes nothing common. A page without a
//! title, or with one that its site gives to all pages, counts by its text instead (`learn`).
//!
//! Titles are the same if their terms are: punctuation, width, case and order do not count. With another term, such as
//! the host's name at the end, they are different. An article under two or three headlines stays evidence; under
//! `TITLES` it counts as the host's text, and its copies are kept.
//!
//! Memory is bounded. A table holds `WAYS` sentences a set, the most recently followed first, 16 bytes each. New
//! sentences replace each other, since most never come again; those with two titles or more are replaced only when a
//! set has more than `PROTECTED` of them. A host uses one of `REGIONS` tables, so one host with endless different
//! sentences pushes out those of an eighth of the hosts at most. A table doubles when it is half full, until it has
//! `MAX_SETS` sets.
//!
//! Invariant: the state is a function of the calls of `learn` in their order, and of nothing else.

use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Result, TableError};
use crate::evidence::sentences::LENGTH_BITS;
use crate::memory::{GAMMA, mix64, prefetch};

/// Different titles under which a sentence comes on one host before it is that host's text: 2 to 5.
///
/// Measured on a crawl of 16,936 pages taken as one host's (of 288,835 sentences, those that become common · of 3,894
/// copies, those of which half or more becomes common): 2 titles 11,325 · 116, 3 titles 2,126 · 4, 4 titles 1,069 · 1,
/// 5 titles 639 · 1, 8 titles 214 · 1. On 987 pages of HTML in the frames of 51 hosts: 1,034, 175, 154, 137, 121
/// sentences.
pub const TITLES: usize = 5;
/// Tables. A host uses one of them.
pub const REGIONS: usize = 8;
/// Sentences of a set.
pub const WAYS: usize = 8;
/// Sentences of a set with two titles or more that a new sentence does not replace.
const PROTECTED: usize = 6;
/// Sets of the largest table: 2 MiB, 16 MiB for all regions. A power of two, like every number of sets.
pub const MAX_SETS: usize = 1 << 14;
const MIN_SETS: usize = 1 << 4;

const EMPTY: u64 = 0;
const COMMON: u64 = u64::MAX;
const TAG: u64 = 0xFFFF;
const TAG_BITS: u32 = 16;

/// Sentence values of a page.
pub type Sentences = SmallVec<[u32; 64]>;

/// Learns from pages in their order which sentences are their hosts' own text.
#[derive(Clone, Debug, Default)]
pub struct HostText {
    regions: [Region; REGIONS],
}

impl HostText {
    /// Return one that continues from what `state` returned; from nothing, one that has learned nothing.
    ///
    /// # Errors
    /// A state error if the bytes are no such state.
    pub fn from_state(state: &[u8]) -> Result<Self> {
        let refused = || {
            let size = state.len();
            let hint = "restore from the log or another snapshot";
            TableError::State(format!("{size} bytes are no state of the hosts' own text: {hint}"))
        };
        let mut host_text = Self::default();
        if state.is_empty() {
            return Ok(host_text);
        }
        let (header, mut rest) = state.split_first_chunk::<REGIONS>().ok_or_else(refused)?;
        for (region, &bits) in host_text.regions.iter_mut().zip(header).filter(|(_, bits)| **bits > 0) {
            let sets = 1usize.checked_shl(u32::from(bits) - 1).unwrap_or(0);
            if !(MIN_SETS..=MAX_SETS).contains(&sets) {
                return Err(refused());
            }
            let (own, others) = rest.split_at_checked(sets * size_of::<Set>()).ok_or_else(refused)?;
            (*region, rest) = (Region::from_bytes(own), others);
        }
        if rest.is_empty() { Ok(host_text) } else { Err(refused()) }
    }

    /// Return the state, from which another continues alike.
    ///
    /// It is a byte for each region, the bits that its number of sets takes, 0 if it has no sentence, and the sets of
    /// these regions: each the keys of its slots, and then their titles, little-endian.
    pub fn state(&self) -> Vec<u8> {
        let used = || self.regions.iter().filter(|region| region.held > 0);
        let mut state = Vec::with_capacity(REGIONS + used().map(Region::size_bytes).sum::<usize>());
        let bits_of = |region: &Region| if region.held > 0 { region.sets.len().ilog2() as u8 + 1 } else { 0 };
        state.extend(self.regions.iter().map(bits_of));
        for set in used().flat_map(|region| &region.sets) {
            for word in set.keys.iter().chain(&set.titles) {
                state.extend_from_slice(&word.to_le_bytes());
            }
        }
        state
    }

    /// Return how many sentences are held, common or not.
    pub fn len(&self) -> usize {
        self.regions.iter().map(|region| region.held).sum()
    }

    /// Return the memory of the tables: 16 KiB for few pages, 16 MiB at most.
    pub fn size_bytes(&self) -> usize {
        self.regions.iter().map(Region::size_bytes).sum()
    }

    /// Learn from a page, whatever its verdict, that its host has these sentences; nothing from one without any.
    ///
    /// They came under its title or, if that says nothing, its text. A title that came on the host with `TITLES`
    /// different texts is the site's own, as no title is. Then four min-hash keys stand for the title: copies share
    /// them, pages that share a frame alone mostly do not.
    ///
    /// host: hash of the host. terms: of the page's title, uint16, little-endian. keys: its packed keys. sentences: its
    /// sentence values, whose lowest six bits, the length, do not count.
    pub fn learn(&mut self, host: u64, terms: &[u8], keys: &[u8], sentences: &[u32]) {
        let title = (!terms.is_empty()).then(|| xxh3_64(terms));
        let text = text_hash(keys);
        let region = &mut self.regions[region_of(host)];
        let origin = match (title, text) {
            (Some(title), Some(text)) if !sentences.is_empty() && !region.learn_title(host, title, text) => Some(text),
            _ => title.or(text),
        };
        if let Some(origin) = origin {
            region.follow(host, origin, sentences);
        }
    }

    /// Return those of the sentences of a page that are text of its host, as far as the pages learned so far say.
    pub fn common(&self, host: u64, sentences: &[u32]) -> Sentences {
        let is_common = self.are_common(host, sentences);
        sentences.iter().zip(is_common).filter_map(|(&sentence, common)| common.then_some(sentence)).collect()
    }

    /// Return of each sentence whether `common` has it.
    pub fn are_common(&self, host: u64, sentences: &[u32]) -> SmallVec<[bool; 64]> {
        self.regions[region_of(host)].are_common(host, sentences)
    }

    /// Return the sentences that do not count when two pages are compared, ascending and distinct.
    ///
    /// These are the sentences of both pages that are text of either host.
    pub fn common_to_pair(&self, one: u64, ours: &[u32], other: u64, theirs: &[u32]) -> Sentences {
        let mut found = Sentences::new();
        for sentences in [ours, theirs] {
            found.extend(self.common(one, sentences));
            if one != other {
                found.extend(self.common(other, sentences));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

fn region_of(host: u64) -> usize {
    (host % REGIONS as u64) as usize
}

/// Return what stands for a text: the hash of four of its min-hash keys; none for fewer.
fn text_hash(keys: &[u8]) -> Option<u64> {
    let quarter = keys.len() / 4;
    let mut parts = SmallVec::<[u8; 16]>::new();
    for part in 0..4 {
        let first = &keys[part * quarter..];
        parts.extend_from_slice(&first[..first.len().min(4)]);
    }
    (quarter > 0).then(|| xxh3_64(&parts))
}

/// One of the tables.
///
/// Invariant: `sets` are a power of two; `held` is how many of their slots are in use.
#[derive(Clone, Debug)]
struct Region {
    sets: Vec<Set>,
    held: usize,
}

impl Default for Region {
    fn default() -> Self {
        Self { sets: vec![Set::default(); MIN_SETS], held: 0 }
    }
}

impl Region {
    /// Return the region with the sets in `bytes`, a power of two.
    fn from_bytes(bytes: &[u8]) -> Self {
        let sets: Vec<Set> = bytes.chunks_exact(size_of::<Set>()).map(Set::from_bytes).collect();
        let held = sets.iter().flat_map(|set| set.keys).filter(|key| *key != EMPTY).count();
        Self { sets, held }
    }

    fn size_bytes(&self) -> usize {
        self.sets.len() * size_of::<Set>()
    }

    /// Let a title come with a text on its host; return whether it says something.
    ///
    /// A title is learned as a sentence is, and its texts as titles are.
    fn learn_title(&mut self, host: u64, title: u64, text: u64) -> bool {
        let own = [(title >> 32) as u32 >> LENGTH_BITS << LENGTH_BITS];
        let says_something = !self.are_common(host, &own)[0];
        if says_something {
            self.follow(host, text, &own);
        }
        says_something
    }

    /// Let sentences of a host come under a title; double the table if it is half full then.
    fn follow(&mut self, host: u64, title: u64, sentences: &[u32]) {
        let tag = (mix64(title) & TAG).max(1);
        for key in self.keys_of(host, sentences) {
            let place = place_of(key, self.sets.len());
            self.held += usize::from(self.sets[place].follow(key, tag));
        }
        while 2 * self.held > self.sets.len() * WAYS && self.sets.len() < MAX_SETS {
            self.double();
        }
    }

    fn are_common(&self, host: u64, sentences: &[u32]) -> SmallVec<[bool; 64]> {
        let is_common = |key| self.sets[place_of(key, self.sets.len())].is_common(key);
        self.keys_of(host, sentences).into_iter().map(is_common).collect()
    }

    /// Return the key of each sentence of a host, and fetch its set into the cache.
    fn keys_of(&self, host: u64, sentences: &[u32]) -> SmallVec<[u64; 64]> {
        let mixed = mix64(host);
        let keys = sentences.iter().map(|&sentence| {
            let key = mix64(mixed.wrapping_add(GAMMA.wrapping_mul(u64::from(sentence >> LENGTH_BITS))));
            let key = if key == EMPTY { GAMMA } else { key };
            let set = &self.sets[place_of(key, self.sets.len())];
            prefetch(&set.keys, 0);
            prefetch(&set.titles, 0);
            key
        });
        keys.collect()
    }

    /// Have twice as many sets: each is cut in two, in its order.
    fn double(&mut self) {
        let mut sets = vec![Set::default(); 2 * self.sets.len()];
        for set in &self.sets {
            for (&key, &titles) in set.keys.iter().zip(&set.titles).take_while(|(key, _)| **key != EMPTY) {
                let place = place_of(key, sets.len());
                sets[place].append(key, titles);
            }
        }
        self.sets = sets;
    }
}

/// Return the number of the set of `key` among so many.
fn place_of(key: u64, sets: usize) -> usize {
    key as usize & (sets - 1)
}

/// Some sentences, each a key that is not `EMPTY`, and its titles.
///
/// The slots are in use from the first on, in the order of the latest page that had them. Titles are four tags of 16
/// bits, the first one's lowest. In one slot no two tags are equal and none is 0, so all bits can mean "common".
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Set {
    keys: [u64; WAYS],
    titles: [u64; WAYS],
}

impl Set {
    /// Return the set in so many bytes.
    fn from_bytes(bytes: &[u8]) -> Self {
        let mut set = Self::default();
        for (word, bytes) in set.keys.iter_mut().chain(&mut set.titles).zip(bytes.chunks_exact(8)) {
            *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        set
    }

    /// Return the slot of `key`, or else the first empty one; none if all are others'.
    fn slot_of(&self, key: u64) -> Option<usize> {
        self.keys.iter().position(|&other| other == key || other == EMPTY)
    }

    fn is_common(&self, key: u64) -> bool {
        self.slot_of(key).is_some_and(|slot| self.titles[slot] == COMMON)
    }

    /// Let a sentence come under a title: it is the first one then. Return whether it took an empty slot.
    fn follow(&mut self, key: u64, tag: u64) -> bool {
        let slot = self.slot_of(key);
        let is_new = slot.is_some_and(|slot| self.keys[slot] == EMPTY);
        let titles = slot.filter(|_| !is_new).map_or(EMPTY, |slot| self.titles[slot]);
        let slot = slot.unwrap_or_else(|| self.replaced());
        self.keys.copy_within(..slot, 1);
        self.titles.copy_within(..slot, 1);
        self.keys[0] = key;
        self.titles[0] = with_title(titles, tag);
        is_new
    }

    /// Return the slot of a full set that a new sentence takes.
    ///
    /// It is the least recent one with a single title; of those with more, if there are more than `PROTECTED`.
    fn replaced(&self) -> usize {
        let has_several = |slot: &usize| self.titles[*slot] > TAG;
        let protected = (0..WAYS).filter(has_several).count();
        let last = |several: bool| (0..WAYS).rev().find(|slot| has_several(slot) == several).unwrap_or(0);
        last(protected > PROTECTED)
    }

    /// Add a sentence behind the others, if there is room; there is unless the bytes of a state were made up.
    fn append(&mut self, key: u64, titles: u64) {
        if let Some(slot) = self.slot_of(EMPTY) {
            (self.keys[slot], self.titles[slot]) = (key, titles);
        }
    }
}

/// Return the titles of a slot with one more.
fn with_title(titles: u64, tag: u64) -> u64 {
    if titles == COMMON {
        return titles;
    }
    for shift in (0..TITLES as u32 - 1).map(|lane| TAG_BITS * lane) {
        match titles >> shift & TAG {
            EMPTY => return titles | tag << shift,
            stored if stored == tag => return titles,
            _ => {}
        }
    }
    COMMON
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    const HOST: u64 = 7;

    /// Learn that sentences came under a title.
    fn follow(host_text: &mut HostText, host: u64, title: u64, sentences: &[u32]) {
        host_text.learn(host, &title.to_le_bytes(), b"", sentences);
    }

    fn values(numbers: impl IntoIterator<Item = u32>) -> Vec<u32> {
        numbers.into_iter().map(|number| (number << LENGTH_BITS) | (number % 64)).collect()
    }

    /// Sentences that nearly all are different from any others.
    fn fresh(count: u64, seed: u64) -> Vec<u32> {
        (0..count).map(|number| mix64(seed << 20 | number) as u32).collect()
    }

    fn learned(titles: u64) -> HostText {
        let mut host_text = HostText::default();
        (0..titles).for_each(|title| follow(&mut host_text, HOST, title, &values(0..3)));
        host_text
    }

    fn follows() -> impl Strategy<Value = Vec<(u64, u64, BTreeSet<u32>)>> {
        prop::collection::vec((0..4u64, 0..10u64, prop::collection::btree_set(0..40u32, 0..20)), 0..60)
    }

    proptest! {
        /// While all sentences fit, the answers are those of an exact count of titles, for one page and for a pair.
        #[test]
        fn a_sentence_is_common_from_five_titles_on_one_host(follows in follows()) {
            let mut titles = BTreeMap::<(u64, u32), BTreeSet<u64>>::new();
            let mut host_text = HostText::default();
            for (host, title, numbers) in follows {
                let count = |host: u64, number: &u32| titles.get(&(host, *number)).map_or(0, BTreeSet::len);
                let expected: Vec<u32> = values((0..40).filter(|number| count(host, number) >= TITLES));
                prop_assert_eq!(host_text.common(host, &values(0..40)).to_vec(), expected);
                let either = |number: &u32| count(host, number).max(count(3, number)) >= TITLES;
                let pair = host_text.common_to_pair(host, &values(15..40), 3, &values(0..25));
                prop_assert_eq!(pair.to_vec(), values((0..40).filter(either)));
                follow(&mut host_text, host, title, &values(numbers.iter().copied()));
                for number in numbers {
                    titles.entry((host, number)).or_default().insert(title);
                }
            }
        }

        /// Cut at any place, the second part gives the same state, also when tables are full.
        #[test]
        fn a_state_continues_alike(follows in follows(), cut in 0..60usize, crowd in any::<bool>()) {
            let mut whole = HostText::default();
            for page in (0..40).take_while(|_| crowd) {
                follow(&mut whole, HOST, page, &fresh(48, page));
            }
            let mut second = None;
            for (number, (host, title, numbers)) in follows.into_iter().enumerate() {
                if number == cut {
                    second = Some(HostText::from_state(&whole.state()).unwrap());
                }
                for host_text in [Some(&mut whole), second.as_mut()].into_iter().flatten() {
                    follow(host_text, host, title, &values(numbers.iter().copied()));
                }
            }
            if let Some(second) = second {
                prop_assert_eq!((second.state(), second.len()), (whole.state(), whole.len()));
            }
        }

        /// Any bytes are a state or are refused, and one that is made up does no harm.
        #[test]
        fn made_up_states_do_no_harm(words in prop::collection::vec(0..3u64, 256), seed in any::<u64>()) {
            let mut state = vec![5, 0, 0, 0, 0, 0, 0, 0];
            state.extend(words.iter().flat_map(|word| word.wrapping_mul(seed).to_le_bytes()));
            let mut host_text = HostText::from_state(&state).unwrap();
            for page in 0..20 {
                follow(&mut host_text, 8 * page, page, &fresh(40, page));
                let _ = host_text.common(8 * page, &fresh(80, page));
            }
        }
    }

    /// Bytes that are no state are refused, with a hint what to do.
    #[test]
    fn other_bytes_are_no_state() {
        for (header, rest) in [(&b"x"[..], 0), (b"\x05", 7), (b"", 9), (b"\xff", 7), (b"\x01", 135)] {
            let refused = HostText::from_state(&[header, &vec![0; rest]].concat()).err();
            assert!(matches!(refused, Some(TableError::State(text)) if text.contains("restore from")), "{header:?}");
        }
    }

    /// Without a title and a text nothing is learned; nor from a page without sentences, not even of its title.
    #[test]
    fn pages_without_title_and_text_teach_nothing() {
        let mut host_text = HostText::default();
        for _ in 0..100 {
            host_text.learn(HOST, b"", b"abc", &values(0..3));
            host_text.learn(HOST, b"ab", b"abcd", &[]);
        }
        assert_eq!(host_text.len(), 0);
    }

    /// Under one title with many texts, a title that its site gives to all pages, the texts count as titles.
    #[test]
    fn a_title_of_all_pages_says_nothing() {
        let mut host_text = HostText::default();
        for text in 1..2 * TITLES as u8 {
            assert_eq!(host_text.common(HOST, &values(0..3)).len(), 0);
            host_text.learn(HOST, b"ab", &[text; 64], &values(0..3));
        }
        host_text.learn(HOST, b"ab", &[99; 64], &values(0..3));
        assert_eq!(host_text.common(HOST, &values(0..4)).len(), 3);
    }

    /// The lowest six bits of a value say how long the sentence is, not which it is.
    #[test]
    fn the_length_of_a_sentence_does_not_count() {
        let host_text = learned(TITLES as u64);
        assert_eq!(host_text.are_common(HOST, &[2 << 6 | 9, 5 << 6]).to_vec(), [true, false]);
    }

    /// A few pages take kilobytes; a million different sentences take no more than the largest table.
    #[test]
    fn memory_is_bounded() {
        let mut host_text = learned(1);
        assert_eq!(host_text.size_bytes(), REGIONS * MIN_SETS * WAYS * 16);
        for page in 0..20_000 {
            follow(&mut host_text, page % 64, page, &fresh(48, page));
        }
        assert_eq!(host_text.size_bytes(), 16 << 20);
        assert_eq!(HostText::from_state(&host_text.state()).unwrap().state(), host_text.state());
    }

    /// A sidebar of one page in a hundred becomes common while the others' sentences come and go.
    #[test]
    fn rare_frames_are_learned_between_many_other_sentences() {
        let mut host_text = HostText::default();
        for page in 0..20_000 {
            follow(&mut host_text, HOST, page, &fresh(40, page));
            if page % 100 == 0 {
                follow(&mut host_text, HOST, page, &values(0..20));
            }
        }
        assert!(host_text.len() <= MAX_SETS * WAYS);
        assert_eq!(host_text.common(HOST, &values(0..20)).len(), 20);
    }
}
