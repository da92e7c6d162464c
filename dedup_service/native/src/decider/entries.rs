//! Where the settled entries are: in a store on disk, or in memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::store::{self, Row, Store, StoreError};

/// Settled entries by row number. Numbers ascend with the sequences of the pages and are never used again.
pub trait Entries: Send + Sync {
    /// Return the number of live entries.
    fn count(&self) -> usize;

    /// Return the row that comes next.
    fn next_row(&self) -> u32;

    /// Append entries in order of their sequences; return the number of the first one.
    ///
    /// # Errors
    /// As [`Store::append`].
    fn append(&mut self, entries: &[store::Entry]) -> store::Result<u32>;

    /// Remove live entries.
    ///
    /// # Errors
    /// As [`Store::remove`].
    fn remove(&mut self, rows: &[u32]) -> store::Result<()>;

    /// Keep those of some rows that are live.
    fn retain_live(&self, rows: &mut Vec<u32>);

    /// Return some rows; None for one that is not live, or that a base has erased.
    ///
    /// # Errors
    /// `Damaged` if one is altered.
    fn rows(&self, rows: &[u32]) -> store::Result<Vec<Option<Row>>>;

    /// Return the path of a live entry through the cells; nothing of one that a base has erased.
    ///
    /// # Errors
    /// As `rows`.
    fn path(&self, row: u32) -> store::Result<Vec<u8>>;

    /// Append the evidence of some entries to `data`, and where that of each ends to `ends`; nothing of one that is not
    /// live, or that a base has erased.
    ///
    /// # Errors
    /// As `rows`.
    fn read_evidence(&self, rows: &[u32], data: &mut Vec<u8>, ends: &mut Vec<usize>) -> store::Result<()>;

    /// Return the first live entry from a row on.
    fn next_live(&self, from: u32) -> Option<u32>;

    /// Return the row of the live entry at a sequence.
    ///
    /// # Errors
    /// As [`Store::find`].
    fn find(&self, sequence: i64) -> store::Result<Option<u32>>;

    /// Return the bytes of memory that the entries take, without the page cache.
    fn memory_bytes(&self) -> usize;

    /// Say that the rows in a range are read soon.
    fn fetch_rows(&self, rows: Range<u32>);
}

/// Entries in memory. Removed ones leave nothing.
#[derive(Debug, Default)]
pub struct MemoryEntries {
    entries: BTreeMap<u32, Stored>,
    rows: BTreeMap<i64, u32>,
    next_row: u32,
    /// Bytes of paths and evidence.
    content_bytes: usize,
}

#[derive(Debug)]
struct Stored {
    row: Row,
    path: Box<[u8]>,
    evidence: Box<[u8]>,
}

impl Entries for MemoryEntries {
    fn count(&self) -> usize {
        self.entries.len()
    }

    fn next_row(&self) -> u32 {
        self.next_row
    }

    fn append(&mut self, entries: &[store::Entry]) -> store::Result<u32> {
        let (first, count) = (self.next_row, entries.len() as u64);
        let used = || StoreError::NumbersUsed("all numbers of entries in memory are used".to_owned());
        self.next_row = u32::try_from(u64::from(first) + count).map_err(|_| used())?;
        for (number, entry) in (first..).zip(entries) {
            self.rows.insert(entry.row.sequence, number);
            self.content_bytes += entry.path.len() + entry.evidence.len();
            let stored = Stored { row: entry.row, path: entry.path.into(), evidence: entry.evidence.into() };
            self.entries.insert(number, stored);
        }
        Ok(first)
    }

    fn remove(&mut self, rows: &[u32]) -> store::Result<()> {
        if let Some(row) = rows.iter().find(|row| !self.entries.contains_key(row)) {
            return Err(StoreError::Gone(*row));
        }
        for row in rows {
            if let Some(stored) = self.entries.remove(row) {
                self.rows.remove(&stored.row.sequence);
                self.content_bytes -= stored.path.len() + stored.evidence.len();
            }
        }
        Ok(())
    }

    fn retain_live(&self, rows: &mut Vec<u32>) {
        rows.retain(|row| self.entries.contains_key(row));
    }

    fn rows(&self, rows: &[u32]) -> store::Result<Vec<Option<Row>>> {
        Ok(rows.iter().map(|row| self.entries.get(row).map(|stored| stored.row)).collect())
    }

    fn path(&self, row: u32) -> store::Result<Vec<u8>> {
        Ok(self.entries.get(&row).map_or_else(Vec::new, |stored| stored.path.to_vec()))
    }

    fn read_evidence(&self, rows: &[u32], data: &mut Vec<u8>, ends: &mut Vec<usize>) -> store::Result<()> {
        for row in rows {
            data.extend_from_slice(self.entries.get(row).map_or(&[], |stored| &stored.evidence));
            ends.push(data.len());
        }
        Ok(())
    }

    fn next_live(&self, from: u32) -> Option<u32> {
        self.entries.range(from..).next().map(|(row, _)| *row)
    }

    fn find(&self, sequence: i64) -> store::Result<Option<u32>> {
        Ok(self.rows.get(&sequence).copied())
    }

    fn memory_bytes(&self) -> usize {
        self.content_bytes + self.entries.len() * (size_of::<Stored>() + 2 * size_of::<(i64, u32)>())
    }

    fn fetch_rows(&self, _: Range<u32>) {}
}

/// A store that others read at the same time, until it is closed.
pub type SharedStore = Arc<RwLock<Option<Store>>>;

/// Time to read a piece of evidence from which on the disk must have given it: the page cache takes 1 µs.
const SLOW_READ: Duration = Duration::from_micros(4);

/// Entries in a store.
#[derive(Debug)]
pub struct StoredEntries {
    store: SharedStore,
    /// Whether reads of evidence had to wait lately: then the disk is told of all of a batch before.
    is_slow: AtomicBool,
}

impl StoredEntries {
    /// Return the entries of an open store.
    pub fn new(store: SharedStore) -> Self {
        Self { store, is_slow: AtomicBool::new(false) }
    }

    fn read<T>(&self, task: impl FnOnce(&Store) -> store::Result<T>) -> store::Result<T> {
        self.store.read().unwrap_or_else(PoisonError::into_inner).as_ref().map_or_else(|| Err(closed()), task)
    }

    fn change<T>(&self, task: impl FnOnce(&mut Store) -> store::Result<T>) -> store::Result<T> {
        self.store.write().unwrap_or_else(PoisonError::into_inner).as_mut().map_or_else(|| Err(closed()), task)
    }
}

impl Entries for StoredEntries {
    fn count(&self) -> usize {
        self.read(|store| Ok(store.len() as usize)).unwrap_or(0)
    }

    fn next_row(&self) -> u32 {
        self.read(|store| Ok(store.next_row())).unwrap_or(0)
    }

    fn append(&mut self, entries: &[store::Entry]) -> store::Result<u32> {
        self.change(|store| store.append(entries))
    }

    fn remove(&mut self, rows: &[u32]) -> store::Result<()> {
        self.change(|store| store.remove(rows))
    }

    fn retain_live(&self, rows: &mut Vec<u32>) {
        let live = self.read(|store| {
            rows.retain(|row| store.is_live(*row));
            Ok(())
        });
        if live.is_err() {
            rows.clear();
        }
    }

    fn rows(&self, rows: &[u32]) -> store::Result<Vec<Option<Row>>> {
        self.read(|store| {
            let mut buffer = Vec::new();
            rows.iter().map(|row| there(store.row(*row, &mut buffer).map(|(row, _)| row))).collect()
        })
    }

    fn path(&self, row: u32) -> store::Result<Vec<u8>> {
        self.read(
            |store| Ok(there(store.row(row, &mut Vec::new()).map(|(_, path)| path.to_vec()))?.unwrap_or_default()),
        )
    }

    fn read_evidence(&self, rows: &[u32], data: &mut Vec<u8>, ends: &mut Vec<usize>) -> store::Result<()> {
        self.read(|store| {
            let began = Instant::now();
            if self.is_slow.load(Ordering::Relaxed) {
                store.will_need(rows);
            }
            store.prefetch(rows);
            let mut buffer = Vec::new();
            for row in rows {
                if let Some(evidence) = there(store.evidence(*row, &mut buffer))? {
                    data.extend_from_slice(evidence);
                }
                ends.push(data.len());
            }
            self.is_slow.store(began.elapsed() > SLOW_READ * rows.len() as u32, Ordering::Relaxed);
            Ok(())
        })
    }

    fn next_live(&self, from: u32) -> Option<u32> {
        self.read(|store| Ok(store.live_rows(from).next())).ok().flatten()
    }

    fn find(&self, sequence: i64) -> store::Result<Option<u32>> {
        self.read(|store| store.find(sequence))
    }

    fn memory_bytes(&self) -> usize {
        self.read(|store| Ok(store.info().memory_bytes)).unwrap_or(0)
    }

    fn fetch_rows(&self, rows: Range<u32>) {
        let _ = self.read(|store| {
            store.will_need_all(rows, false);
            Ok(())
        });
    }
}

/// Return None for what is not live, or was erased by a base.
fn there<T>(found: store::Result<T>) -> store::Result<Option<T>> {
    match found {
        Err(StoreError::Gone(_)) => Ok(None),
        found => found.map(Some),
    }
}

fn closed() -> StoreError {
    StoreError::State("the store is closed: open it again".to_owned())
}
