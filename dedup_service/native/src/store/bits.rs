//! A set of row numbers, one bit each from the first member on.

use std::ops::Range;

use super::row::word;

const WORD: u64 = 64;

/// Rows of a store. Leading words without a member are given back, so rows that expired cost nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RowSet {
    /// The number of `words[0]`.
    first: u64,
    words: Vec<u64>,
    len: u64,
}

impl RowSet {
    /// Return the set whose bytes `encode` has returned; None for a length or place that no set has.
    pub(super) fn decode(first_row: u64, bytes: &[u8]) -> Option<Self> {
        let end = first_row.checked_add(bytes.len() as u64 * 8)?;
        if bytes.len() % 8 != 0 || first_row % WORD != 0 || end > 1 << 32 {
            return None;
        }
        let words: Vec<u64> = bytes.chunks_exact(8).map(|bytes| word(bytes, 0)).collect();
        let len = words.iter().map(|word| u64::from(word.count_ones())).sum();
        Some(Self { first: first_row / WORD, words, len })
    }

    /// Return the first row of the bitmap, and its bytes.
    pub(super) fn encode(&self) -> (u64, Vec<u8>) {
        (self.first * WORD, self.words.iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    /// Return the number of rows.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Return whether a row is in the set.
    pub(super) fn has(&self, row: u32) -> bool {
        let word = (u64::from(row) / WORD).checked_sub(self.first);
        word.and_then(|word| self.words.get(word as usize)).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Add rows.
    pub(super) fn extend(&mut self, rows: Range<u64>) {
        if rows.is_empty() {
            return;
        }
        let (first, last) = (rows.start / WORD, (rows.end - 1) / WORD);
        if self.words.is_empty() {
            self.first = first;
        }
        let before = self.first.saturating_sub(first);
        self.words.splice(..0, std::iter::repeat_n(0, before as usize));
        self.first -= before;
        self.words.resize(self.words.len().max((last + 1 - self.first) as usize), 0);
        for number in first..=last {
            let low = rows.start.saturating_sub(number * WORD);
            let high = (rows.end - number * WORD).min(WORD);
            let word = &mut self.words[(number - self.first) as usize];
            let added = *word | (u64::MAX >> (WORD - (high - low))) << low;
            self.len += u64::from((added ^ *word).count_ones());
            *word = added;
        }
    }

    /// Remove a row; return whether it was there.
    pub(super) fn remove(&mut self, row: u32) -> bool {
        let is_there = self.has(row);
        if is_there {
            self.words[(u64::from(row) / WORD - self.first) as usize] &= !(1 << (row % 64));
            self.len -= 1;
        }
        is_there
    }

    /// Remove the rows below `end` that `other` does not have.
    pub(super) fn intersect(&mut self, other: &Self, end: u64) {
        for (number, word) in (self.first..).zip(&mut self.words) {
            let there = number.checked_sub(other.first).and_then(|place| other.words.get(place as usize));
            let beyond = end.saturating_sub(number * WORD);
            let beyond = if beyond >= WORD { 0 } else { u64::MAX << beyond };
            let kept = *word & (there.copied().unwrap_or(0) | beyond);
            self.len -= u64::from((*word ^ kept).count_ones());
            *word = kept;
        }
    }

    /// Give back the words before the first row, if they are half of all.
    pub(super) fn shrink(&mut self) {
        let empty = self.words.iter().take_while(|word| **word == 0).count();
        if empty > self.words.len() / 2 {
            self.words = self.words.split_off(empty);
            self.first += empty as u64;
        }
    }

    /// Return the first row from `from` on.
    pub(super) fn next(&self, from: u64) -> Option<u32> {
        self.next_without(&Self::default(), from)
    }

    /// Yield the longest runs of rows from `from` on that are in this set, but not in `other`.
    pub(super) fn runs_without<'a>(&'a self, other: &'a Self, from: u64) -> impl Iterator<Item = Range<u32>> + 'a {
        let mut at = from;
        std::iter::from_fn(move || {
            let start = self.next_without(other, at)?;
            let mut end = start.saturating_add(1);
            while self.has(end) && !other.has(end) {
                end = end.saturating_add(1);
            }
            at = u64::from(end);
            Some(start..end)
        })
    }

    fn next_without(&self, other: &Self, from: u64) -> Option<u32> {
        let skipped = (from / WORD).saturating_sub(self.first) as usize;
        for (place, word) in self.words.iter().enumerate().skip(skipped) {
            let number = self.first + place as u64;
            let there = number.checked_sub(other.first).and_then(|place| other.words.get(place as usize));
            let mut word = word & !there.copied().unwrap_or(0);
            if number == from / WORD {
                word &= u64::MAX << (from % WORD);
            }
            if word != 0 {
                return Some((number * WORD) as u32 + word.trailing_zeros());
            }
        }
        None
    }

    /// Return the bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.words.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Change {
        Extend(u64),
        Again(prop::sample::Index, u64),
        Remove(prop::sample::Index),
        Keep(Vec<bool>),
        Shrink,
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            4 => (0..200u64).prop_map(Change::Extend),
            1 => (any::<prop::sample::Index>(), 0..200u64).prop_map(|(index, count)| Change::Again(index, count)),
            4 => any::<prop::sample::Index>().prop_map(Change::Remove),
            1 => prop::collection::vec(any::<bool>(), 64).prop_map(Change::Keep),
            1 => Just(Change::Shrink),
        ]
    }

    proptest! {
        /// The set is that of a BTreeSet after any changes, also near the last row number.
        #[test]
        fn equals_a_set(first in prop_oneof![0..300u64, (1u64 << 32) - 9000..(1 << 32) - 8000],
                        changes in prop::collection::vec(change(), 0..40)) {
            let (mut rows, mut plain, mut end) = (RowSet::default(), BTreeSet::new(), first);
            for change in changes {
                match change {
                    Change::Extend(count) => {
                        rows.extend(end..end + count);
                        plain.extend((end..end + count).map(|row| row as u32));
                        end += count;
                    }
                    Change::Again(index, count) => {
                        let from = first + index.index((end - first) as usize + 1) as u64;
                        rows.extend(from..end.min(from + count));
                        plain.extend((from..end.min(from + count)).map(|row| row as u32));
                    }
                    Change::Remove(index) => {
                        let row = (first + index.index((end - first) as usize + 1) as u64) as u32;
                        prop_assert_eq!(rows.remove(row), plain.remove(&row));
                    }
                    Change::Keep(bits) => {
                        let mut other = RowSet::default();
                        other.extend(first..end);
                        let kept = |row: u32| bits[row as usize % bits.len()];
                        (first..end).filter(|row| !kept(*row as u32)).for_each(|row| { other.remove(row as u32); });
                        let below = first + (end - first) / 2;
                        rows.intersect(&other, below);
                        plain.retain(|row| u64::from(*row) >= below || kept(*row));
                    }
                    Change::Shrink => rows.shrink(),
                }
                prop_assert_eq!(rows.len(), plain.len() as u64);
            }
            let mut found = Vec::new();
            while let Some(row) = rows.next(found.last().map_or(0, |row: &u32| u64::from(*row) + 1)) {
                found.push(row);
            }
            prop_assert_eq!(&found, &plain.iter().copied().collect::<Vec<_>>());
            let (first_row, bytes) = rows.encode();
            prop_assert_eq!(RowSet::decode(first_row, &bytes), Some(rows.clone()));
            let mut thinned = rows.clone();
            found.iter().filter(|row| **row % 3 == 0).for_each(|row| { thinned.remove(*row); });
            let gone: Vec<u32> = rows.runs_without(&thinned, 0).flatten().collect();
            prop_assert_eq!(gone, found.into_iter().filter(|row| row % 3 == 0).collect::<Vec<_>>());
        }
    }

    /// Bytes of no set are refused.
    #[test]
    fn refuses_what_is_no_set() {
        assert_eq!(RowSet::decode(0, &[0; 7]), None);
        assert_eq!(RowSet::decode(1, &[0; 8]), None);
        assert_eq!(RowSet::decode(u64::MAX - 63, &[0; 8]), None);
        assert_eq!(RowSet::decode(1 << 32, &[0; 8]), None);
    }
}
