//! The kept pages on disk: rows and evidence by row number, and commits of them.
//!
//! A row number is the place of a row in its files. Numbers ascend in the order of the log and are never used again.
//! `rows` has what the tables are built from, `evidence` what pages are compared by, each end to end, and `places` says
//! where those of each row begin: one is read without the other. All three are appended to, and read through mappings.
//!
//! A commit makes what was appended durable, and then replaces the `manifest`, which says how far the files count and
//! which rows are live. Opening cuts off what is behind its lengths: the log is the truth, the store may lag behind it,
//! and the caller applies the records after its sequence. `begin_commit` only notes the present state; `finish` waits
//! for the disk, in any thread.
//!
//! Removed rows become zeros after the commit that says so, erased ones at once. The commit names the ranges, and an
//! erasure writes the rows into `erased` first, so whoever opens the store completes what a crash interrupted.
//!
//! Another process may open the same folder to read. It has what was committed when it opened it, but for rows that are
//! zeros since: those are absent if the store has lost them by now, and damage otherwise. Only erased rows become zeros
//! while someone holds the store. The owner of the folder, who writes, has its lock; the store does not know of it.

mod bits;
mod commit;
mod error;
mod files;
mod manifest;
mod mapped_file;
mod row;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bits::RowSet;
pub use commit::PendingCommit;
use commit::{Erasure, Shared, locked};
pub use error::{Result, StoreError};
use files::{Files, Part};
pub use manifest::{Label, Manifest, read_extra, read_manifest};
use manifest::{damaged, manifest_path, read_commit, write_commit};
use mapped_file::{Hold, MappedFile};
pub use row::{Entry, Row};
use row::{MOST_PATH, ROW_BYTES, Record};

/// Bytes of a path that are no keys.
const PARTS: usize = crate::tables::cells::PARTS;
/// Tries to read a row that another process may be erasing at this moment.
const ATTEMPTS: usize = 8;

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// To read what the last commit has; nothing on the disk changes, and other processes may write.
    Read,
    /// The same, and rows that are removed meanwhile stay until it is closed. For a short time: they take space.
    Hold,
    /// To read and to change; the caller has the folder for itself.
    Write,
}

/// Sizes of an open store. Bytes on disk are those that the files take, without holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreInfo {
    /// What the last finished commit says.
    pub committed: Manifest,
    /// The row that comes next.
    pub next_row: u32,
    /// Live rows now.
    pub live_rows: u64,
    /// Bytes on disk of the file of rows.
    pub rows_bytes: u64,
    /// Bytes on disk of the file of places.
    pub places_bytes: u64,
    /// Bytes on disk of the file of evidence.
    pub evidence_bytes: u64,
    /// Bytes of memory that grow with the rows; not those of the page cache.
    pub memory_bytes: usize,
}

/// The store in a folder.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// Of the last commit that was begun, with the largest sequence up to now.
    manifest: Manifest,
    base: Option<Arc<Store>>,
    files: Files,
    live: RowSet,
    /// Rows whose bytes are in the files: those that are live, now or in the last commit.
    kept: RowSet,
    shared: Arc<Shared>,
    extra: Vec<u8>,
    /// Of a store that was opened to read: what is live there by now, as far as it had to be known.
    now: Mutex<Option<RowSet>>,
    _hold: Option<Hold>,
}

impl Store {
    /// Make a store in `folder`, which has none, and open it for writing.
    ///
    /// # Errors
    /// `State` if there is a store, `Damaged` if there is one without a manifest, `Full` if the disk does not take it.
    pub fn create(folder: &Path, label: &Label) -> Result<Self> {
        Self::create_at(folder, label, 0, None)
    }

    /// Make a store that goes on where `base` ends: it has the rows of that one, which is only read, as they are there.
    ///
    /// # Errors
    /// As `create`; `State` if the base is open for writing.
    pub fn create_on(folder: &Path, label: &Label, base: Self) -> Result<Self> {
        base.require_base()?;
        Self::create_at(folder, label, base.next_row(), Some(base))
    }

    fn create_at(folder: &Path, label: &Label, first_row: u32, base: Option<Self>) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(error::unwritable(folder))?;
        if manifest_path(folder).exists() {
            return Err(StoreError::State(format!("{} has a store already: open it", folder.display())));
        }
        for path in Files::paths(folder) {
            if path.metadata().is_ok_and(|status| status.len() > 0) {
                return Err(damaged(&path, "is the file of a store, and there is no manifest"));
            }
            MappedFile::open(path, 0, true)?;
        }
        let identity = identity();
        let manifest = Manifest {
            label: label.clone(),
            identity,
            base: base.as_ref().map_or(0, |base| base.files.identity),
            first_row,
            next_row: first_row,
            live_rows: base.as_ref().map_or(0, |base| base.live.len()),
            rows_bytes: 0,
            evidence_bytes: 0,
            sequence: i64::MIN,
            last_sequence: base.as_ref().map_or(i64::MIN, |base| base.manifest.last_sequence),
            tail: String::new(),
            note: Vec::new(),
            number: 0,
        };
        let live = base.as_ref().map_or_else(RowSet::default, |base| base.live.clone());
        write_commit(folder, &manifest, &live, &[], &[])?;
        let store = Self::open(folder, label, OpenMode::Write)?;
        match base {
            Some(base) => store.on(base),
            None => Ok(store),
        }
    }

    /// Open the store in `folder` as its last commit left it. label: of the log that it must belong to.
    ///
    /// # Errors
    /// `Damaged` if a file is missing, too short or altered as far as that is read; `Foreign` if it belongs to another
    /// log, space or version; `Full` if a store that is to be written cannot be.
    pub fn open(folder: &Path, label: &Label, mode: OpenMode) -> Result<Self> {
        let [rows, ..] = Files::paths(folder);
        let hold = if mode == OpenMode::Hold { Some(MappedFile::hold(&rows)?) } else { None };
        let commit = read_commit(folder)?.ok_or_else(|| damaged(&manifest_path(folder), "is missing"))?;
        let (manifest, is_writable) = (commit.manifest, mode == OpenMode::Write);
        if manifest.label != *label {
            return Err(StoreError::Foreign(format!(
                "{} has the pages of log {} in space {}, this is log {} in space {}: delete that folder, and it is \
                 built again from the log",
                folder.display(),
                manifest.label.log,
                manifest.label.space,
                label.log,
                label.space
            )));
        }
        let files = Files::open(folder, &manifest, is_writable)?;
        let mut erasure = Erasure::read(folder, manifest.identity, manifest.number)?;
        let mut store = Self {
            folder: folder.to_owned(),
            base: None,
            kept: commit.live.clone(),
            live: commit.live,
            extra: commit.extra,
            shared: Shared::new(manifest.clone()),
            manifest,
            files,
            now: Mutex::default(),
            _hold: hold,
        };
        if is_writable {
            erasure.complete(folder, &store.files)?;
            let is_held = store.files.rows.is_held();
            for rows in commit.dead {
                if is_held {
                    store.kept.extend(rows.start.into()..rows.end.into()); // the next commit names them again
                } else {
                    store.files.erase(rows)?;
                }
            }
        }
        for row in erasure.rows() {
            store.live.remove(*row);
            store.kept.remove(*row);
        }
        *locked(&store.shared.erasure) = erasure;
        Ok(store)
    }

    /// Let the store have the rows before its own first one, which are in `base`, but for those that are dead there.
    ///
    /// # Errors
    /// `Foreign` if the store goes on from another one; `State` if the base is open for writing.
    pub fn on(mut self, base: Self) -> Result<Self> {
        base.require_base()?;
        if base.files.identity != self.manifest.base || base.next_row() < self.files.first_row {
            return Err(StoreError::Foreign(format!(
                "{} goes on from store {:016x} with {} rows, {} is {:016x} with {}: give the base that it began with",
                self.folder.display(),
                self.manifest.base,
                self.files.first_row,
                base.folder.display(),
                base.files.identity,
                base.next_row()
            )));
        }
        for rows in [&mut self.live, &mut self.kept] {
            rows.intersect(&base.live, u64::from(self.files.first_row));
        }
        self.base = Some(Arc::new(base));
        Ok(self)
    }

    /// Return the rows that are live now, to be read by any thread, and held like those of `OpenMode::Hold`.
    ///
    /// It must not be read after the folder is opened again.
    ///
    /// # Errors
    /// `Damaged` if a file is missing.
    pub fn view(&self) -> Result<Self> {
        Ok(Self {
            folder: self.folder.clone(),
            manifest: self.manifest.clone(),
            base: self.base.clone(),
            files: Files { is_writable: false, ..self.files.clone() },
            live: self.live.clone(),
            kept: self.live.clone(),
            shared: Shared::new(self.committed()),
            extra: Vec::new(),
            now: Mutex::default(),
            _hold: Some(MappedFile::hold(&self.files.rows.path)?),
        })
    }

    /// Return the number of live rows.
    pub fn len(&self) -> u64 {
        self.live.len()
    }

    /// Return the number of the next row that is appended.
    pub fn next_row(&self) -> u32 {
        self.files.next_row
    }

    /// Return the first row that is in the store's own files; those before are in its base.
    pub fn first_own_row(&self) -> u32 {
        self.files.first_row
    }

    /// Return what the last finished commit says.
    pub fn committed(&self) -> Manifest {
        self.shared.progress().finished.clone()
    }

    /// Take what the commit that was opened had beside the rows; later calls return nothing.
    pub fn take_extra(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.extra)
    }

    /// Append pages; return the number of the first row.
    ///
    /// # Errors
    /// `Full` if the disk does not take them, `NumbersUsed` after 2^32 - 1 rows, `State` for rows that are not in order
    /// of their sequences, or have longer paths than there are. Nothing is appended then.
    pub fn append(&mut self, pages: &[Entry]) -> Result<u32> {
        self.require_writable()?;
        let mut last = self.manifest.last_sequence;
        for Entry { row, path, .. } in pages {
            if row.sequence <= last {
                let text = format!("rows ascend by sequence: {} cannot come after {last}", row.sequence);
                return Err(StoreError::State(text));
            }
            if path.len() > MOST_PATH {
                let (sequence, bytes) = (row.sequence, path.len());
                let text = format!("the path of sequence {sequence} has {bytes} bytes: {MOST_PATH} at most");
                return Err(StoreError::State(text));
            }
            last = row.sequence;
        }
        let first = self.files.next_row;
        self.files.append(pages)?;
        self.manifest.last_sequence = last;
        for set in [&mut self.live, &mut self.kept] {
            set.extend(u64::from(first)..u64::from(self.files.next_row));
        }
        Ok(first)
    }

    /// Remove live rows, each once. Their bytes go with the next commit.
    ///
    /// # Errors
    /// `Gone` if one is not live or is named twice; none is removed then.
    pub fn remove(&mut self, rows: &[u32]) -> Result<()> {
        self.require_writable()?;
        let mut sorted = rows.to_vec();
        sorted.sort_unstable();
        let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        if let Some(row) = twice.or_else(|| sorted.into_iter().find(|row| !self.is_live(*row))) {
            return Err(StoreError::Gone(row));
        }
        for row in rows {
            self.live.remove(*row);
        }
        Ok(())
    }

    /// Remove rows, and make their bytes zeros at once and durably, whether they are live or not. Waits for the disk.
    ///
    /// # Errors
    /// `State` if a row is in a base, `Damaged` if it cannot be said where a row is; nothing changed then. `Full` if the
    /// disk does not take it: opening the store again completes it.
    pub fn erase(&mut self, rows: &[u32]) -> Result<()> {
        self.require_writable()?;
        if let Some(row) = rows.iter().find(|row| **row < self.files.first_row) {
            return Err(StoreError::State(format!("row {row} is in a base, which is only read: erase it there")));
        }
        let rows: Vec<u32> = rows.iter().copied().filter(|row| self.kept.has(*row)).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let mut erasure = locked(&self.shared.erasure);
        self.shared.progress().require_intact()?;
        rows.iter().try_for_each(|row| self.files.extent(*row..row + 1).map(drop))?;
        self.shared.noted(erasure.add(&rows, self.manifest.number + 1, &self.folder, &self.files))?;
        drop(erasure);
        for row in rows {
            self.live.remove(row);
            self.kept.remove(row);
        }
        Ok(())
    }

    /// Return whether a row was appended and not removed.
    #[inline]
    pub fn is_live(&self, row: u32) -> bool {
        self.live.has(row)
    }

    /// Return a live row and its path, which is in `buffer` then.
    ///
    /// # Errors
    /// `Gone` if it is not live, or was removed by another process; `Damaged` if it is altered.
    pub fn row<'a>(&self, row: u32, buffer: &'a mut Vec<u8>) -> Result<(Row, &'a [u8])> {
        let found = if self.is_live(row) { self.stored(row, buffer)? } else { return Err(StoreError::Gone(row)) };
        Ok((found, buffer.get(ROW_BYTES..).unwrap_or_default()))
    }

    /// Return the evidence of a live row, verified.
    ///
    /// Who writes gets it where it is. Another process may erase what was opened to read, a base for example, so that
    /// is copied to `buffer` before it is verified.
    ///
    /// # Errors
    /// As `row`.
    pub fn evidence<'a>(&'a self, row: u32, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        if !self.is_live(row) {
            return Err(StoreError::Gone(row));
        }
        if row < self.files.first_row {
            return self.base()?.evidence(row, buffer);
        }
        if let Some(evidence) = self.files.evidence(row, buffer)? {
            return Ok(evidence);
        }
        self.stored(row, &mut Vec::new())?; // an erased one has no evidence either
        let range = self.files.range(Part::Evidence, row..row + 1)?;
        let what = format!("has altered evidence of row {row}, at bytes {} to {}", range.start, range.end);
        Err(damaged(&self.files.evidence.path, &what))
    }

    /// Fetch the evidence of rows into the processor's cache, as far as the page cache has it.
    pub fn prefetch(&self, rows: &[u32]) {
        self.each_range(rows, |files, range| files.evidence.prefetch(range.start, range.end - range.start));
    }

    /// Ask the disk for the evidence of rows that are read soon.
    pub fn will_need(&self, rows: &[u32]) {
        self.each_range(rows, |files, range| files.evidence.will_need(range.start, range.end - range.start));
    }

    /// Ask the disk for rows that are read soon in order; `with_evidence` or not.
    pub fn will_need_all(&self, rows: Range<u32>, with_evidence: bool) {
        if let (Some(base), true) = (&self.base, rows.start < self.files.first_row) {
            base.will_need_all(rows.start..rows.end.min(self.files.first_row), with_evidence);
        }
        let own = rows.start.max(self.files.first_row)..rows.end.min(self.files.next_row);
        if let (false, Ok(extent)) = (own.is_empty(), self.files.extent(own.clone())) {
            let places = |row: u32| u64::from(row - self.files.first_row) * files::PLACES_BYTES;
            self.files.places.will_need(places(own.start), places(own.end) - places(own.start));
            self.files.rows.will_need(extent.rows.start, extent.rows.end - extent.rows.start);
            if with_evidence {
                self.files.evidence.will_need(extent.evidence.start, extent.evidence.end - extent.evidence.start);
            }
        }
    }

    /// Call `visit` with the live rows of a range, ascending, and their paths; append those that the base has lost since to
    /// `lost`. Return how many were visited.
    ///
    /// # Errors
    /// `Damaged` if a row is altered, or `visit` says that its path is none.
    pub fn read_rows(
        &self,
        rows: Range<u32>,
        lost: &mut Vec<u32>,
        mut visit: impl FnMut(u32, &Row, &[u8]) -> bool,
    ) -> Result<u64> {
        let (mut buffer, mut count) = (Vec::new(), 0);
        for row in self.live_rows(rows.start).take_while(|row| *row < rows.end) {
            match self.row(row, &mut buffer) {
                Ok((fields, path)) if visit(row, &fields, path) => count += 1,
                Ok(_) => return Err(damaged(&self.files.rows.path, &format!("has a row {row} without a path"))),
                Err(StoreError::Gone(_)) => lost.push(row),
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    /// Return how many keys a row has in its path, on average.
    pub fn keys_a_row(&self) -> f64 {
        let rows = f64::from(self.files.next_row - self.files.first_row);
        match &self.base {
            Some(base) if rows == 0.0 => base.keys_a_row(),
            _ => (self.files.rows.len as f64 / rows.max(1.0) - (ROW_BYTES + PARTS) as f64) / 4.0,
        }
    }

    /// Yield the live rows from `from` on, ascending.
    pub fn live_rows(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        let mut next = u64::from(from);
        std::iter::from_fn(move || {
            let row = self.live.next(next)?;
            next = u64::from(row) + 1;
            Some(row)
        })
    }

    /// Return the live row of the page at `sequence`.
    ///
    /// A row that its base has erased does not say of which page it was. Such a row between those of the pages before and
    /// after is returned, too, so that the store can lose it.
    ///
    /// # Errors
    /// `Damaged` if a row that is read on the way is altered.
    pub fn find(&self, sequence: i64) -> Result<Option<u32>> {
        let (found, place) = self.search(sequence)?;
        if found.is_some() || place >= u64::from(self.files.first_row) {
            return Ok(found.filter(|row| self.is_live(*row)));
        }
        let erased = self.live.next(place).filter(|row| *row < self.files.first_row);
        match erased.map(|row| self.stored(row, &mut Vec::new())) {
            Some(Err(StoreError::Gone(row))) => Ok(Some(row)),
            Some(Err(error)) => Err(error),
            _ => Ok(None),
        }
    }

    /// Return the row of the page at `sequence` that is live, or was removed and still has its bytes.
    ///
    /// # Errors
    /// As `find`.
    pub fn find_kept(&self, sequence: i64) -> Result<Option<u32>> {
        Ok(self.search(sequence)?.0)
    }

    /// Return the row of a page that has its bytes; without one, behind which it would be.
    fn search(&self, sequence: i64) -> Result<(Option<u32>, u64)> {
        let (mut first, mut end, mut buffer) = (0, u64::from(self.files.next_row), Vec::new());
        while first < end {
            let middle = u64::midpoint(first, end);
            match self.next_stored(middle, end, &mut buffer)? {
                Some((row, found)) if found.sequence == sequence => return Ok((Some(row), middle)),
                Some((row, found)) if found.sequence < sequence => first = u64::from(row) + 1,
                _ => end = middle,
            }
        }
        Ok((None, first))
    }

    /// Note the present state, which `finish` makes durable. sequence, tail: last record of the log, and its digest.
    /// note: what readers of the manifest are to know. Takes milliseconds.
    /// Every commit is finished or dropped before the folder is opened again.
    ///
    /// # Errors
    /// What an earlier commit or erasure failed with: the store has to be opened again.
    pub fn begin_commit(&mut self, sequence: i64, tail: &str, note: Vec<u8>) -> Result<PendingCommit> {
        self.require_writable()?;
        let mut progress = self.shared.progress();
        progress.require_intact()?;
        if let Some((live, end)) = progress.live.take() {
            self.kept.intersect(&live, end);
        }
        drop(progress);
        self.live.shrink();
        self.kept.shrink();
        self.manifest = Manifest {
            next_row: self.files.next_row,
            live_rows: self.live.len(),
            rows_bytes: self.files.rows.len,
            evidence_bytes: self.files.evidence.len,
            sequence,
            tail: tail.to_owned(),
            note,
            number: self.manifest.number + 1,
            ..self.manifest.clone()
        };
        Ok(PendingCommit {
            folder: self.folder.clone(),
            manifest: self.manifest.clone(),
            files: self.files.clone(),
            live: self.live.clone(),
            kept: self.kept.clone(),
            shared: Arc::clone(&self.shared),
        })
    }

    /// Give back the space of all rows that are dead since the last commit, also where a copy has filled it with zeros;
    /// return the bytes that the disk has got.
    ///
    /// # Errors
    /// `Damaged` if it cannot be said where a row is, `Full` if the disk does not take it.
    pub fn compact(&mut self) -> Result<u64> {
        self.require_writable()?;
        let before = self.files.disk_bytes();
        let mut first = self.files.first_row;
        while first < self.files.next_row {
            let end = self.kept.next(u64::from(first)).unwrap_or(self.files.next_row);
            if first < end {
                self.files.erase(first..end)?;
            }
            first = end.saturating_add(1);
        }
        self.files.sync()?;
        Ok(before.saturating_sub(self.files.disk_bytes()))
    }

    /// Read all live rows with their evidence, but for those of a base.
    ///
    /// # Errors
    /// `Damaged` names the first that is altered.
    pub fn verify(&self) -> Result<()> {
        let mut buffer = Vec::new();
        self.live_rows(self.files.first_row).try_for_each(|row| {
            self.row(row, &mut buffer)?;
            self.evidence(row, &mut buffer).map(drop)
        })
    }

    /// Return the present sizes.
    pub fn info(&self) -> StoreInfo {
        StoreInfo {
            committed: self.committed(),
            next_row: self.files.next_row,
            live_rows: self.len(),
            rows_bytes: self.files.rows.disk_bytes(),
            places_bytes: self.files.places.disk_bytes(),
            evidence_bytes: self.files.evidence.disk_bytes(),
            memory_bytes: self.live.bytes() + self.kept.bytes(),
        }
    }

    fn require_writable(&self) -> Result<()> {
        if self.files.is_writable {
            return Ok(());
        }
        Err(StoreError::State(format!("{} was opened to read: open it to write", self.folder.display())))
    }

    fn require_base(&self) -> Result<()> {
        if !self.files.is_writable {
            return Ok(());
        }
        Err(StoreError::State(format!("{} is a base: open it to read", self.folder.display())))
    }

    fn base(&self) -> Result<&Self> {
        self.base.as_deref().ok_or_else(|| {
            let (folder, rows) = (self.folder.display(), self.files.first_row);
            StoreError::State(format!("{folder} goes on from a base with {rows} rows: open that, too"))
        })
    }

    /// Return a row that has its bytes, live or not; its record is in `buffer` then.
    fn stored(&self, row: u32, buffer: &mut Vec<u8>) -> Result<Row> {
        if row < self.files.first_row {
            return self.base()?.stored(row, buffer);
        }
        for _ in 0..ATTEMPTS {
            match self.files.record(row, buffer)? {
                Record::Intact(found) => return Ok(found),
                Record::Erased if self.is_live(row) && self.is_live_now(row)? => break, // by nobody who may
                Record::Erased => return Err(StoreError::Gone(row)),
                Record::Altered => std::thread::yield_now(),
            }
        }
        let at = self.files.range(Part::Rows, row..row.saturating_add(1))?.start;
        Err(damaged(&self.files.rows.path, &format!("has an altered row {row}, at byte {at}")))
    }

    /// Return whether a row is live in the folder by now, as its owner has written it.
    fn is_live_now(&self, row: u32) -> Result<bool> {
        let mut now = locked(&self.now);
        if !self.files.is_writable && now.as_ref().is_none_or(|live| live.has(row)) {
            // Erasures come first: the owner forgets them once there is a commit without their rows.
            let erasure = Erasure::read(&self.folder, self.files.identity, 0)?;
            let mut live = read_commit(&self.folder)?.map_or_else(RowSet::default, |commit| commit.live);
            for row in erasure.rows() {
                live.remove(*row);
            }
            *now = Some(live);
        }
        Ok(now.as_ref().is_none_or(|live| live.has(row)))
    }

    /// Return the first row from `from` on, before `end`, that has its bytes.
    fn next_stored(&self, from: u64, end: u64, buffer: &mut Vec<u8>) -> Result<Option<(u32, Row)>> {
        let mut next = from;
        while let Some(row) = self.kept.next(next).filter(|row| u64::from(*row) < end) {
            match self.stored(row, buffer) {
                Err(StoreError::Gone(_)) => next = u64::from(row) + 1,
                found => return found.map(|found| Some((row, found))),
            }
        }
        Ok(None)
    }

    /// Visit where the evidence of rows is.
    fn each_range(&self, rows: &[u32], mut visit: impl FnMut(&Files, Range<u64>)) {
        for row in rows {
            let mut store = self;
            while let (Some(base), true) = (&store.base, *row < store.files.first_row) {
                store = base;
            }
            if let Ok(range) = store.files.range(Part::Evidence, *row..row.saturating_add(1)) {
                visit(&store.files, range);
            }
        }
    }
}

/// Return 64 bits by chance, never 0.
fn identity() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish() | 1
}

#[cfg(test)]
mod tests;
