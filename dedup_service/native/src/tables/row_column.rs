//! One value for each row, in chunks that are never moved and that go when their last row goes.

use std::ops::Range;

use crate::memory::prefetch;

/// Rows of a chunk.
pub const CHUNK: usize = 4096;
const WORDS: usize = CHUNK / 64;

/// Values of rows: any `u32` may be a row.
///
/// Memory is 4,096 values for each run of 4,096 rows of which one has a value, and 8 bytes for each run up to the last.
#[derive(Debug, Default)]
pub struct RowColumn<T> {
    chunks: Vec<Option<Chunk<T>>>,
    len: usize,
}

/// Values of consecutive rows, and which rows have one.
#[derive(Debug)]
struct Chunk<T>(Box<Rows<T>>);

#[derive(Debug)]
struct Rows<T> {
    values: [T; CHUNK],
    present: [u64; WORDS],
    len: u32,
}

fn place_of(row: u32) -> (usize, usize) {
    (row as usize / CHUNK, row as usize % CHUNK)
}

impl<T: Copy + Default> RowColumn<T> {
    /// Number of rows that have a value.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The value of a row, if it has one.
    #[inline]
    pub fn get(&self, row: u32) -> Option<T> {
        let (chunk, place) = place_of(row);
        let rows = &self.chunks.get(chunk)?.as_ref()?.0;
        (rows.present[place / 64] >> (place % 64) & 1 == 1).then(|| rows.values[place])
    }

    /// The value of a row that has one; any value for another row. Reads one cache line less than `get`.
    #[inline]
    pub fn value(&self, row: u32) -> T {
        let (chunk, place) = place_of(row);
        self.chunks.get(chunk).and_then(Option::as_ref).map_or_else(T::default, |rows| rows.0.values[place])
    }

    /// Fetch the value of a row that is needed soon.
    #[inline]
    pub fn prefetch(&self, row: u32) {
        let (chunk, place) = place_of(row);
        if let Some(Some(rows)) = self.chunks.get(chunk) {
            prefetch(&rows.0.values, place);
        }
    }

    /// Give a row a value if it has none; return whether it had none.
    pub fn insert(&mut self, row: u32, value: T) -> bool {
        let (chunk, place) = place_of(row);
        if chunk >= self.chunks.len() {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let rows = &mut self.chunks[chunk].get_or_insert_with(Chunk::new).0;
        let bit = 1 << (place % 64);
        if rows.present[place / 64] & bit != 0 {
            return false;
        }
        rows.present[place / 64] |= bit;
        rows.values[place] = value;
        rows.len += 1;
        self.len += 1;
        true
    }

    /// Give a row a value, in place of the one that it has.
    pub fn set(&mut self, row: u32, value: T) {
        if !self.insert(row, value) {
            let (chunk, place) = place_of(row);
            if let Some(Some(rows)) = self.chunks.get_mut(chunk) {
                rows.0.values[place] = value;
            }
        }
    }

    /// Take all values of another column, in which other rows have one.
    pub fn absorb(&mut self, other: Self) {
        if self.chunks.len() < other.chunks.len() {
            self.chunks.resize_with(other.chunks.len(), || None);
        }
        for (number, chunk) in other.chunks.into_iter().enumerate() {
            let Some(chunk) = chunk else { continue };
            match &mut self.chunks[number] {
                Some(_) => chunk.rows(number).for_each(|(row, value)| self.set(row, value)),
                none => {
                    self.len += chunk.0.len as usize;
                    *none = Some(chunk);
                }
            }
        }
    }

    /// Take the values of rows, as far as these fill chunks of 4,096.
    pub fn release(&mut self, rows: Range<u32>) {
        let chunks = (rows.start as usize).div_ceil(CHUNK)..rows.end as usize / CHUNK;
        for chunk in self.chunks.iter_mut().take(chunks.end).skip(chunks.start) {
            self.len -= chunk.take().map_or(0, |rows| rows.0.len as usize);
        }
    }

    /// Take the value of a row, if it has one.
    pub fn remove(&mut self, row: u32) -> Option<T> {
        let value = self.get(row)?;
        let (chunk, place) = place_of(row);
        let rows = &mut self.chunks[chunk].as_mut()?.0;
        rows.present[place / 64] &= !(1 << (place % 64));
        rows.len -= 1;
        self.len -= 1;
        if rows.len == 0 {
            self.chunks[chunk] = None;
            let used = self.chunks.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
            self.chunks.truncate(used);
            if self.chunks.capacity() > 4 * used {
                self.chunks.shrink_to_fit();
            }
        }
        Some(value)
    }

    /// The rows that have a value, ascending, with their values.
    pub fn iter(&self) -> impl Iterator<Item = (u32, T)> + '_ {
        let chunks = self.chunks.iter().enumerate().filter_map(|(number, chunk)| Some((number, chunk.as_ref()?)));
        chunks.flat_map(|(number, chunk)| chunk.rows(number))
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().flatten().count() * size_of::<Rows<T>>() + self.chunks.capacity() * size_of::<usize>()
    }
}

impl<T: Copy + Default> Chunk<T> {
    fn new() -> Self {
        Self(Box::new(Rows { values: [T::default(); CHUNK], present: [0; WORDS], len: 0 }))
    }

    /// The rows of the chunk of a number, ascending, with their values.
    fn rows(&self, number: usize) -> impl Iterator<Item = (u32, T)> + '_ {
        let is_present = |&place: &usize| self.0.present[place / 64] >> (place % 64) & 1 == 1;
        (0..CHUNK).filter(is_present).map(move |place| ((number * CHUNK + place) as u32, self.0.values[place]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// A column is a map from rows to values, whatever is inserted and removed.
        #[test]
        fn a_column_is_a_map(steps in prop::collection::vec((0u32..3, 0u32..9, any::<bool>(), any::<u64>()), 0..300)) {
            let (mut column, mut map) = (RowColumn::default(), BTreeMap::new());
            for (high, low, inserts, value) in steps {
                let row = high * 5000 + low;
                if inserts {
                    prop_assert_eq!(column.insert(row, value), !map.contains_key(&row));
                    map.entry(row).or_insert(value);
                } else {
                    prop_assert_eq!(column.remove(row), map.remove(&row));
                }
                prop_assert_eq!(column.get(row), map.get(&row).copied());
                prop_assert_eq!(column.len(), map.len());
            }
            prop_assert_eq!(column.iter().collect::<Vec<_>>(), map.into_iter().collect::<Vec<_>>());
        }
    }

    /// A column that has absorbed another one has the rows of both, also of one chunk.
    #[test]
    fn columns_are_joined() {
        let (mut one, mut other) = (RowColumn::default(), RowColumn::default());
        for row in 0..20_000u32 {
            if row % 3 == 0 && row < 9_000 {
                one.insert(row, row)
            } else {
                other.insert(row, row)
            };
        }
        one.absorb(other);
        assert!(one.iter().eq((0..20_000).map(|row| (row, row))) && one.len() == 20_000);
    }

    /// Far rows take a chunk each and a directory, and all memory of values is given back with the last row.
    #[test]
    fn memory_follows_the_rows() {
        let mut column = RowColumn::default();
        for row in [0, 4_000_000_000, u32::MAX] {
            assert!(column.insert(row, u64::from(row)));
            assert_eq!((column.get(row), column.value(row)), (Some(u64::from(row)), u64::from(row)));
        }
        assert!(column.bytes() < 20 << 20);
        for row in [u32::MAX, 4_000_000_000, 0] {
            assert_eq!(column.remove(row), Some(u64::from(row)));
        }
        assert!(column.len() == 0 && column.bytes() == 0);
    }
}
