//! The tables of the live rows of a store, built from its rows alone when it is opened.
//!
//! Rows are read in order, by several threads at once, each of which has a share of every table. Tables have their memory
//! from the beginning and are sorted where they are, so building them takes little more than they do. The disk is asked
//! for the rows of the next step meanwhile.

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

use crate::error;
use crate::store::{Result, Row, Store};
use crate::tables::cells::{CellFilling, CellIndex, CellShare};
use crate::tables::hamming::HammingIndex;
use crate::tables::hash_rows::{HashFilling, HashRows, HashShare};
use crate::tables::row_column::{CHUNK, RowColumn};

/// Rows for which another thread is worth its memory.
const ROWS_A_THREAD: u64 = 1 << 17;
/// Cells that are expected of a row at most: those that turned it away are one each, however many rows they did so to.
const MOST_CELLS: f64 = 9.0;

/// A field of a row by which a table finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Fingerprint of its words.
    Words,
    /// Fingerprint of its body.
    Body,
    /// Hash of its body.
    BodyHash,
    /// Hash of its whole text.
    TextHash,
    /// Hash of its URL.
    UrlHash,
}

/// What a table is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The field.
    pub field: Field,
    /// Flags, all of which the rows of the table have.
    pub flags: u8,
}

impl Column {
    /// Return the value of a row; None if the table does not have it.
    #[inline]
    fn of(self, row: &Row) -> Option<u64> {
        let value = match self.field {
            Field::Words => row.words,
            Field::Body => row.body,
            Field::BodyHash => row.body_hash,
            Field::TextHash => row.text_hash,
            Field::UrlHash => row.url_hash,
        };
        (row.flags & self.flags == self.flags).then_some(value)
    }
}

/// Tables of the same rows.
pub struct Tables {
    /// Rows by their paths.
    pub cells: CellIndex,
    /// Rows by hashes, in the order of their columns.
    pub hashes: Vec<HashRows>,
    /// Rows by fingerprints, in the order of their columns.
    pub near: Vec<HammingIndex>,
}

/// Tables that are being built; the store does not change meanwhile.
pub struct TablesBuild {
    cells: CellFilling,
    hashes: Vec<(Column, HashFilling)>,
    near: Vec<(Column, Vec<RowColumn<u64>>)>,
    threads: usize,
    next: u32,
    done: u64,
    /// Rows that the base of the store has lost.
    lost: Vec<u32>,
}

impl TablesBuild {
    /// Begin. slots, levels: of the cells. threads: how many work at most.
    ///
    /// # Errors
    /// As [`CellIndex::new`].
    pub fn new(
        store: &Store,
        (slots, levels): (usize, usize),
        hashes: &[Column],
        near: &[Column],
        threads: usize,
    ) -> error::Result<Self> {
        let rows = store.len();
        let threads = threads.min((rows / ROWS_A_THREAD) as usize).max(1);
        let cells = rows as f64 * store.keys_a_row().clamp(1.0, MOST_CELLS);
        let filling = |column: &Column| (*column, HashFilling::new(rows as usize, threads));
        let columns = |column: &Column| (*column, (0..threads).map(|_| RowColumn::default()).collect());
        Ok(Self {
            cells: CellFilling::new(slots, levels, cells as usize, threads)?,
            hashes: hashes.iter().map(filling).collect(),
            near: near.iter().map(columns).collect(),
            threads,
            next: 0,
            done: 0,
            lost: Vec::new(),
        })
    }

    /// Add the live ones of the next `rows` rows of the store; return how many live rows were added so far.
    ///
    /// # Errors
    /// `Damaged` names a row that is altered.
    pub fn step(&mut self, store: &Store, rows: u32) -> Result<u64> {
        let rows = self.next..self.next.saturating_add(rows).min(store.next_row());
        let ahead = rows.end..rows.end.saturating_add(rows.end - rows.start);
        if rows.start == 0 {
            store.will_need_all(rows.clone(), false);
        }
        let share = (rows.end - rows.start).div_ceil(self.threads as u32).next_multiple_of(CHUNK as u32);
        let mut shares: Vec<Share> = self
            .cells
            .shares()
            .into_iter()
            .map(|cells| Share { cells, hashes: Vec::new(), near: Vec::new() })
            .collect();
        for (column, filling) in &mut self.hashes {
            let of_table = shares.iter_mut().zip(filling.shares());
            of_table.for_each(|(share, hashes)| share.hashes.push((*column, hashes)));
        }
        for (column, fingerprints) in &mut self.near {
            let of_table = shares.iter_mut().zip(fingerprints);
            of_table.for_each(|(share, near)| share.near.push((*column, near)));
        }
        let added = thread::scope(|scope| {
            scope.spawn(|| store.will_need_all(ahead, false));
            let mut first = rows.start;
            let working: Vec<_> = shares
                .into_iter()
                .map(|mut own| {
                    let part = first..first.saturating_add(share).min(rows.end);
                    first = part.end;
                    scope.spawn(move || own.add(store, part))
                })
                .collect();
            let added = working.into_iter().map(|work| work.join().unwrap_or_else(|panic| resume_unwind(panic)));
            added.collect::<Result<Vec<_>>>()
        })?;
        self.next = rows.end;
        for (count, lost) in added {
            self.done += count;
            self.lost.extend(lost);
        }
        Ok(self.done)
    }

    /// Take the live rows that were passed over, since the base of the store has lost them: the store has to lose them, too.
    pub fn take_lost(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.lost)
    }

    /// Return the tables of the rows that were added.
    pub fn finish(self) -> Tables {
        let joined = |columns: Vec<RowColumn<u64>>| {
            let mut all = RowColumn::default();
            for column in columns {
                all.absorb(column);
            }
            all
        };
        Tables {
            cells: self.cells.finish(),
            hashes: self.hashes.into_iter().map(|(_, filling)| filling.finish()).collect(),
            near: self.near.into_iter().map(|(_, near)| HammingIndex::filled(joined(near), self.threads)).collect(),
        }
    }
}

/// What one thread adds to all tables.
struct Share<'a> {
    cells: CellShare<'a>,
    hashes: Vec<(Column, HashShare<'a>)>,
    near: Vec<(Column, &'a mut RowColumn<u64>)>,
}

impl Share<'_> {
    /// Add the live ones of some rows; return how many there are, and those that the base has lost.
    fn add(&mut self, store: &Store, rows: Range<u32>) -> Result<(u64, Vec<u32>)> {
        let mut lost = Vec::new();
        let count = store.read_rows(rows, &mut lost, |row, fields, path| {
            for (column, hashes) in &mut self.hashes {
                if let Some(hash) = column.of(fields) {
                    hashes.add(hash, row);
                }
            }
            for (column, fingerprints) in &mut self.near {
                if let Some(fingerprint) = column.of(fields) {
                    fingerprints.set(row, fingerprint);
                }
            }
            self.cells.add(row, fields.ordinal, fields.sieve, path)
        })?;
        Ok((count, lost))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;
    use crate::memory::mix64;
    use crate::store::{Entry, Label, OpenMode, StoreError};
    use crate::tables::cells::PARTS;
    use crate::tables::hamming::Found;

    const SLOTS: usize = 8;
    const LEVELS: usize = 2;
    const URLS: Column = Column { field: Field::UrlHash, flags: 0 };
    const BODIES: Column = Column { field: Field::BodyHash, flags: 4 };
    const WORDS: Column = Column { field: Field::Words, flags: 9 };

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("building-{}-{name}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Self(path)
        }

        fn open(&self, mode: OpenMode) -> Store {
            Store::open(&self.0, &label(), mode).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn label() -> Label {
        Label { log: "log".into(), space: "space".into() }
    }

    fn row(sequence: u64) -> Row {
        let value = mix64(sequence / 3);
        let flags = [0, 4, 13, 9][sequence as usize % 4];
        let (words, body_hash) = (value & !0xF | sequence & 3, value);
        let sieve = [mix64(sequence), sequence];
        let row = Row { words, body_hash, url_hash: sequence % 500, ordinal: sequence, sieve, flags, ..Row::default() };
        Row { sequence: sequence as i64, ..row }
    }

    fn append(store: &mut Store, cells: &mut CellIndex, count: u64) -> BTreeMap<u32, Vec<u8>> {
        let first = u64::from(store.next_row());
        let add = |sequence: u64| {
            let keys: Vec<u32> =
                (0..(PARTS * LEVELS) as u64).map(|key| 1 + mix64(key * 99 + sequence) as u32 % 900).collect();
            let row = row(sequence);
            (row, cells.insert(sequence as u32, sequence, &keys, row.sieve).unwrap())
        };
        let pages: Vec<_> = (first..first + count).map(add).collect();
        let entries: Vec<_> = pages.iter().map(|(row, path)| Entry { row: *row, path, evidence: &[7; 30] }).collect();
        store.append(&entries).unwrap();
        (first as u32..).zip(pages).map(|(row, (_, path))| (row, path)).collect()
    }

    fn built(store: &Store, threads: usize) -> Result<Tables> {
        let mut build = TablesBuild::new(store, (SLOTS, LEVELS), &[URLS, BODIES], &[WORDS], 1).unwrap();
        (build.threads, build.cells) = (threads, CellFilling::new(SLOTS, LEVELS, 100, threads).unwrap());
        build.hashes.iter_mut().for_each(|(_, filling)| *filling = HashFilling::new(50, threads));
        build.near.iter_mut().for_each(|(_, near)| near.resize_with(threads, RowColumn::default));
        let mut done = 0;
        while done < store.len() {
            done = build.step(store, 5000)?;
        }
        Ok(build.finish())
    }

    /// Tables of a store and its base, with dead rows, are those of insertions.
    #[test]
    fn tables_have_the_live_rows() {
        let (first, second) = (Folder::new("first"), Folder::new("second"));
        let mut inserted = CellIndex::new(SLOTS, LEVELS).unwrap();
        let mut base = Store::create(&first.0, &label()).unwrap();
        let mut paths = append(&mut base, &mut inserted, 9000);
        base.begin_commit(1, "", vec![]).unwrap().finish(&[]).unwrap();
        let mut store = Store::create_on(&second.0, &label(), first.open(OpenMode::Read)).unwrap();
        paths.extend(append(&mut store, &mut inserted, 12_000));
        let dead: Vec<u32> = (0..21_000).filter(|row| row % 5 == 0 || (5000..6000).contains(row)).collect();
        store.remove(&dead).unwrap();
        for row in &dead {
            assert!(inserted.remove(*row, u64::from(*row), &paths.remove(row).unwrap()));
        }
        for threads in [1, 3] {
            let Tables { mut cells, hashes, near } = built(&store, threads).unwrap();
            let live: Vec<Row> = paths.keys().map(|number| row(u64::from(*number))).collect();
            let sizes = |index: &CellIndex| (index.len(), index.statistics().cells, index.statistics().overflowed);
            assert_eq!(sizes(&cells), sizes(&inserted));
            for (table, column) in hashes.iter().zip([URLS, BODIES]) {
                let mut expected = BTreeMap::<u64, Vec<u32>>::new();
                for row in &live {
                    column
                        .of(row)
                        .into_iter()
                        .for_each(|hash| expected.entry(hash).or_default().push(row.ordinal as u32));
                }
                assert!(expected.iter().all(|(hash, rows)| table.rows(*hash) == *rows));
                assert_eq!(table.len(), expected.values().map(Vec::len).sum::<usize>());
            }
            let expected: Vec<&Row> = live.iter().filter(|row| WORDS.of(row).is_some()).collect();
            let (asked, mut found) = (expected.iter().map(|row| row.words).collect::<Vec<_>>(), Found::default());
            near[0].probe_batch(&asked, 0, usize::MAX, &mut found).unwrap();
            assert_eq!(near[0].len(), expected.len());
            let has = |query, row: &Row| found.of(query).iter().any(|near| near.row == row.ordinal as u32);
            assert!(expected.iter().enumerate().all(|(query, row)| has(query, row)));
            assert!(paths.iter().all(|(row, path)| cells.remove(*row, u64::from(*row), path)));
            assert_eq!(sizes(&cells), (0, 0, 0));
        }
        assert_eq!(built(&Store::create(&Folder::new("none").0, &label()).unwrap(), 2).unwrap().cells.len(), 0);
    }

    /// A row that is altered, has no path, or is zeros is named, and one that the base has lost meanwhile is passed over.
    #[test]
    fn damage_is_named() {
        let (first, second) = (Folder::new("damaged"), Folder::new("on damaged"));
        let mut cells = CellIndex::new(SLOTS, LEVELS).unwrap();
        let mut base = Store::create(&first.0, &label()).unwrap();
        let paths = append(&mut base, &mut cells, 9000);
        base.begin_commit(1, "", vec![]).unwrap().finish(&[]).unwrap();
        let mut store = Store::create_on(&second.0, &label(), first.open(OpenMode::Read)).unwrap();
        let says = |store: &Store, what: &str| match built(store, 2).map(drop) {
            Err(StoreError::Damaged(text)) => assert!(text.contains(what), "{text}"),
            other => panic!("{other:?}"),
        };
        store.append(&[Entry { row: row(9000), path: &[1; 8], evidence: &[] }]).unwrap();
        says(&store, "has a row 9000 without a path");
        store.remove(&[9000]).unwrap();
        base.erase(&[7, 8000]).unwrap();
        let mut build = TablesBuild::new(&store, (SLOTS, LEVELS), &[URLS], &[WORDS], 1).unwrap();
        assert_eq!(build.step(&store, 9001), Ok(8998));
        assert_eq!((build.take_lost(), build.take_lost()), (vec![7, 8000], vec![]));
        store.remove(&[7, 8000]).unwrap();
        let tables = build.finish();
        assert!([7, 8000].iter().all(|row| cells.remove(*row, u64::from(*row), &paths[row])));
        assert_eq!((tables.cells.len(), tables.hashes[0].len()), (cells.len(), 8998));
        let mut bytes = std::fs::read(first.0.join("rows")).unwrap();
        bytes[9] ^= 1;
        std::fs::write(first.0.join("rows"), bytes).unwrap();
        says(&first.open(OpenMode::Read), "rows has an altered row 0, at byte 0");
    }
}
