//! The store as Python sees it: many rows at a time, as bytes.
//!
//! A row is the 67 bytes of `ROW` of Python: the fields in its order, without gaps, with the sizes of its path and of both
//! evidence and path. Evidence of several rows is one string of bytes, end to end; the content of a row is its evidence,
//! and its path behind it. A store has a lock of its own, so threads that share one wait instead of being refused.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::{bytes_of, offsets_of, raised, sieves_of, values, work};
use crate::decider::SharedStore;
use crate::store::{self, Entry, Label, OpenMode, Row, StoreError};

/// Bytes of a row of `ROW`.
const RECORD: usize = 67;

/// Time to read a piece of evidence from which on the disk must have given it: the page cache takes 1 µs.
const SLOW_READ: Duration = Duration::from_micros(4);

impl From<StoreError> for PyErr {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        let name = match error {
            StoreError::Gone(_) => return PyKeyError::new_err(message),
            StoreError::State(_) => return raised("dedup_service.core.errors", "StateError", message),
            StoreError::Damaged(_) => "StoreDamagedError",
            StoreError::Foreign(_) => "ForeignStoreError",
            StoreError::Full(_) => "StoreFullError",
            StoreError::NumbersUsed(_) => "StoreNumbersUsedError",
        };
        raised("dedup_service.runtime.store.errors", name, message)
    }
}

/// Whose rows a store has.
#[pyclass(frozen, eq, get_all, module = "dedup_service._native")]
#[derive(Clone, PartialEq)]
pub(super) struct StoreLabel {
    log: String,
    space_id: String,
}

#[pymethods]
impl StoreLabel {
    #[new]
    fn new(log: String, space_id: String) -> Self {
        Self { log, space_id }
    }
}

impl StoreLabel {
    fn label(&self) -> Label {
        Label { log: self.log.clone(), space: self.space_id.clone() }
    }
}

/// What a commit says of a store.
#[pyclass(frozen, eq, get_all, module = "dedup_service._native")]
#[derive(Clone, PartialEq)]
pub(super) struct Manifest {
    label: StoreLabel,
    identity: u64,
    base: u64,
    first_row: u32,
    next_row: u32,
    live_rows: u64,
    rows_bytes: u64,
    evidence_bytes: u64,
    sequence: i64,
    tail: String,
    note: Vec<u8>,
    number: u64,
}

impl From<store::Manifest> for Manifest {
    fn from(manifest: store::Manifest) -> Self {
        Self {
            label: StoreLabel { log: manifest.label.log, space_id: manifest.label.space },
            identity: manifest.identity,
            base: manifest.base,
            first_row: manifest.first_row,
            next_row: manifest.next_row,
            live_rows: manifest.live_rows,
            rows_bytes: manifest.rows_bytes,
            evidence_bytes: manifest.evidence_bytes,
            sequence: if manifest.number == 0 { 0 } else { manifest.sequence },
            tail: manifest.tail,
            note: manifest.note,
            number: manifest.number,
        }
    }
}

/// Bytes of n rows, end to end, and where those of each begin: int64[n + 1].
#[pyclass(frozen, get_all, module = "dedup_service._native")]
pub(super) struct BytesFound {
    data: Py<PyBytes>,
    offsets: Py<PyBytes>,
}

/// The kept pages on disk.
#[pyclass(frozen, module = "dedup_service._native")]
pub(super) struct PageStore {
    store: SharedStore,
    /// Whether reads of evidence had to wait lately: then the disk is told of all of a batch before.
    is_slow: AtomicBool,
    #[pyo3(get)]
    folder: PathBuf,
}

#[pymethods]
impl PageStore {
    /// Make a store in a folder, which goes on where `base` ends: that is then a part of it, and closed.
    #[staticmethod]
    #[pyo3(signature = (folder, label, base = None))]
    fn create(py: Python<'_>, folder: PathBuf, label: &StoreLabel, base: Option<&Self>) -> PyResult<Self> {
        let label = label.label();
        let made = work(py, || match base {
            None => store::Store::create(&folder, &label),
            Some(base) => store::Store::create_on(&folder, &label, base.taken()?),
        })?;
        Ok(Self { store: Arc::new(RwLock::new(Some(made))), is_slow: AtomicBool::new(false), folder })
    }

    #[staticmethod]
    #[pyo3(signature = (folder, label, *, writable = false, held = false, base = None))]
    fn open(
        py: Python<'_>,
        folder: PathBuf,
        label: &StoreLabel,
        writable: bool,
        held: bool,
        base: Option<&Self>,
    ) -> PyResult<Self> {
        let mode = match (writable, held) {
            (true, _) => OpenMode::Write,
            (false, true) => OpenMode::Hold,
            (false, false) => OpenMode::Read,
        };
        let label = label.label();
        let opened = work(py, || {
            let opened = store::Store::open(&folder, &label, mode)?;
            match base {
                None => Ok(opened),
                Some(base) => opened.on(base.taken()?),
            }
        })?;
        Ok(Self { store: Arc::new(RwLock::new(Some(opened))), is_slow: AtomicBool::new(false), folder })
    }

    /// The rows that are live now, to be read by any thread.
    fn view(&self, py: Python<'_>) -> PyResult<Self> {
        let view = self.read(py, store::Store::view)?;
        Ok(Self {
            store: Arc::new(RwLock::new(Some(view))),
            is_slow: AtomicBool::new(false),
            folder: self.folder.clone(),
        })
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        work(py, || -> store::Result<()> {
            drop(self.store.write().unwrap_or_else(PoisonError::into_inner).take());
            Ok(())
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.read(py, |store| Ok(store.len() as usize))
    }

    #[getter]
    fn next_row(&self, py: Python<'_>) -> PyResult<u32> {
        self.read(py, |store| Ok(store.next_row()))
    }

    #[getter]
    fn first_own_row(&self, py: Python<'_>) -> PyResult<u32> {
        self.read(py, |store| Ok(store.first_own_row()))
    }

    #[getter]
    fn manifest(&self, py: Python<'_>) -> PyResult<Manifest> {
        self.read(py, |store| Ok(store.committed().into()))
    }

    fn take_extra<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.change(py, |store| Ok(store.take_extra()))?))
    }

    /// Append rows with their sieves, uint64[n, 2], and contents; return the number of the first one.
    fn append(
        &self,
        py: Python<'_>,
        rows: PyBackedBytes,
        sieves: PyBuffer<u64>,
        contents: PyBackedBytes,
    ) -> PyResult<u32> {
        let sieves = sieves_of(py, &sieves)?;
        self.change(py, |store| {
            let records = rows.chunks_exact(RECORD);
            let rest = records.remainder().len();
            let mut left: &[u8] = &contents;
            let mut entries = Vec::with_capacity(records.len());
            for (record, sieve) in records.zip(&sieves) {
                let (size, path) = sizes_in(record);
                let Some((content, after)) = left.split_at_checked(size) else { break };
                let Some((evidence, path)) = size.checked_sub(path).and_then(|own| content.split_at_checked(own))
                else {
                    break;
                };
                entries.push(Entry { row: Row { sieve: *sieve, ..row_of(record) }, path, evidence });
                left = after;
            }
            let count = rows.len() / RECORD;
            if entries.len() < count || sieves.len() > count || rest > 0 || !left.is_empty() {
                let (sieves, bytes) = (sieves.len(), contents.len());
                let text = format!("{count} rows and {rest} bytes do not go with {sieves} sieves and {bytes} bytes");
                return Err(StoreError::State(text));
            }
            store.append(&entries)
        })
    }

    fn remove(&self, py: Python<'_>, rows: PyBuffer<u32>) -> PyResult<()> {
        let rows = values(py, &rows)?;
        self.change(py, |store| store.remove(&rows))
    }

    fn erase(&self, py: Python<'_>, rows: PyBuffer<u32>) -> PyResult<()> {
        let rows = values(py, &rows)?;
        self.change(py, |store| store.erase(&rows))
    }

    /// Which rows are live: bool[n], as bytes.
    fn live(&self, py: Python<'_>, rows: PyBuffer<u32>) -> PyResult<Py<PyBytes>> {
        let rows = values(py, &rows)?;
        let live: Vec<u8> =
            self.read(py, |store| Ok(rows.iter().map(|row| u8::from(store.is_live(*row))).collect()))?;
        Ok(bytes_of(py, &live))
    }

    /// ROW[n] of live rows, as bytes; one that its owner has lost since has no more than the size of its evidence.
    fn rows(&self, py: Python<'_>, rows: PyBuffer<u32>) -> PyResult<Py<PyBytes>> {
        let rows = values(py, &rows)?;
        let records = self.read(py, |store| {
            let (mut records, mut buffer) = (Vec::with_capacity(rows.len() * RECORD), Vec::new());
            for row in rows {
                let found = unless_erased(store, row, store.row(row, &mut buffer))?;
                let (found, path) = found.map(|(found, path)| (found, path.len())).unwrap_or_default();
                put(&found, store.sizes(row)?.1, path, &mut records);
            }
            Ok(records)
        })?;
        Ok(bytes_of(py, &records))
    }

    /// Evidence of live rows; zeros of one that its owner has lost since.
    fn evidence(&self, py: Python<'_>, rows: PyBuffer<u32>) -> PyResult<BytesFound> {
        let rows = values(py, &rows)?;
        let found = self.read(py, |store| {
            let (began, count) = (Instant::now(), rows.len() as u32);
            if self.is_slow.load(Ordering::Relaxed) {
                store.will_need(&rows);
            }
            store.prefetch(&rows);
            let found = gathered(store, &rows, put_evidence);
            self.is_slow.store(began.elapsed() > SLOW_READ * count, Ordering::Relaxed);
            found
        })?;
        Ok(found.into_python(py))
    }

    /// Paths of live rows; none of one that its base has erased since.
    fn paths(&self, py: Python<'_>, rows: PyBuffer<u32>) -> PyResult<BytesFound> {
        let rows = values(py, &rows)?;
        Ok(self.read(py, |store| gathered(store, &rows, put_path))?.into_python(py))
    }

    /// Live rows as `append` takes them, but for their sieves: ROW[n], and contents. All of one that is lost is 0.
    fn entries(&self, py: Python<'_>, rows: PyBuffer<u32>) -> PyResult<(Py<PyBytes>, Py<PyBytes>)> {
        let rows = values(py, &rows)?;
        let (records, contents) = self.read(py, |store| {
            let (mut records, mut contents) = (Vec::with_capacity(rows.len() * RECORD), Vec::new());
            let mut buffers = (Vec::new(), Vec::new());
            for row in rows {
                let evidence = unless_erased(store, row, store.evidence(row, &mut buffers.0))?;
                let found = unless_erased(store, row, store.row(row, &mut buffers.1))?;
                if let (Some(evidence), Some((found, path))) = (evidence, found) {
                    put(&found, evidence.len(), path.len(), &mut records);
                    contents.extend_from_slice(evidence);
                    contents.extend_from_slice(path);
                } else {
                    put(&Row::default(), 0, 0, &mut records);
                }
            }
            Ok((records, contents))
        })?;
        Ok((bytes_of(py, &records), bytes_of(py, &contents)))
    }

    /// The first live rows from one on: uint32[m], as bytes.
    fn live_rows(&self, py: Python<'_>, first: u32, limit: usize) -> PyResult<Py<PyBytes>> {
        let rows: Vec<u32> = self.read(py, |store| Ok(store.live_rows(first).take(limit).collect()))?;
        Ok(bytes_of(py, &rows))
    }

    /// Ask the disk for some rows that are read soon in order.
    fn will_need(&self, py: Python<'_>, first: u32, end: u32) -> PyResult<()> {
        self.read(py, |store| {
            store.will_need_all(first..end, true);
            Ok(())
        })
    }

    fn find(&self, py: Python<'_>, sequence: i64) -> PyResult<Option<u32>> {
        self.read(py, |store| store.find(sequence))
    }

    fn find_kept(&self, py: Python<'_>, sequence: i64) -> PyResult<Option<u32>> {
        self.read(py, |store| store.find_kept(sequence))
    }

    fn begin_commit(&self, py: Python<'_>, sequence: i64, tail: &str, note: Vec<u8>) -> PyResult<PendingCommit> {
        let pending = self.change(py, |store| store.begin_commit(sequence, tail, note))?;
        Ok(PendingCommit { pending: RwLock::new(Some(pending)) })
    }

    fn compact(&self, py: Python<'_>) -> PyResult<u64> {
        self.change(py, store::Store::compact)
    }

    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        self.read(py, store::Store::verify)
    }

    /// Bytes: (of evidence on disk, of memory).
    fn sizes(&self, py: Python<'_>) -> PyResult<(u64, usize)> {
        self.read(py, |store| {
            let info = store.info();
            Ok((info.evidence_bytes, info.memory_bytes))
        })
    }
}

impl PageStore {
    /// The store, which is closed with this one.
    pub(super) fn shared(&self) -> SharedStore {
        Arc::clone(&self.store)
    }

    /// Do something with the store, as it is between changes.
    pub(super) fn read<T: Send>(
        &self,
        py: Python<'_>,
        task: impl FnOnce(&store::Store) -> store::Result<T> + Send,
    ) -> PyResult<T> {
        work(py, || match &*self.store.read().unwrap_or_else(PoisonError::into_inner) {
            Some(store) => task(store),
            None => Err(self.is_closed()),
        })
    }

    pub(super) fn change<T: Send>(
        &self,
        py: Python<'_>,
        task: impl FnOnce(&mut store::Store) -> store::Result<T> + Send,
    ) -> PyResult<T> {
        work(py, || match &mut *self.store.write().unwrap_or_else(PoisonError::into_inner) {
            Some(store) => task(store),
            None => Err(self.is_closed()),
        })
    }

    /// Take the store out, which is closed for Python then.
    fn taken(&self) -> store::Result<store::Store> {
        let taken = self.store.write().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| self.is_closed())
    }

    fn is_closed(&self) -> StoreError {
        StoreError::State(format!("the store in {} is closed: open it again", self.folder.display()))
    }
}

/// A commit whose content is noted.
#[pyclass(frozen, module = "dedup_service._native")]
pub(super) struct PendingCommit {
    pending: RwLock<Option<store::PendingCommit>>,
}

#[pymethods]
impl PendingCommit {
    /// Make it durable; a second call does nothing.
    fn finish(&self, py: Python<'_>, extra: PyBackedBytes) -> PyResult<()> {
        work(py, || {
            let pending = self.pending.write().unwrap_or_else(PoisonError::into_inner).take();
            pending.map_or(Ok(()), |pending| pending.finish(&extra))
        })
    }
}

/// What the last commit in a folder says, without opening the store; None if there is none.
#[pyfunction]
pub(super) fn read_manifest(py: Python<'_>, folder: PathBuf) -> PyResult<Option<Manifest>> {
    Ok(work(py, || store::read_manifest(&folder))?.map(Manifest::from))
}

/// The same, with what the caller had beside the rows.
#[pyfunction]
pub(super) fn read_commit(py: Python<'_>, folder: PathBuf) -> PyResult<Option<(Manifest, Py<PyBytes>)>> {
    let found = work(py, || store::read_extra(&folder))?;
    Ok(found.map(|(manifest, extra)| (manifest.into(), bytes_of(py, &extra))))
}

/// Return None for a row that the store calls live, and that is no more: its owner has lost it.
fn unless_erased<T>(store: &store::Store, row: u32, found: store::Result<T>) -> store::Result<Option<T>> {
    match found {
        Err(StoreError::Gone(_)) if store.is_live(row) => Ok(None),
        found => found.map(Some),
    }
}

/// Bytes of rows, end to end, and where those of each end.
#[derive(Default)]
struct Gathered {
    data: Vec<u8>,
    ends: Vec<usize>,
}

impl Gathered {
    fn into_python(self, py: Python<'_>) -> BytesFound {
        BytesFound { data: bytes_of(py, &self.data), offsets: offsets_of(py, &self.ends) }
    }
}

/// Return what `put` appends of rows to the first vector; the second one it may use.
fn gathered(
    store: &store::Store,
    rows: &[u32],
    put: impl Fn(&store::Store, u32, &mut Vec<u8>, &mut Vec<u8>) -> store::Result<()>,
) -> store::Result<Gathered> {
    let (mut found, mut buffer) = (Gathered::default(), Vec::new());
    for row in rows {
        put(store, *row, &mut found.data, &mut buffer)?;
        found.ends.push(found.data.len());
    }
    Ok(found)
}

fn put_evidence(store: &store::Store, row: u32, data: &mut Vec<u8>, buffer: &mut Vec<u8>) -> store::Result<()> {
    match unless_erased(store, row, store.evidence(row, buffer))? {
        Some(evidence) => data.extend_from_slice(evidence),
        None => data.resize(data.len() + store.sizes(row)?.1, 0),
    }
    Ok(())
}

fn put_path(store: &store::Store, row: u32, data: &mut Vec<u8>, buffer: &mut Vec<u8>) -> store::Result<()> {
    if let Some((_, path)) = unless_erased(store, row, store.row(row, buffer))? {
        data.extend_from_slice(path);
    }
    Ok(())
}

/// Return the bytes of the content of a row, and those of its path among them. record: as for `row_of`.
fn sizes_in(record: &[u8]) -> (usize, usize) {
    let size = u32::from_le_bytes([record[60], record[61], record[62], record[63]]);
    (size as usize, u16::from_le_bytes([record[64], record[65]]).into())
}

/// Return a row without its sieve. record: `RECORD` bytes.
fn row_of(record: &[u8]) -> Row {
    let half = |at: usize| u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
    let wide = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
    Row {
        sequence: wide(0) as i64,
        words: wide(8),
        body: wide(16),
        body_hash: wide(24),
        text_hash: wide(32),
        url_hash: wide(40),
        host: half(48),
        ordinal: wide(52),
        flags: record[66],
        ..Row::default()
    }
}

/// Append a row as `row_of` takes it. evidence, path: their bytes.
fn put(row: &Row, evidence: usize, path: usize, records: &mut Vec<u8>) {
    records.extend_from_slice(&row.sequence.to_le_bytes());
    for word in [row.words, row.body, row.body_hash, row.text_hash, row.url_hash] {
        records.extend_from_slice(&word.to_le_bytes());
    }
    records.extend_from_slice(&row.host.to_le_bytes());
    records.extend_from_slice(&row.ordinal.to_le_bytes());
    records.extend_from_slice(&((evidence + path) as u32).to_le_bytes());
    records.extend_from_slice(&(path as u16).to_le_bytes());
    records.push(row.flags);
}
