//! The tables in which settled entries are found: by hash, by fingerprint and by keys.

use super::entries::Entries;
use super::error::Result;
use crate::building::{self, Column, Field};
use crate::rule::Rule;
use crate::store::Row;
use crate::tables::cells::CellIndex;
use crate::tables::hamming::HammingIndex;
use crate::tables::hash_rows::HashRows;
use crate::window::flags::{BODY, BODY_DECIDES, INDEXED, TEXT_HASH, WORDS};

/// Rows that a new index is filled with at a time.
const FILLED: usize = 1 << 14;

/// The channels of fingerprints, and the flag of a row that has one.
pub(super) const CHANNELS: [u8; 2] = [WORDS, BODY];

/// A Hamming index of one channel, probed within a radius in bits.
pub(super) struct Near {
    pub(super) radius: usize,
    pub(super) index: HammingIndex,
}

/// Rows by everything that finds them. The cells change behind the other tables, with the pages (`Settled::settle`).
pub struct Tables {
    pub(super) urls: HashRows,
    pub(super) texts: HashRows,
    pub(super) bodies: HashRows,
    pub(super) cells: CellIndex,
    /// By channel; None if the rule does not probe it.
    pub(super) near: [Option<Near>; 2],
}

impl Tables {
    /// Return empty tables. slots, levels: of the cells.
    ///
    /// # Errors
    /// `Configuration` for numbers that cells cannot have.
    pub fn new(slots: usize, levels: usize) -> Result<Self> {
        Ok(Self {
            urls: HashRows::default(),
            texts: HashRows::default(),
            bodies: HashRows::default(),
            cells: CellIndex::new(slots, levels)?,
            near: [None, None],
        })
    }

    /// Return tables that were built from a store. radii: of the Hamming indexes, by channel; None for one that was not
    /// built.
    pub fn of(built: building::Tables, radii: [Option<usize>; 2]) -> Self {
        let mut hashes = built.hashes.into_iter();
        let mut next = || hashes.next().unwrap_or_default();
        let (urls, texts, bodies) = (next(), next(), next());
        let mut near = built.near.into_iter();
        let near = radii.map(|radius| Some(Near { radius: radius?, index: near.next()? }));
        Self { urls, texts, bodies, cells: built.cells, near }
    }

    /// Return what `of` needs of the hash tables: their columns.
    pub fn hashed() -> [Column; 3] {
        [(Field::UrlHash, 0), (Field::TextHash, TEXT_HASH), (Field::BodyHash, BODY_DECIDES)]
            .map(|(field, flags)| Column { field, flags })
    }

    /// Return what `of` needs of the Hamming indexes of some channels.
    pub fn indexed(radii: [Option<usize>; 2]) -> Vec<Column> {
        let columns = [(Field::Words, CHANNELS[0]), (Field::Body, CHANNELS[1])];
        let columns = columns.map(|(field, flag)| Column { field, flags: INDEXED | flag });
        columns.into_iter().zip(radii).filter_map(|(column, radius)| radius.map(|_| column)).collect()
    }

    /// Have the Hamming indexes that a rule probes, and no others; new ones get the live entries.
    pub(super) fn probe_for(&mut self, rule: &Rule, entries: &dyn Entries) -> Result<()> {
        let radii = radii_of(rule);
        for (channel, (near, radius)) in self.near.iter_mut().zip(radii).enumerate() {
            if near.as_ref().map(|near| near.radius) == radius {
                continue;
            }
            *near = radius.map(|radius| Near { radius, index: HammingIndex::default() });
            let Some(near) = near else { continue };
            let mut next = 0;
            loop {
                let numbers: Vec<u32> = live_from(entries, next).take(FILLED).collect();
                let Some(last) = numbers.last() else { break };
                next = last.saturating_add(1);
                let rows = entries.rows(&numbers)?;
                let known: Vec<(u32, Row)> =
                    numbers.iter().zip(rows).filter_map(|(number, row)| Some((*number, row?))).collect();
                let (numbers, values) = fingerprints(&known, channel);
                near.index.insert_batch(&numbers, &values)?;
            }
        }
        Ok(())
    }

    /// Add live rows to all tables but the cells.
    pub(super) fn add(&mut self, rows: &[(u32, Row)]) -> Result<()> {
        self.urls.add_many(&urls(rows));
        self.texts.add_many(&texts(rows));
        self.bodies.add_many(&bodies(rows));
        self.each_near(rows, super::super::tables::hamming::HammingIndex::insert_batch)
    }

    /// Remove rows from all tables but the cells.
    pub(super) fn remove(&mut self, rows: &[(u32, Row)]) -> Result<()> {
        self.urls.remove_many(&urls(rows))?;
        self.texts.remove_many(&texts(rows))?;
        self.bodies.remove_many(&bodies(rows))?;
        self.each_near(rows, super::super::tables::hamming::HammingIndex::remove_batch)
    }

    fn each_near(
        &mut self,
        rows: &[(u32, Row)],
        mut change: impl FnMut(&mut HammingIndex, &[u32], &[u64]) -> crate::error::Result<()>,
    ) -> Result<()> {
        for (channel, near) in self.near.iter_mut().enumerate() {
            if let Some(near) = near {
                let (numbers, values) = fingerprints(rows, channel);
                change(&mut near.index, &numbers, &values)?;
            }
        }
        Ok(())
    }
}

/// Return how far the Hamming index of each channel is probed, in bits; None if it is not.
pub fn radii_of(rule: &Rule) -> [Option<usize>; 2] {
    [rule.words_radius(), rule.body_radius()].map(|radius| radius.map(|radius| radius as usize))
}

/// Yield the live entries from a row on.
pub(super) fn live_from(entries: &dyn Entries, from: u32) -> impl Iterator<Item = u32> + '_ {
    let mut next = Some(from);
    std::iter::from_fn(move || {
        let row = entries.next_live(next?)?;
        next = row.checked_add(1);
        Some(row)
    })
}

fn urls(rows: &[(u32, Row)]) -> Vec<(u64, u32)> {
    rows.iter().map(|(number, row)| (row.url_hash, *number)).collect()
}

fn texts(rows: &[(u32, Row)]) -> Vec<(u64, u32)> {
    let has = rows.iter().filter(|(_, row)| row.flags & TEXT_HASH != 0);
    has.map(|(number, row)| (row.text_hash, *number)).collect()
}

fn bodies(rows: &[(u32, Row)]) -> Vec<(u64, u32)> {
    let has = rows.iter().filter(|(_, row)| row.flags & BODY_DECIDES != 0);
    has.map(|(number, row)| (row.body_hash, *number)).collect()
}

/// Return the rows that the index of a channel has, and their fingerprints.
fn fingerprints(rows: &[(u32, Row)], channel: usize) -> (Vec<u32>, Vec<u64>) {
    let has = rows.iter().filter(|(_, row)| is_indexed(row, channel));
    has.map(|(number, row)| (*number, fingerprint(row, channel))).unzip()
}

/// Return whether the index of a channel has a row.
pub(super) fn is_indexed(row: &Row, channel: usize) -> bool {
    let required = INDEXED | CHANNELS[channel];
    row.flags & required == required
}

/// Return the fingerprint of a channel.
pub(super) fn fingerprint(row: &Row, channel: usize) -> u64 {
    [row.words, row.body][channel]
}
