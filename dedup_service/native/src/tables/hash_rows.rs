//! Rows by a hash of 64 bits, of which the caller confirms what is found.
//!
//! A row is an element of a table (`slots`) under 41 bits of the mixed hash. So a search may find rows of another hash:
//! of 10^8 hashes, another one has the same bits with probability 5 · 10^-5. The caller compares the whole hash, which a
//! row has, and nothing else is lost by a collision.
//!
//! Nearly every hash has one row, since copies are not kept. Rows of one that has more than [`CROWD`] are in a set beside
//! the table, which has one element for all of them, so a crowded hash costs others nothing.
//!
//! Invariant: answers are a function of the rows that are in the table.

use std::collections::{BTreeMap, BTreeSet};

use super::slots::{Element, IDENTITY_BITS, NO_ROW, SlotFilling, SlotShare, SlotTable, TO_FIND};
use crate::error::{Result, TableError};
use crate::memory::mix64;

/// Rows of one hash that lie in the table, at most.
pub const CROWD: usize = 16;
/// The count of an element that stands for a crowd.
const CROWDED: u32 = 1;
/// Hashes whose places are fetched ahead.
const AHEAD: usize = 8;

/// Rows (any 32 bits) by hashes (any 64 bits): each row once under a hash.
#[derive(Default)]
pub struct HashRows {
    table: SlotTable,
    crowds: BTreeMap<u64, BTreeSet<u32>>,
    in_crowds: usize,
}

impl HashRows {
    /// How many rows there are, one that has two hashes counted twice.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.table.len() - self.crowds.len() + self.in_crowds
    }

    /// Memory reserved; of crowds an estimate.
    pub fn bytes(&self) -> usize {
        self.table.bytes() + self.in_crowds * 6 + self.crowds.len() * 64
    }

    /// The rows of a hash, ascending, among them those of hashes that share its 41 bits.
    pub fn rows(&self, hash: u64) -> Vec<u32> {
        let mut found = Vec::new();
        self.append_rows(hash, usize::MAX, &mut found);
        found
    }

    /// The rows of many hashes, and where those of each end: as `rows` has them, but of a crowd the first [`CROWD`].
    pub fn rows_many(&self, hashes: &[u64]) -> (Vec<usize>, Vec<u32>) {
        let (mut ends, mut found) = (Vec::with_capacity(hashes.len()), Vec::new());
        hashes.iter().take(AHEAD).for_each(|&hash| self.prefetch(hash));
        for (number, &hash) in hashes.iter().enumerate() {
            hashes.get(number + AHEAD).into_iter().for_each(|&hash| self.prefetch(hash));
            self.append_rows(hash, CROWD, &mut found);
            ends.push(found.len());
        }
        (ends, found)
    }

    fn append_rows(&self, hash: u64, most: usize, found: &mut Vec<u32>) {
        let identity = identity_of(hash);
        for element in self.table.same(self.table.find(identity), identity) {
            match self.crowds.get(&identity) {
                Some(crowd) if element.count() == CROWDED => found.extend(crowd.iter().take(most)),
                _ => found.push(element.row()),
            }
        }
    }

    /// Fetch the place of a hash, which is needed soon.
    pub fn prefetch(&self, hash: u64) {
        self.table.prefetch(identity_of(hash), TO_FIND);
    }

    /// Add a row to a hash; false, and nothing changed, if the hash has it.
    pub fn add(&mut self, hash: u64, row: u32) -> bool {
        let identity = identity_of(hash);
        let (spot, first) = self.table.get(identity);
        if let Some(crowd) = self.crowd_of(identity, first) {
            let added = crowd.insert(row);
            self.in_crowds += usize::from(added);
            return added;
        }
        let (mut before, mut count) = (0, 0);
        for element in self.table.same(spot, identity) {
            if element.row() == row {
                return false;
            }
            before += usize::from(element.row() < row);
            count += 1;
        }
        if count < CROWD {
            self.table.insert(spot, before, Element::new(identity, 0, row));
        } else {
            self.make_crowd(identity, row);
        }
        true
    }

    /// Add a row to each hash that does not have it; return how many were added.
    pub fn add_many(&mut self, rows: &[(u64, u32)]) -> usize {
        rows.iter().take(AHEAD).for_each(|row| self.prefetch(row.0));
        let mut added = 0;
        for (number, &(hash, row)) in rows.iter().enumerate() {
            rows.get(number + AHEAD).into_iter().for_each(|row| self.prefetch(row.0));
            added += usize::from(self.add(hash, row));
        }
        added
    }

    /// Remove a row from a hash.
    ///
    /// # Errors
    /// `State` if the hash does not have it; then nothing changed.
    pub fn remove(&mut self, hash: u64, row: u32) -> Result<()> {
        let missing = || TableError::State(format!("hash {hash} does not have row {row}"));
        let identity = identity_of(hash);
        let (spot, first) = self.table.get(identity);
        if let Some(crowd) = self.crowd_of(identity, first) {
            if !crowd.remove(&row) {
                return Err(missing());
            }
            let few = crowd.len() < CROWD / 2;
            self.in_crowds -= 1;
            if few {
                self.dissolve(hash);
            }
            return Ok(());
        }
        let ahead = self.table.same(spot, identity).position(|element| element.row() == row).ok_or_else(missing)?;
        self.table.remove(spot, ahead);
        Ok(())
    }

    /// Remove a row from each hash.
    ///
    /// # Errors
    /// `State` for the first hash that does not have its row; then those before it are removed, and the others are not.
    pub fn remove_many(&mut self, rows: &[(u64, u32)]) -> Result<()> {
        rows.iter().take(AHEAD).for_each(|row| self.prefetch(row.0));
        for (number, &(hash, row)) in rows.iter().enumerate() {
            rows.get(number + AHEAD).into_iter().for_each(|row| self.prefetch(row.0));
            self.remove(hash, row)?;
        }
        Ok(())
    }

    fn crowd_of(&mut self, identity: u64, first: Option<Element>) -> Option<&mut BTreeSet<u32>> {
        first.filter(|element| element.count() == CROWDED).and_then(|_| self.crowds.get_mut(&identity))
    }

    /// Move the rows of an identity out of the table, together with one that did not fit.
    fn make_crowd(&mut self, identity: u64, row: u32) {
        let mut crowd = BTreeSet::from([row]);
        while let (spot, Some(element)) = self.table.get(identity) {
            crowd.insert(element.row());
            self.table.remove(spot, 0);
        }
        self.table.insert(self.table.find(identity), 0, Element::new(identity, CROWDED, NO_ROW));
        self.in_crowds += crowd.len();
        self.crowds.insert(identity, crowd);
    }

    /// Move the few rows of a crowd back into the table.
    fn dissolve(&mut self, hash: u64) {
        let identity = identity_of(hash);
        let crowd = self.crowds.remove(&identity).unwrap_or_default();
        self.in_crowds -= crowd.len();
        self.table.remove(self.table.find(identity), 0);
        for row in crowd {
            self.add(hash, row);
        }
    }
}

/// The bits of a hash that the table knows.
#[inline]
fn identity_of(hash: u64) -> u64 {
    mix64(hash) >> (64 - IDENTITY_BITS)
}

/// A table to come, of many rows in any order; see [`SlotFilling`].
pub struct HashFilling {
    elements: SlotFilling,
}

/// What one thread adds to a table.
pub struct HashShare<'a> {
    elements: SlotShare<'a>,
}

impl HashFilling {
    /// Nothing yet. rows: about how many will come. shares: how many threads add them.
    pub fn new(rows: usize, shares: usize) -> Self {
        Self { elements: SlotFilling::new(rows, shares) }
    }

    /// The shares, for some rows.
    pub fn shares(&mut self) -> Vec<HashShare<'_>> {
        self.elements.shares().into_iter().map(|elements| HashShare { elements }).collect()
    }

    /// The table of these rows, as after [`HashRows::add`] of each.
    pub fn finish(self) -> HashRows {
        let (table, crowds) = self.elements.finish(merge_rows);
        let crowds: BTreeMap<_, _> = crowds.into_iter().flatten().collect();
        let in_crowds = crowds.values().map(BTreeSet::len).sum();
        HashRows { table, crowds, in_crowds }
    }
}

impl HashShare<'_> {
    /// Add a row to its hash.
    #[inline]
    pub fn add(&mut self, hash: u64, row: u32) {
        self.elements.add(identity_of(hash), 0, row);
    }
}

/// Let each row be under an identity once, and one element stand for each crowd; return the crowds.
fn merge_rows(first: u64, elements: &mut Vec<Element>) -> Vec<(u64, BTreeSet<u32>)> {
    elements.dedup();
    let mut crowds = Vec::new();
    let is_crowd = |same: &[Element]| same.len() > CROWD;
    if elements.chunk_by(|one, other| one.tag() == other.tag()).any(is_crowd) {
        let mut merged = Vec::with_capacity(elements.len());
        for same in elements.chunk_by(|one, other| one.tag() == other.tag()) {
            if is_crowd(same) {
                let identity = first | u64::from(same[0].tag());
                merged.push(Element::new(identity, CROWDED, NO_ROW));
                crowds.push((identity, same.iter().map(|element| element.row()).collect()));
            } else {
                merged.extend(same);
            }
        }
        *elements = merged;
    }
    crowds
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Plain = BTreeMap<u64, BTreeSet<u32>>;

    fn check(table: &HashRows, plain: &Plain) {
        assert_eq!(table.len(), plain.values().map(BTreeSet::len).sum::<usize>());
        let hashes: Vec<_> = plain.keys().copied().chain([99]).collect();
        let (ends, found) = table.rows_many(&hashes);
        let mut start = 0;
        for (&hash, end) in hashes.iter().zip(ends) {
            let expected: Vec<_> = plain.get(&hash).into_iter().flatten().copied().collect();
            assert_eq!(table.rows(hash), expected);
            assert_eq!(found[start..end], expected[..expected.len().min(CROWD)]);
            start = end;
        }
    }

    fn filled(plain: &Plain) -> HashRows {
        let mut filling = HashFilling::new(3, 2);
        let rows = plain.iter().flat_map(|(&hash, rows)| rows.iter().rev().map(move |&row| (hash, row)));
        let more = rows.clone().take(5); // each row once
        let mut shares = filling.shares();
        rows.chain(more).enumerate().for_each(|(number, (hash, row))| shares[number % 2].add(hash, row));
        drop(shares);
        filling.finish()
    }

    proptest! {
        /// A table has the rows of a map of sets, in any history; each row once, and crowds come and go.
        #[test]
        fn rows_are_those_of_a_map(
            steps in prop::collection::vec((0..3u64, 0..40u32, prop::bool::weighted(0.4)), 0..400),
            largest in any::<bool>(),
        ) {
            let (mut table, mut plain) = (HashRows::default(), Plain::new());
            for (number, (hash, row, removes)) in steps.into_iter().enumerate() {
                let hash = [0, u64::MAX, 7][hash as usize];
                let row = if largest { u32::MAX - row } else { row };
                let rows = plain.entry(hash).or_default();
                if removes {
                    prop_assert_eq!(table.remove(hash, row).is_ok(), rows.remove(&row));
                } else {
                    prop_assert_eq!(table.add(hash, row), rows.insert(row));
                }
                if number % 50 == 0 {
                    check(&table, &plain);
                    table = filled(&plain);
                }
            }
            check(&table, &plain);
        }
    }

    /// Many hashes at once: an unknown row stops removals, with those before it removed.
    #[test]
    fn many_at_once() {
        let rows: Vec<_> = (0..10_000u32).map(|row| (u64::from(row % 9_000).wrapping_mul(3 << 40), row)).collect();
        let (mut table, mut plain) = (HashRows::default(), Plain::new());
        assert_eq!(table.add_many(&rows), rows.len());
        assert_eq!(table.add_many(&rows), 0);
        for &(hash, row) in &rows {
            plain.entry(hash).or_default().insert(row);
        }
        check(&table, &plain);
        let mut wrong = rows.clone();
        wrong[5_000].1 = u32::MAX;
        let error = table.remove_many(&wrong).unwrap_err();
        assert_eq!(error, TableError::State(format!("hash {} does not have row {}", wrong[5_000].0, u32::MAX)));
        rows[..5_000].iter().for_each(|(hash, row)| assert!(plain.get_mut(hash).unwrap().remove(row)));
        check(&table, &plain);
        table.remove_many(&rows[5_000..]).unwrap();
        assert!(table.len() == 0 && table.remove_many(&rows).is_err());
    }

    /// 10^5 rows of one hash cost others nothing, and leave in any order.
    #[test]
    fn a_crowd_of_a_hundred_thousand() {
        let mut table = HashRows::default();
        let rows: Vec<_> = (0..100_000).map(|row| (5, row)).collect();
        table.add_many(&rows);
        assert_eq!((table.len(), table.table.len()), (100_000, 1));
        assert_eq!(table.rows_many(&[5, 6]), (vec![CROWD, CROWD], (0..CROWD as u32).collect()));
        table.remove_many(&rows[..99_995]).unwrap();
        assert_eq!((table.rows(5), table.table.len()), ((99_995..100_000).collect(), 5));
    }
}
