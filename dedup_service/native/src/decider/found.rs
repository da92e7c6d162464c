//! What is known of settled entries that some pages may match, before the first of these pages is decided.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use super::settled::{MAX_EQUAL, MAX_IDENTICAL};
use crate::store::Row;

/// A settled entry that a page may match.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub(super) row: Row,
    /// Its number in the store, if that is here.
    pub(super) number: u32,
    evidence: Range<usize>,
    /// Whether it was removed since.
    pub(super) is_gone: bool,
}

/// What was found for one page: places among the candidates, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfPage {
    /// Those that may be similar.
    pub(super) near: Vec<u32>,
    /// Those of them that share keys with it, if shards ask.
    pub(super) by_cells: Vec<u32>,
    /// Those with the hash of its URL.
    pub(super) urls: Vec<u32>,
    /// Those with the hash of the URL that it claims.
    pub(super) claims: Vec<u32>,
    /// Those with its title and body.
    pub(super) texts: Vec<u32>,
    /// Those with its body, if that decides.
    pub(super) bodies: Vec<u32>,
    /// How many entries were looked at.
    pub(super) looked_at: u32,
    /// Those with the URL that a correction calls its original, if shards ask.
    pub(super) targets: Vec<u32>,
    /// What is near to its fingerprints, if one of them may have more entries than are found: removed ones leave room
    /// for others. Of a shard, all that is near.
    pub(super) crowd: Vec<Near>,
}

/// An entry within the radius of a page's fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Near {
    pub(super) channel: u8,
    /// The fingerprint of the entry.
    pub(super) value: u64,
    pub(super) sequence: i64,
}

impl OfPage {
    /// Return all lists of places, in the order in which a shard sends them.
    pub(super) fn lists(&self) -> [&Vec<u32>; 7] {
        let Self { near, by_cells, urls, claims, texts, bodies, targets, .. } = self;
        [near, by_cells, urls, claims, texts, bodies, targets]
    }

    pub(super) fn lists_mut(&mut self) -> [&mut Vec<u32>; 7] {
        let Self { near, by_cells, urls, claims, texts, bodies, targets, .. } = self;
        [near, by_cells, urls, claims, texts, bodies, targets]
    }

    /// Cut the crowd to the earliest `MAX_IDENTICAL` of each fingerprint, or to nothing if none has so many; return whether
    /// one has.
    fn cut(&mut self) -> bool {
        self.crowd.sort_unstable();
        let groups = || self.crowd.chunk_by(|one, other| (one.channel, one.value) == (other.channel, other.value));
        let is_crowded = groups().any(|group| group.len() >= MAX_IDENTICAL);
        self.crowd = if is_crowded {
            groups().flat_map(|group| group.iter().take(MAX_IDENTICAL)).copied().collect()
        } else {
            Vec::new()
        };
        is_crowded
    }
}

/// Candidates of some pages, ascending by sequence, with their evidence.
#[derive(Debug, Default)]
pub struct Found {
    pub(super) candidates: Vec<Candidate>,
    evidence: Vec<u8>,
    pub(super) pages: Vec<OfPage>,
}

impl Found {
    /// Return nothing for so many pages. evidence: of the candidates that are added.
    pub(super) fn new(pages: usize, evidence: Vec<u8>) -> Self {
        Self { candidates: Vec::new(), evidence, pages: vec![OfPage::default(); pages] }
    }

    /// Add a candidate behind all others, and return its place. evidence: where its own is.
    pub(super) fn add(&mut self, row: Row, number: u32, evidence: Range<usize>) -> u32 {
        self.candidates.push(Candidate { row, number, evidence, is_gone: false });
        (self.candidates.len() - 1) as u32
    }

    /// Add a candidate behind all others, whose evidence comes behind theirs.
    pub(super) fn put(&mut self, row: Row, evidence: &[u8]) {
        let start = self.evidence.len();
        self.evidence.extend_from_slice(evidence);
        self.add(row, 0, start..self.evidence.len());
    }

    /// Return a candidate and its evidence.
    pub(super) fn get(&self, place: u32) -> (&Candidate, &[u8]) {
        let candidate = &self.candidates[place as usize];
        (candidate, self.evidence(candidate))
    }

    /// Return the evidence of a candidate.
    pub(super) fn evidence(&self, candidate: &Candidate) -> &[u8] {
        self.evidence.get(candidate.evidence.clone()).unwrap_or_default()
    }

    /// Return those of some places whose entries are live.
    pub(super) fn live<'a>(&'a self, places: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
        places.iter().copied().filter(|place| !self.candidates[*place as usize].is_gone)
    }

    /// Return whether removed entries leave room for others among what was found for a page: of equal texts and of equal
    /// fingerprints, the earliest are found.
    pub(super) fn has_room(&self, page: usize, removed: &HashSet<i64>) -> bool {
        let OfPage { texts, bodies, crowd, .. } = &self.pages[page];
        let is_gone = |place: &u32| self.candidates[*place as usize].is_gone;
        crowd.iter().any(|near| removed.contains(&near.sequence))
            || [texts, bodies].into_iter().any(|equal| equal.len() >= MAX_EQUAL && equal.iter().any(is_gone))
    }

    /// Take note that the entry of a sequence was removed.
    pub(super) fn remove(&mut self, sequence: i64) {
        if let Ok(place) = self.candidates.binary_search_by_key(&sequence, |candidate| candidate.row.sequence) {
            self.candidates[place].is_gone = true;
        }
    }

    /// Return what several shards have found together for some of the pages. `is_gone`: whether the entry at a sequence was
    /// removed since, and is left out.
    pub(super) fn of_all(shards: &[Found], pages: Range<usize>, is_gone: impl Fn(i64) -> bool) -> Self {
        let mut named: Vec<(i64, usize, u32)> = Vec::new();
        for (shard, found) in shards.iter().enumerate() {
            let of_pages = found.pages.get(pages.clone()).unwrap_or_default();
            let places = of_pages.iter().flat_map(OfPage::lists).flatten();
            let named_here = places.map(|place| (found.get(*place).0.row.sequence, shard, *place));
            named.extend(named_here.filter(|(sequence, ..)| !is_gone(*sequence)));
        }
        named.sort_unstable();
        named.dedup();
        let mut all = Self::default();
        for (_, shard, place) in &named {
            let (candidate, evidence) = shards[*shard].get(*place);
            all.put(candidate.row, evidence);
        }
        for page in pages {
            let mut of_page = OfPage::default();
            for (shard, found) in shards.iter().enumerate() {
                let Some(theirs) = found.pages.get(page) else { continue };
                of_page.looked_at = of_page.looked_at.saturating_add(theirs.looked_at);
                of_page.crowd.extend(theirs.crowd.iter().filter(|near| !is_gone(near.sequence)));
                for (list, places) in of_page.lists_mut().into_iter().zip(theirs.lists()) {
                    let new = |place: &u32| {
                        let sequence = found.get(*place).0.row.sequence;
                        named.binary_search(&(sequence, shard, *place)).ok().map(|place| place as u32)
                    };
                    list.extend(places.iter().filter_map(new));
                }
            }
            of_page.lists_mut().into_iter().for_each(|list| list.sort_unstable());
            if of_page.cut() {
                let crowd: BTreeSet<i64> = of_page.crowd.iter().map(|near| near.sequence).collect();
                let OfPage { near, by_cells, .. } = &mut of_page;
                near.retain(|place| {
                    crowd.contains(&all.get(*place).0.row.sequence) || by_cells.binary_search(place).is_ok()
                });
            }
            all.pages.push(of_page);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Entries of one process, and what it finds for a page: (sequence, whether it is near, whether the cells say so,
    /// whether it has the URL; its fingerprint, if it is near by that).
    type Listed = Vec<(i64, bool, bool, bool, Option<u64>)>;

    fn found_of(listed: &Listed) -> Found {
        let (mut found, mut page) = (Found::default(), OfPage { looked_at: 1, ..OfPage::default() });
        for (place, (sequence, near, by_cells, url, value)) in (0..).zip(listed) {
            found.put(Row { sequence: *sequence, ..Row::default() }, &sequence.to_le_bytes());
            let lists = [(*near, &mut page.near), (*near && *by_cells, &mut page.by_cells), (*url, &mut page.urls)];
            lists.into_iter().filter(|(is_in, _)| *is_in).for_each(|(_, list)| list.push(place));
            page.crowd.extend(value.map(|value| Near { channel: 0, value, sequence: *sequence }));
        }
        found.pages.push(page);
        found
    }

    fn sequences(found: &Found, places: &[u32]) -> Vec<i64> {
        places.iter().map(|place| found.get(*place).0.row.sequence).collect()
    }

    proptest! {
        /// However entries are divided among shards, what these find together is what one process finds, without what is
        /// gone.
        #[test]
        fn shards_find_together_what_one_process_finds(
            listed in prop::collection::vec((any::<[bool; 3]>(), 0..4usize, 0..4u8), 0..40),
        ) {
            let of_shard = |shard: Option<usize>| -> Listed {
                let numbered = (0i64..).zip(&listed).filter(|(_, (_, own, _))| shard.is_none_or(|shard| shard == *own));
                numbered.map(|(sequence, ([near, cells, url], ..))| (sequence, *near, *cells, *url, None)).collect()
            };
            let is_gone = |sequence: i64| listed[sequence as usize].2 == 0;
            let shards: Vec<Found> = (0..4).map(|shard| found_of(&of_shard(Some(shard)))).collect();
            let (all, one) = (Found::of_all(&shards, 0..1, is_gone), found_of(&of_shard(None)));
            let (ours, theirs) = (&all.pages[0], &one.pages[0]);
            for (list, expected) in ours.lists().into_iter().zip(theirs.lists()) {
                let mut expected = sequences(&one, expected);
                expected.retain(|sequence| !is_gone(*sequence));
                prop_assert_eq!(sequences(&all, list), expected);
                for place in list {
                    let (candidate, evidence) = all.get(*place);
                    prop_assert_eq!(evidence, candidate.row.sequence.to_le_bytes());
                }
            }
            prop_assert_eq!(ours.looked_at, 4);
        }
    }

    /// Of a crowd the earliest are near, and those that the cells found; one that is gone leaves room for another.
    #[test]
    fn a_crowd_is_cut_to_the_earliest_of_all_shards() {
        let most = MAX_IDENTICAL as i64;
        let of_shard = |shard: i64| -> Listed {
            let own = (0..most + 20).filter(|sequence| sequence % 3 == shard);
            own.map(|sequence| (sequence, true, sequence == most + 10, false, Some(7))).collect()
        };
        let shards: Vec<Found> = (0..3).map(|shard| found_of(&of_shard(shard))).collect();
        let expected = |gone: &[i64]| -> Vec<i64> {
            let live = (0..most + 20).filter(|sequence| !gone.contains(sequence));
            let late = [most + 10].into_iter().filter(|late| !gone.contains(late));
            live.take(MAX_IDENTICAL).chain(late).collect()
        };
        for gone in [&[][..], &[3, 5], &[3, most + 10]] {
            let all = Found::of_all(&shards, 0..1, |sequence| gone.contains(&sequence));
            assert_eq!(sequences(&all, &all.pages[0].near), expected(gone));
            assert_eq!(all.pages[0].crowd.len(), MAX_IDENTICAL);
        }
        let all = Found::of_all(&shards, 0..1, |sequence| sequence % 2 == 0);
        assert_eq!(all.pages[0].crowd, []);
        assert_eq!(all.pages[0].near.len(), MAX_IDENTICAL / 2 + 10);
    }
}
