//! Rows that share min-hash keys with a page, however common a key is, at a bounded cost.
//!
//! A page has, in each of eight parts of its shingles, its `levels` smallest hashes in order (its keys), and belongs to
//! one of `slots` slots. A row is stored, in each part, under the first of its keys whose *cell* (part, key, slot) is
//! free. A cell holds one row and counts those that it turned away; one that holds none and turned none away is removed.
//! A probe looks at all slots under the first key of each part, then under the next key only at the slots whose cell
//! turned rows away, and so on: it finds 8 · levels · slots rows at most. The *sieve*, the first 128 bits of the sketch,
//! leaves out most rows that share a key by chance: of two sketches of similarity J a bit is equal with probability
//! (1 + J)/2.
//!
//! Part, key and slot are the 41 bits of an identity (`slots`), so no two cells are ever confused. Cells of one key in
//! all slots are neighbours. A cell that turned six or more rows away counts them in a second table.
//!
//! The *path* of a row says where it was stored: one byte a part, the level of the key whose cell holds the row, or 128
//! plus the number of keys if all of their cells turned it away; then each key up to there, 32 bits, little-endian.
//!
//! Invariants: answers are a function of the insertions and removals in their order. Putting rows back by their paths,
//! in any order, gives the same cells.

use std::collections::HashMap;

use super::row_column::RowColumn;
use super::slots::{
    Element, MAX_COUNT, NEAR_BITS, NO_ROW, SlotFilling, SlotShare, SlotTable, Spot, TO_CHANGE, TO_FIND,
};
use crate::error::{Result, TableError};

/// Parts of a page's shingles.
pub const PARTS: usize = 8;
/// Slots of an index, at most.
pub const MAX_SLOTS: usize = 1 << NEAR_BITS;
/// Keys of each part, at most.
pub const MAX_LEVELS: usize = 32;
/// Bits of the sieve in which a row may differ from a page: .9997 of the matches do not in more, nor 6.8% of the rest.
pub const MOST_DIFFERING: u32 = 53;

/// A level from which on a row is in no cell of the part.
const EMPTY_PART: u8 = 128;
/// A cell that turned so many rows away stays as it is, so it counts as overflowed for good.
const MAX_TURNED: u32 = (1 << 22) - 1;
/// Pages whose first cells are fetched ahead; 2 and 4 were slower at 10^6 rows.
const AHEAD: usize = 1;

/// The first 128 bits of a sketch.
pub type Sieve = [u64; 2];

/// What a probe is told of a page. keys: `levels` of each part in turn, 0 behind the last one of a part; a slice of
/// another length counts as no keys.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    /// `PARTS` · `levels` keys.
    pub keys: &'a [u32],
    /// The first bits of its sketch.
    pub sieve: Sieve,
}

/// An insertion or a removal.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// Store a row, and give it its path.
    Insert {
        /// Its number.
        row: u32,
        /// Pages decided before it.
        ordinal: u64,
        /// Its keys and its sieve.
        page: Probe<'a>,
    },
    /// Remove a row, as [`CellIndex::remove`] does.
    Remove {
        /// Its number.
        row: u32,
        /// Pages decided before it.
        ordinal: u64,
        /// What its insertion returned; empty for the last insertion of this row before, in the same batch.
        path: &'a [u8],
    },
}

/// What n pages found.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Found {
    /// Where the rows of each page end.
    pub ends: Vec<usize>,
    /// Rows that pass the sieve; those of each page ascend and are different.
    pub rows: Vec<u32>,
    /// How many different rows each page had before the sieve.
    pub probed: Vec<u32>,
}

impl Found {
    /// Return what one page found, as if it were the only one.
    ///
    /// # Panics
    /// If there is no such page.
    #[must_use]
    pub fn of(&self, page: usize) -> Self {
        let (start, end) = (page.checked_sub(1).map_or(0, |before| self.ends[before]), self.ends[page]);
        Self { ends: vec![end - start], rows: self.rows[start..end].to_vec(), probed: vec![self.probed[page]] }
    }
}

/// Sizes of a cell index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CellStatistics {
    /// Rows in at least one cell.
    pub entries: usize,
    /// Cells that hold a row or turned some away.
    pub cells: usize,
    /// Cells that turned rows away.
    pub overflowed: usize,
    /// Memory reserved for tables and sieves.
    pub bytes: usize,
    /// Memory reserved for sieves.
    pub sieve_bytes: usize,
}

/// Rows by the keys of their pages; see the module. A row is a number below 2^32 - 1 that the caller gives a page; it may
/// give it to another one once the first was removed, but not with another sieve within one call of `follow`.
pub struct CellIndex {
    slots: u64,
    levels: usize,
    cells: SlotTable,
    /// How many rows a cell turned away, from [`MAX_COUNT`] on, in place of a row.
    turned: SlotTable,
    sieves: RowColumn<Sieve>,
    entries: usize,
    overflowed: usize,
}

impl CellIndex {
    /// An empty index. slots: 1 to [`MAX_SLOTS`]. levels: keys of each part, 1 to [`MAX_LEVELS`].
    ///
    /// # Errors
    /// `Configuration` for other numbers.
    pub fn new(slots: usize, levels: usize) -> Result<Self> {
        if !(1..=MAX_SLOTS).contains(&slots) || !(1..=MAX_LEVELS).contains(&levels) {
            return Err(TableError::Configuration(format!(
                "a cell index has 1 to {MAX_SLOTS} slots and 1 to {MAX_LEVELS} levels, got {slots} and {levels}"
            )));
        }
        Ok(Self {
            slots: slots as u64,
            levels,
            cells: SlotTable::default(),
            turned: SlotTable::default(),
            sieves: RowColumn::default(),
            entries: 0,
            overflowed: 0,
        })
    }

    /// How many rows are in at least one cell.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.entries
    }

    /// The sizes of the index.
    pub fn statistics(&self) -> CellStatistics {
        let sieve_bytes = self.sieves.bytes();
        CellStatistics {
            entries: self.entries,
            cells: self.cells.len(),
            overflowed: self.overflowed,
            bytes: self.cells.bytes() + self.turned.bytes() + sieve_bytes,
            sieve_bytes,
        }
    }

    /// Store a row and return its path.
    fn inserted(&mut self, row: u32, ordinal: u64, page: Probe) -> Vec<u8> {
        self.sieves.set(row, page.sieve);
        let (slot, levels) = (ordinal % self.slots, self.levels);
        let mut path = vec![EMPTY_PART; PARTS];
        for (part, keys) in self.known(page.keys).chunks_exact(levels).enumerate() {
            for (level, &key) in (0..).zip(keys).take_while(|(_, key)| **key != 0) {
                path.extend(key.to_le_bytes());
                if self.offer(cell_of(part, key, slot), row) {
                    path[part] = level;
                    break;
                }
                path[part] = EMPTY_PART + level + 1;
            }
        }
        self.entries += usize::from(Path::split(&path).is_some_and(|(path, _)| path.is_in_a_cell()));
        path
    }

    /// Remove a row by its path; false, and nothing changed, if the index does not have it so.
    pub fn remove(&mut self, row: u32, ordinal: u64, path: &[u8]) -> bool {
        let Some((path, [])) = Path::split(path) else { return false };
        self.prefetch_path(&path, ordinal);
        let mut cells = path.cells(ordinal % self.slots);
        if let Some(failed) = cells.position(|(cell, holds)| !self.withdraw(cell, row, holds)) {
            path.cells(ordinal % self.slots).take(failed).for_each(|(cell, holds)| self.put_back(cell, row, holds));
            return false;
        }
        self.entries = self.entries.saturating_sub(usize::from(path.is_in_a_cell()));
        true
    }

    /// Put a row back by its path, in any order, beside those that are there.
    ///
    /// # Errors
    /// `State` if the bytes are no path, or the row is too large; then nothing changed.
    pub fn restore(&mut self, row: u32, ordinal: u64, sieve: Sieve, path: &[u8]) -> Result<()> {
        check_rows([row])?;
        let Some((path, [])) = Path::split(path) else {
            let size = path.len();
            return Err(TableError::State(format!("the path of row {row} is cut off or too long: {size} bytes")));
        };
        self.sieves.set(row, sieve);
        path.cells(ordinal % self.slots).for_each(|(cell, holds)| self.put_back(cell, row, holds));
        self.entries += usize::from(path.is_in_a_cell());
        Ok(())
    }

    /// Give back the memory for the sieves of rows that are not used any more, as far as they fill chunks.
    pub fn release_sieves(&mut self, rows: std::ops::Range<u32>) {
        self.sieves.release(rows);
    }

    /// Apply changes, and probe pages between them: page i after the first due[i] changes. All changes are applied at
    /// last. Returns what the pages found, and the path of each insertion, empty for removals.
    ///
    /// # Errors
    /// `State` if the index does not have the row of a removal as its path says: then earlier changes are applied, this
    /// one and later ones are not. Or if a row is too large, or pages and `due` differ in number: nothing changed.
    pub fn follow(&mut self, changes: &[Change], due: &[usize], pages: &[Probe]) -> Result<(Found, Vec<Vec<u8>>)> {
        if pages.len() != due.len() {
            let counts = [pages.len(), due.len()];
            return Err(TableError::State(format!("pages, and numbers of changes before them, differ: {counts:?}")));
        }
        let insertions = changes.iter().filter_map(|change| match change {
            Change::Insert { row, .. } => Some(*row),
            Change::Remove { .. } => None,
        });
        check_rows(insertions)?;
        let (mut found, mut paths) = (Found::default(), Vec::with_capacity(changes.len()));
        let undoes = |change: &Change| matches!(change, Change::Remove { path: [], .. });
        let (mut inserted, mut probed) = (changes.iter().any(undoes).then(HashMap::new), 0);
        for (number, change) in changes.iter().enumerate() {
            let ready = due[probed..].iter().take_while(|&&due| due <= number).count();
            self.probe_into(&pages[probed..probed + ready], &mut found);
            probed += ready;
            if let Some(next) = changes.get(number + 1) {
                self.prefetch_change(next);
            }
            if let (Some(inserted), Change::Insert { row, .. }) = (&mut inserted, change) {
                inserted.insert(*row, number);
            }
            let undone = |row| paths.get(*inserted.as_ref()?.get(&row)?).map(Vec::as_slice);
            paths.push(self.apply(change, undone)?);
        }
        self.probe_into(&pages[probed..], &mut found);
        Ok((found, paths))
    }

    /// Apply a change of a batch. undone: the path of the last insertion of a row in this batch.
    fn apply<'a>(&mut self, change: &Change<'a>, undone: impl Fn(u32) -> Option<&'a [u8]>) -> Result<Vec<u8>> {
        match *change {
            Change::Insert { row, ordinal, page } => Ok(self.inserted(row, ordinal, page)),
            Change::Remove { row, ordinal, path } => {
                let path = if path.is_empty() { undone(row).unwrap_or(path) } else { path };
                if self.remove(row, ordinal, path) {
                    return Ok(Vec::new());
                }
                let message = format!("row {row} is not in the cells of its path; the index and its entries differ");
                Err(TableError::State(message))
            }
        }
    }

    /// Offer a row to a cell; false if the cell turned it away.
    fn offer(&mut self, cell: u64, row: u32) -> bool {
        let (spot, found) = self.cells.get(cell);
        match found {
            Some(element) if element.row() != NO_ROW => {
                self.turn_away(cell, spot, element);
                false
            }
            Some(element) => {
                self.cells.replace(spot, Element::new(cell, element.count(), row));
                true
            }
            None => {
                self.cells.insert(spot, 0, Element::new(cell, 0, row));
                true
            }
        }
    }

    /// Undo that a cell holds a row, or that it turned one away; false, and nothing changed, if that is not so.
    fn withdraw(&mut self, cell: u64, row: u32, holds: bool) -> bool {
        let (spot, Some(element)) = self.cells.get(cell) else { return false };
        let (mut count, mut holder) = (element.count(), element.row());
        if holds && holder == row && row != NO_ROW {
            holder = NO_ROW;
        } else if !holds && count > 0 {
            count = self.take_back(cell, count);
        } else {
            return false;
        }
        if holder == NO_ROW && count == 0 {
            self.cells.remove(spot, 0);
        } else {
            self.cells.replace(spot, Element::new(cell, count, holder));
        }
        true
    }

    /// Let a cell hold a row, or count that it turned one away.
    fn put_back(&mut self, cell: u64, row: u32, holds: bool) {
        let (spot, found) = self.cells.get(cell);
        match found {
            Some(element) if !holds => self.turn_away(cell, spot, element),
            Some(element) => self.cells.replace(spot, Element::new(cell, element.count(), row)),
            None if holds => self.cells.insert(spot, 0, Element::new(cell, 0, row)),
            None => {
                self.cells.insert(spot, 0, Element::new(cell, 1, NO_ROW));
                self.overflowed += 1;
            }
        }
    }

    /// Count one more row that a cell turned away.
    fn turn_away(&mut self, cell: u64, spot: Spot, element: Element) {
        let count = (element.count() + 1).min(MAX_COUNT);
        self.overflowed += usize::from(count == 1);
        if count == MAX_COUNT {
            let (spot, turned) = self.turned.get(cell);
            let count = turned.map_or(MAX_COUNT, |turned| MAX_TURNED.min(turned.row() + 1));
            let more = Element::new(cell, 0, count);
            if turned.is_none() { self.turned.insert(spot, 0, more) } else { self.turned.replace(spot, more) }
        }
        if count != element.count() {
            self.cells.replace(spot, Element::new(cell, count, element.row()));
        }
    }

    /// Count one row fewer that a cell turned away; return the new count of its element.
    fn take_back(&mut self, cell: u64, count: u32) -> u32 {
        if count < MAX_COUNT {
            self.overflowed -= usize::from(count == 1);
            return count - 1;
        }
        let (spot, turned) = self.turned.get(cell);
        let turned = turned.map_or(MAX_COUNT, Element::row);
        if turned == MAX_COUNT {
            self.turned.remove(spot, 0);
            return MAX_COUNT - 1;
        }
        if turned < MAX_TURNED {
            self.turned.replace(spot, Element::new(cell, 0, turned - 1));
        }
        MAX_COUNT
    }

    /// The keys, or none if there are more or fewer than the index has.
    fn known<'a>(&self, keys: &'a [u32]) -> &'a [u32] {
        if keys.len() == PARTS * self.levels { keys } else { &[] }
    }

    /// Fetch the cells of the first key of each part.
    fn prefetch(&self, keys: &[u32], lines: usize) {
        for (part, keys) in self.known(keys).chunks_exact(self.levels).enumerate() {
            self.cells.prefetch(cell_of(part, keys[0], 0), lines);
        }
    }

    fn prefetch_path(&self, path: &Path, ordinal: u64) {
        path.cells(ordinal % self.slots).for_each(|(cell, _)| self.cells.prefetch(cell, TO_CHANGE));
    }

    fn prefetch_change(&self, change: &Change) {
        match change {
            Change::Insert { page, .. } => self.prefetch(page.keys, TO_CHANGE),
            Change::Remove { ordinal, path, .. } => {
                if let Some((path, _)) = Path::split(path) {
                    self.prefetch_path(&path, *ordinal);
                }
            }
        }
    }

    /// Append what the keys of pages lead to.
    fn probe_into(&self, pages: &[Probe], found: &mut Found) {
        let (mut rows, mut ends) = (Vec::new(), Vec::with_capacity(pages.len()));
        pages.iter().take(AHEAD).for_each(|page| self.prefetch(page.keys, TO_FIND));
        for (number, page) in pages.iter().enumerate() {
            if let Some(next) = pages.get(number + AHEAD) {
                self.prefetch(next.keys, TO_FIND);
            }
            self.collect(self.known(page.keys), &mut rows);
            ends.push(rows.len());
        }
        let mut rest = rows.as_mut_slice();
        let mut start = 0;
        for (page, end) in pages.iter().zip(ends) {
            let (own, behind) = rest.split_at_mut(end - start);
            (rest, start) = (behind, end);
            own.sort_unstable();
            let different = || own.chunk_by(|one, other| one == other).map(|same| same[0]);
            found.probed.push(different().count() as u32);
            found.rows.extend(different().filter(|&row| self.passes(row, page.sieve)));
            found.ends.push(found.rows.len());
        }
    }

    #[inline]
    fn passes(&self, row: u32, sieve: Sieve) -> bool {
        let own = self.sieves.value(row);
        (own[0] ^ sieve[0]).count_ones() + (own[1] ^ sieve[1]).count_ones() <= MOST_DIFFERING
    }

    /// Append the rows that keys lead to, some of them repeatedly, and fetch their sieves.
    ///
    /// Level by level for all parts at once, so that the cells of the next level are fetched meanwhile.
    fn collect(&self, keys: &[u32], rows: &mut Vec<u32>) {
        if keys.is_empty() {
            return;
        }
        let mut active = [u64::MAX; PARTS];
        for level in 0..self.levels {
            let mut going = false;
            for (part, active) in active.iter_mut().enumerate().filter(|(_, active)| **active != 0) {
                let keys = &keys[part * self.levels..(part + 1) * self.levels];
                *active =
                    if keys[level] == 0 { 0 } else { self.collect_key(cell_of(part, keys[level], 0), *active, rows) };
                if *active != 0 && level + 1 < self.levels {
                    going = true;
                    self.cells.prefetch(cell_of(part, keys[level + 1], 0), TO_FIND);
                }
            }
            if !going {
                return;
            }
        }
    }

    /// Append the rows of a key, whose first cell is given, at the active slots, one bit each; return the slots whose
    /// cell turned rows away.
    #[inline]
    fn collect_key(&self, first: u64, active: u64, rows: &mut Vec<u32>) -> u64 {
        let tag = Element::new(first, 0, 0).tag();
        let mut overflowed = 0;
        let of_key = |element: &Element| element.tag() >> NEAR_BITS == tag >> NEAR_BITS;
        for element in self.cells.from(self.cells.find(first)).take_while(of_key) {
            let bit = active & 1 << (element.tag() - tag);
            if bit != 0 && element.row() != NO_ROW {
                self.sieves.prefetch(element.row());
                rows.push(element.row());
            }
            if element.count() > 0 {
                overflowed |= bit;
            }
        }
        overflowed
    }
}

/// The identity of a cell: part and key, 35 bits, mixed by a bijection; then the slot.
///
/// Both multipliers are odd and below 2^35, and each step can be undone.
#[inline]
fn cell_of(part: usize, key: u32, slot: u64) -> u64 {
    const MASK: u64 = (1 << 35) - 1;
    let mut value = (part as u64) << 32 | u64::from(key);
    value ^= value >> 18;
    value = value.wrapping_mul(0x4_F1BB_CDCB) & MASK;
    value ^= value >> 17;
    value = value.wrapping_mul(0x5_BD1E_9955) & MASK;
    (value ^ value >> 18) << NEAR_BITS | slot
}

/// A path, as the module describes it.
#[derive(Clone, Copy)]
struct Path<'a> {
    levels: &'a [u8; PARTS],
    keys: &'a [u8],
}

impl<'a> Path<'a> {
    /// The path with which bytes begin, and what is behind it; none if it is cut off.
    fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (levels, behind) = bytes.split_first_chunk()?;
        let count: usize = levels.iter().map(|&level| tried(level)).sum();
        let (keys, behind) = behind.split_at_checked(4 * count)?;
        Some((Self { levels, keys }, behind))
    }

    /// The cells that the row was offered to, and whether they hold it.
    fn cells(self, slot: u64) -> impl Iterator<Item = (u64, bool)> {
        let offers = self.levels.iter().enumerate().flat_map(|(part, &level)| {
            (1..=tried(level)).map(move |number| (part, level < EMPTY_PART && number == tried(level)))
        });
        offers.zip(self.keys.chunks_exact(4)).map(move |((part, holds), key)| {
            (cell_of(part, u32::from_le_bytes([key[0], key[1], key[2], key[3]]), slot), holds)
        })
    }

    fn is_in_a_cell(self) -> bool {
        self.levels.iter().any(|&level| level < EMPTY_PART)
    }
}

/// How many keys a part of a path has.
fn tried(level: u8) -> usize {
    usize::from(if level < EMPTY_PART { level + 1 } else { level - EMPTY_PART })
}

fn check_rows(rows: impl IntoIterator<Item = u32>) -> Result<()> {
    if rows.into_iter().any(|row| row == NO_ROW) {
        let message = format!("a row is a number from 0 to {}, got {NO_ROW}: the index is full", NO_ROW - 1);
        return Err(TableError::State(message));
    }
    Ok(())
}

/// An index to come, of many rows by their paths, in any order; see [`SlotFilling`]. It answers as after
/// [`CellIndex::restore`] of them.
pub struct CellFilling {
    index: CellIndex,
    cells: SlotFilling,
    shares: Vec<(RowColumn<Sieve>, usize)>,
}

/// What one thread adds to an index.
pub struct CellShare<'a> {
    slots: u64,
    cells: SlotShare<'a>,
    /// Sieves, and how many rows are in cells.
    added: &'a mut (RowColumn<Sieve>, usize),
}

impl CellFilling {
    /// Nothing yet. slots, levels: as of [`CellIndex::new`]. cells: about how many will be used. shares: how many threads
    /// add rows.
    ///
    /// # Errors
    /// As [`CellIndex::new`].
    pub fn new(slots: usize, levels: usize, cells: usize, shares: usize) -> Result<Self> {
        let index = CellIndex::new(slots, levels)?;
        let nothing = (0..shares).map(|_| (RowColumn::default(), 0)).collect();
        Ok(Self { index, cells: SlotFilling::new(cells, shares), shares: nothing })
    }

    /// The shares, for some rows.
    pub fn shares(&mut self) -> Vec<CellShare<'_>> {
        let slots = self.index.slots;
        let shares = self.cells.shares().into_iter().zip(&mut self.shares);
        shares.map(|(cells, added)| CellShare { slots, cells, added }).collect()
    }

    /// The index of these rows.
    pub fn finish(self) -> CellIndex {
        let mut index = self.index;
        let (cells, counts) = self.cells.finish(merge_cells);
        index.cells = cells;
        for (overflowed, turned) in counts {
            index.overflowed += overflowed;
            for (cell, count) in turned {
                let spot = index.turned.find(cell);
                index.turned.insert(spot, 0, Element::new(cell, 0, count));
            }
        }
        for (sieves, entries) in self.shares {
            index.sieves.absorb(sieves);
            index.entries += entries;
        }
        index
    }
}

impl CellShare<'_> {
    /// Add a row by its path; false, and nothing is added, if the bytes are no path.
    #[inline]
    pub fn add(&mut self, row: u32, ordinal: u64, sieve: Sieve, path: &[u8]) -> bool {
        let Some((path, [])) = Path::split(path) else { return false };
        self.added.0.set(row, sieve);
        for (cell, holds) in path.cells(ordinal % self.slots) {
            let (count, row) = if holds { (0, row) } else { (1, NO_ROW) };
            self.cells.add(cell, count, row);
        }
        self.added.1 += usize::from(path.is_in_a_cell());
        true
    }
}

/// Make one element of all that concern a cell; return how many cells turned rows away, and how many rows did each that
/// turned [`MAX_COUNT`] or more away.
fn merge_cells(first: u64, elements: &mut Vec<Element>) -> (usize, Vec<(u64, u32)>) {
    let (mut overflowed, mut turned, mut kept, mut start) = (0, Vec::new(), 0, 0);
    while let Some(&element) = elements.get(start) {
        let same = &elements[start..];
        let same = &same[..same.iter().take_while(|other| other.tag() == element.tag()).count()];
        let cell = first | u64::from(element.tag());
        let holders = same.partition_point(|element| element.count() == 0);
        let count = (same.len() - holders).min(MAX_TURNED as usize) as u32;
        overflowed += usize::from(count > 0);
        if count >= MAX_COUNT {
            turned.push((cell, count));
        }
        let holder = same[..holders].last().map_or(NO_ROW, |element| element.row());
        start += same.len();
        elements[kept] = Element::new(cell, count, holder);
        kept += 1;
    }
    elements.truncate(kept);
    (overflowed, turned)
}

#[cfg(test)]
mod tests {
    use super::Change::{Insert, Remove};
    use super::*;
    use crate::memory::mix64;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    impl CellIndex {
        pub(crate) fn insert(&mut self, row: u32, ordinal: u64, keys: &[u32], sieve: Sieve) -> Result<Vec<u8>> {
            let inserted = Insert { row, ordinal, page: Probe { keys, sieve } };
            self.follow(&[inserted], &[], &[]).map(|(_, mut paths)| paths.remove(0))
        }

        fn probe_batch(&self, pages: &[Probe]) -> Found {
            let mut found = Found::default();
            self.probe_into(pages, &mut found);
            found
        }
    }

    /// The definition, in maps. A cell: the row that it holds, and how many it turned away.
    #[derive(Clone, Default)]
    struct Plain {
        slots: u64,
        cells: BTreeMap<(usize, u32, u64), (Option<u32>, u32)>,
        sieves: BTreeMap<u32, Sieve>,
    }

    impl Plain {
        fn insert(&mut self, row: u32, slot: u64, page: &Page) -> Vec<u8> {
            let (mut levels, mut keys) = (Vec::new(), Vec::new());
            for (part, list) in page.lists().into_iter().enumerate() {
                let mut level = 128 + list.len() as u8;
                for (tried, key) in list.into_iter().enumerate() {
                    keys.extend(key.to_le_bytes());
                    let cell = self.cells.entry((part, key, slot)).or_default();
                    if cell.0.is_none() {
                        cell.0 = Some(row);
                        level = tried as u8;
                        break;
                    }
                    cell.1 += 1;
                }
                levels.push(level);
            }
            self.sieves.insert(row, page.sieve);
            [levels, keys].concat()
        }

        fn remove(&mut self, row: u32, slot: u64, page: &Page, path: &[u8]) {
            for (part, list) in page.lists().into_iter().enumerate() {
                let level = usize::from(path[part]);
                for key in &list[..level.min(list.len())] {
                    self.cells.get_mut(&(part, *key, slot)).unwrap().1 -= 1;
                }
                if level < 128 {
                    let holder = &mut self.cells.get_mut(&(part, list[level], slot)).unwrap().0;
                    assert_eq!(holder.take(), Some(row));
                }
            }
            self.cells.retain(|_, cell| *cell != (None, 0));
        }

        fn probe(&self, page: &Page) -> (Vec<u32>, u32) {
            let mut rows = BTreeSet::new();
            for (part, list) in page.lists().into_iter().enumerate() {
                for slot in 0..self.slots {
                    for key in &list {
                        let Some(cell) = self.cells.get(&(part, *key, slot)) else { break };
                        rows.extend(cell.0);
                        if cell.1 == 0 {
                            break;
                        }
                    }
                }
            }
            let differing = |one: Sieve| (0..2).map(|word| (one[word] ^ page.sieve[word]).count_ones()).sum::<u32>();
            let near = rows.iter().copied().filter(|row| differing(self.sieves[row]) <= 53);
            (near.collect(), rows.len() as u32)
        }

        fn counts(&self) -> (usize, usize, usize) {
            let rows: BTreeSet<_> = self.cells.values().filter_map(|cell| cell.0).collect();
            (rows.len(), self.cells.len(), self.cells.values().filter(|cell| cell.1 > 0).count())
        }
    }

    #[derive(Clone, Debug)]
    struct Page {
        keys: Vec<u32>,
        sieve: Sieve,
    }

    impl Page {
        /// Few different keys, so that cells crowd: the smallest, the largest, some of them twice; some parts have none.
        fn new(seed: u64, levels: usize) -> Self {
            let random = |number: usize| mix64(seed % 300 * 1_009 + number as u64);
            let mut keys = Vec::new();
            for part in 0..PARTS {
                let known = random(100 + part) as usize % (levels + 2);
                let key = |level| [1, 2, 3, 4, 5, u32::MAX, u32::MAX - 1][random(7 * part + level) as usize % 7];
                keys.extend((0..levels).map(|level| if level < known { key(level) } else { 0 }));
            }
            let sieves = [[0; 2], [(1 << 53) - 1, 0], [0, (1 << 54) - 1], [u64::MAX; 2]];
            Self { keys, sieve: sieves[random(99) as usize % 4] }
        }

        fn lists(&self) -> Vec<Vec<u32>> {
            let lists = self.keys.chunks(self.keys.len() / PARTS);
            lists.map(|list| list.iter().copied().take_while(|&key| key != 0).collect()).collect()
        }

        fn probe(&self) -> Probe<'_> {
            Probe { keys: &self.keys, sieve: self.sieve }
        }
    }

    #[derive(Clone)]
    struct Live {
        ordinal: u64,
        page: Page,
        path: Vec<u8>,
    }

    /// An index beside the definition, and what callers keep.
    struct Pair {
        levels: usize,
        index: CellIndex,
        plain: Plain,
        live: BTreeMap<u32, Live>,
        ordinal: u64,
    }

    impl Pair {
        fn new(slots: usize, levels: usize) -> Self {
            let index = CellIndex::new(slots, levels).unwrap();
            let plain = Plain { slots: slots as u64, ..Plain::default() };
            Self { levels, index, plain, live: BTreeMap::new(), ordinal: 0 }
        }

        /// The next row: from the smallest on, or from the largest back.
        fn next(&mut self, seed: u64) -> (u32, u64) {
            self.ordinal += 1 + seed % 3;
            let row = self.ordinal as u32;
            (if seed % 2 == 0 { row } else { NO_ROW - 1 - row }, self.ordinal)
        }

        fn defined(&mut self, row: u32, ordinal: u64, page: Page, path: &[u8]) {
            assert_eq!(path, self.plain.insert(row, ordinal % self.plain.slots, &page));
            self.live.insert(row, Live { ordinal, page, path: path.to_vec() });
        }

        fn insert(&mut self, seed: u64) {
            let ((row, ordinal), page) = (self.next(seed), Page::new(seed, self.levels));
            let path = self.index.insert(row, ordinal, &page.keys, page.sieve).unwrap();
            self.defined(row, ordinal, page, &path);
        }

        fn any(&self, seed: u64) -> Option<u32> {
            self.live.keys().nth(seed as usize % self.live.len().max(1)).copied()
        }

        fn gone(&mut self, row: u32) -> Live {
            let gone = self.live.remove(&row).unwrap();
            self.plain.remove(row, gone.ordinal % self.plain.slots, &gone.page, &gone.path);
            gone
        }

        fn remove(&mut self, seed: u64) {
            let Some(row) = self.any(seed) else { return };
            let gone = self.gone(row);
            assert!(self.index.remove(row, gone.ordinal, &gone.path));
        }

        /// Another row, level, key or length: nothing changes.
        fn refuse(&mut self, seed: u64) {
            let Some(row) = self.any(seed) else { return };
            let Live { ordinal, path, .. } = self.live[&row].clone();
            let before: Vec<_> = self.index.cells.elements().collect();
            let is_in_a_cell = path[..PARTS].iter().any(|&level| level < EMPTY_PART);
            for other in [row ^ 1, NO_ROW] {
                let held = self.live.contains_key(&other) || !is_in_a_cell;
                assert!(held || !self.index.remove(other, ordinal, &path));
            }
            assert!(!self.index.remove(row, ordinal, &path[..path.len() - 1]));
            assert!(!self.index.remove(row, ordinal, &[&path[..], &[0]].concat()));
            if let Some(part) = (0..PARTS).find(|&part| path[part] < EMPTY_PART) {
                let mut wrong = path.clone();
                wrong[part] += 129; // the same keys, all of which turned it away
                if self.counted_less_often(&wrong, ordinal % self.plain.slots) {
                    assert!(!self.index.remove(row, ordinal, &wrong));
                }
            }
            assert_eq!(before, self.index.cells.elements().collect::<Vec<_>>());
        }

        /// Whether some cell turned fewer rows away than a path says.
        fn counted_less_often(&self, path: &[u8], slot: u64) -> bool {
            let mut counts = BTreeMap::new();
            for (cell, holds) in Path::split(path).unwrap().0.cells(slot) {
                *counts.entry(cell).or_insert(0) += u32::from(!holds);
            }
            let turned = |cell: u64| self.index.cells.get(cell).1.map_or(0, Element::count);
            counts.into_iter().any(|(cell, count)| turned(cell) < count.min(MAX_COUNT))
        }

        /// Continue from the live rows, put back in some order.
        fn restore(&mut self, seed: u64, bulk: bool) {
            let mut rows: Vec<u32> = self.live.keys().copied().collect();
            rows.sort_by_key(|&row| mix64(u64::from(row) ^ seed));
            let slots = self.plain.slots as usize;
            let mut index = CellIndex::new(slots, self.levels).unwrap();
            let mut filling = CellFilling::new(slots, self.levels, 9, 3).unwrap();
            let mut shares = filling.shares();
            for (number, row) in rows.iter().enumerate() {
                let entry = &self.live[row];
                for wrong in [&entry.path[..entry.path.len() - 1], &[&entry.path[..], &[0]].concat()] {
                    assert!(!shares[number % 3].add(*row, entry.ordinal, entry.page.sieve, wrong));
                }
                assert!(shares[number % 3].add(*row, entry.ordinal, entry.page.sieve, &entry.path));
            }
            drop(shares);
            for row in &rows {
                let Live { ordinal, page, path } = &self.live[row];
                for cut in [&path[..path.len() - 1], &[&path[..], &[0]].concat()] {
                    assert!(index.restore(*row, *ordinal, page.sieve, cut).is_err());
                }
                index.restore(*row, *ordinal, page.sieve, path).unwrap();
            }
            let filled = filling.finish();
            for (one, other) in [(&index.cells, &filled.cells), (&index.turned, &filled.turned)] {
                assert!(one.elements().eq(other.elements()));
            }
            assert!(index.cells.elements().eq(self.index.cells.elements()));
            self.index = if bulk { filled } else { index };
        }

        /// A batch of insertions and removals, some of rows of the same batch, with probes between them.
        fn follow(&mut self, seed: u64) {
            let random = |number: u64| mix64(seed + number * 7_919);
            let count = random(0) % 12;
            let mut planned = Vec::new();
            let (mut own, mut removed) = (Vec::new(), BTreeSet::new());
            for number in 1..=count {
                let some = self.any(random(number)).filter(|row| !removed.contains(row));
                match (random(number) >> 32) % 3 {
                    0 if !own.is_empty() => {
                        let (row, ordinal): (u32, u64) = own.remove(random(number) as usize % own.len());
                        planned.push((row, ordinal, None, Vec::new()));
                    }
                    1 if some.is_some() => {
                        let row = some.unwrap();
                        removed.insert(row);
                        planned.push((row, self.live[&row].ordinal, None, self.live[&row].path.clone()));
                    }
                    _ => {
                        let (row, ordinal) = self.next(random(number));
                        own.push((row, ordinal));
                        planned.push((row, ordinal, Some(Page::new(random(number), self.levels)), Vec::new()));
                    }
                }
            }
            let changes = planned.iter().map(|&(row, ordinal, ref page, ref path)| match page {
                Some(page) => Insert { row, ordinal, page: page.probe() },
                None => Remove { row, ordinal, path },
            });
            let changes: Vec<Change> = changes.collect();
            let pages: Vec<Page> = (0..6).map(|number| Page::new(random(50 + number), self.levels)).collect();
            let mut due: Vec<usize> =
                (0..6).map(|number| random(90 + number) as usize % (count as usize + 2)).collect();
            due.sort_unstable();
            let asked: Vec<Probe> = pages.iter().map(Page::probe).collect();
            let (found, paths) = self.index.follow(&changes, &due, &asked).unwrap();
            let (mut expected, mut next) = (Found::default(), 0);
            for (number, step) in planned.iter().map(Some).chain([None]).enumerate() {
                while next < due.len() && (due[next] <= number || step.is_none()) {
                    let (rows, probed) = self.plain.probe(&pages[next]);
                    expected.rows.extend(rows);
                    expected.ends.push(expected.rows.len());
                    expected.probed.push(probed);
                    next += 1;
                }
                match step {
                    Some((row, ordinal, Some(page), _)) => self.defined(*row, *ordinal, page.clone(), &paths[number]),
                    Some((row, ..)) => {
                        assert_eq!(paths[number], Vec::<u8>::new());
                        self.gone(*row);
                    }
                    None => {}
                }
            }
            assert_eq!(found, expected);
        }

        fn check(&self) {
            let sizes = self.index.statistics();
            assert_eq!((sizes.entries, sizes.cells, sizes.overflowed), self.plain.counts());
            let pages: Vec<Page> = (0..20).map(|seed| Page::new(seed * 13, self.levels)).collect();
            let found = self.index.probe_batch(&pages.iter().map(Page::probe).collect::<Vec<_>>());
            let mut start = 0;
            for (number, page) in pages.iter().enumerate() {
                let rows = found.rows[start..found.ends[number]].to_vec();
                assert_eq!((rows, found.probed[number]), self.plain.probe(page));
                start = found.ends[number];
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Any history of insertions, removals, refused removals, restarts and batches is that of the definition.
        #[test]
        fn an_index_is_what_maps_say(
            slots in prop::sample::select(vec![1usize, 2, 8, 64]),
            levels in prop::sample::select(vec![1usize, 2, 4, 8, 32]),
            steps in prop::collection::vec((0..9u8, any::<u64>()), 0..120),
        ) {
            let mut pair = Pair::new(slots, levels);
            for (kind, seed) in steps {
                match kind {
                    0..4 => pair.insert(seed),
                    4 | 5 => pair.remove(seed),
                    6 => pair.refuse(seed),
                    7 => pair.follow(seed),
                    _ => pair.restore(seed, seed % 2 == 0),
                }
            }
            pair.check();
            while !pair.live.is_empty() {
                pair.remove(0);
            }
            pair.check();
            prop_assert!(pair.index.cells.len() + pair.index.turned.len() == 0);
        }

        /// Bytes that are no path of a row are refused, and nothing panics.
        #[test]
        fn any_bytes_may_be_paths(
            paths in prop::collection::vec(any::<u8>(), 0..200), row: u32, ordinal: u64, levels in 1..9usize,
        ) {
            let mut index = CellIndex::new(64, levels).unwrap();
            prop_assert!(!index.remove(row, ordinal, &paths) || paths == [EMPTY_PART; PARTS]);
            let restored = index.restore(row, ordinal, [0; 2], &paths);
            prop_assert_eq!(restored.is_ok(), count_paths(&paths) == Some(1) && row != NO_ROW);
            index.remove(row, ordinal, &paths);
            let page = Probe { keys: &[5; PARTS], sieve: [0; 2] };
            index.probe_batch(&[page]);
        }
    }

    /// How many paths bytes are.
    fn count_paths(mut bytes: &[u8]) -> Option<usize> {
        let mut count = 0;
        while !bytes.is_empty() {
            let keys: usize =
                bytes.get(..PARTS)?.iter().map(|&level| (level as usize % 128) + usize::from(level < 128)).sum();
            bytes = bytes.get(PARTS + 4 * keys..)?;
            count += 1;
        }
        Some(count)
    }

    fn state(message: &str) -> TableError {
        TableError::State(message.to_owned())
    }

    /// The messages name the bounds and what was given.
    #[test]
    fn what_cannot_be_is_refused() {
        for (slots, levels) in [(0, 8), (65, 8), (8, 0), (8, 33)] {
            let error = CellIndex::new(slots, levels).err().unwrap().to_string();
            assert_eq!(error, format!("a cell index has 1 to 64 slots and 1 to 32 levels, got {slots} and {levels}"));
        }
        let mut index = CellIndex::new(8, 1).unwrap();
        let full = state("a row is a number from 0 to 4294967294, got 4294967295: the index is full");
        assert_eq!(index.insert(NO_ROW, 0, &[1; 8], [0; 2]), Err(full.clone()));
        let page = Probe { keys: &[1; 8], sieve: [0; 2] };
        let changes = [0, NO_ROW].map(|row| Change::Insert { row, ordinal: 0, page });
        assert_eq!(index.follow(&changes, &[], &[]), Err(full));
        assert_eq!(
            index.restore(1, 0, [0; 2], &[128; 7]),
            Err(state("the path of row 1 is cut off or too long: 7 bytes"))
        );
        assert!(index.restore(NO_ROW, 0, [0; 2], &[128; 8]).is_err() && index.follow(&[], &[0], &[]).is_err());
        assert_eq!(index.statistics().cells, 0);
    }

    /// An error in a batch leaves the changes before it, and none from it on.
    #[test]
    fn a_refused_removal_ends_a_batch() {
        let mut index = CellIndex::new(2, 1).unwrap();
        let page = Probe { keys: &[1; 8], sieve: [0; 2] };
        let insert = |row| Change::Insert { row, ordinal: row.into(), page };
        for path in [&[][..], &[128; 8], &[0; 9]] {
            let refused = Change::Remove { row: 7, ordinal: 1, path };
            let result = index.follow(&[insert(1), refused, insert(2)], &[1], &[page]);
            if path == [128; 8] {
                assert_eq!(result.unwrap().1[1], Vec::<u8>::new()); // a row in no cell is any row
                continue;
            }
            assert_eq!(result, Err(state("row 7 is not in the cells of its path; the index and its entries differ")));
        }
        assert_eq!(index.probe_batch(&[page]).rows, [1, 2]);
    }

    /// Keys of another number are none: such a page is in no cell and finds nothing.
    #[test]
    fn keys_of_another_length_are_none() {
        let mut index = CellIndex::new(8, 2).unwrap();
        for keys in [&[][..], &[1; 8], &[1; 17]] {
            assert_eq!(index.insert(1, 0, keys, [0; 2]).unwrap(), [128; 8]);
            let found = index.probe_batch(&[Probe { keys, sieve: [0; 2] }]);
            assert_eq!((found.ends, found.rows, found.probed), (vec![0], vec![], vec![0]));
        }
    }

    /// 53 of 128 bits may differ; rows are counted before the sieve.
    #[test]
    fn the_sieve_lets_53_differing_bits_through() {
        for (differing, expected) in [(53, vec![7]), (54, vec![])] {
            let mut index = CellIndex::new(2, 1).unwrap();
            index.insert(7, 0, &[5; 8], [u64::MAX >> (64 - differing), 0]).unwrap();
            let found = index.probe_batch(&[Probe { keys: &[5; 8], sieve: [0; 2] }]);
            assert_eq!((found.rows, found.probed), (expected, vec![1]));
        }
    }

    /// 10^5 pages with the same keys: a row a slot and level, a bounded probe, and all of them can leave again.
    #[test]
    fn a_hundred_thousand_pages_with_the_same_keys() {
        let mut index = CellIndex::new(8, 2).unwrap();
        let keys: Vec<u32> = (0..16).map(|place| 1 + place % 2).collect();
        let paths: Vec<_> = (0..100_000u32).map(|row| index.insert(row, row.into(), &keys, [0; 2]).unwrap()).collect();
        let sizes = index.statistics();
        assert_eq!((sizes.entries, sizes.cells, sizes.overflowed), (16, 128, 128));
        let found = index.probe_batch(&[Probe { keys: &keys, sieve: [0; 2] }]);
        assert_eq!((found.rows, found.probed), ((0..16).collect(), vec![16]));
        for (row, path) in (0..).zip(&paths) {
            assert!(index.remove(row, row.into(), path));
        }
        assert_eq!(index.cells.len() + index.turned.len() + index.overflowed, 0);
    }

    /// A cell that turned 2^22 - 1 rows away counts as overflowed for good, also after a restart.
    #[test]
    fn a_counter_stays_at_its_end() {
        let path = |level: u8| [[level, 128, 128, 128].as_slice(), &[128; 4], &5u32.to_le_bytes()].concat();
        for (more, sticks) in [(0, false), (1, true), (2, true)] {
            let count = MAX_TURNED as usize - 1 + more;
            let mut filling = CellFilling::new(1, 1, count, 1).unwrap();
            let mut share = filling.shares().remove(0);
            assert!((0..count).all(|_| share.add(3, 0, [0; 2], &path(129))));
            let mut index = filling.finish();
            index.restore(9, 0, [0; 2], &path(0)).unwrap();
            for _ in 0..count {
                assert!(index.remove(3, 0, &path(129)));
            }
            assert_eq!((index.overflowed, index.remove(3, 0, &path(129))), (usize::from(sticks), sticks));
            assert!(index.remove(9, 0, &path(0)) && (index.cells.len() == 0) != sticks);
        }
    }

    /// Sieves of rows that left are given back; unknown rows have none.
    #[test]
    fn sieves_are_set_and_released() {
        let mut index = CellIndex::new(8, 8).unwrap();
        for (row, sieve) in [(5, [1, 2]), (NO_ROW, [3, 4])] {
            index.sieves.set(row, sieve);
        }
        assert_eq!([5, 6, 1 << 30, NO_ROW].map(|row| index.sieves.value(row)), [[1, 2], [0; 2], [0; 2], [3, 4]]);
        let before = index.statistics().sieve_bytes;
        index.release_sieves(0..1 << 20);
        assert!(index.statistics().sieve_bytes < before && index.sieves.value(5) == [0; 2]);
    }
}
