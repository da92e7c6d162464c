//! The store as Python sees it: many rows at a time, as entries.
//!
//! A store has a lock of its own, so threads that share one wait instead of being refused.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::decider::Entry;
use super::{bytes_of, raised, work};
use crate::decider::{self, SharedStore};
use crate::store::{self, Label, OpenMode, StoreError};
use crate::window::flags::SETTLED;

impl From<StoreError> for PyErr {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        let name = match error {
            StoreError::Gone(_) => return PyKeyError::new_err(message),
            StoreError::State(_) => return raised("dedup_service.core.errors", "StateError", message),
            StoreError::Damaged(_) => "StoreDamagedError",
            StoreError::Foreign(_) => "ForeignStoreError",
            StoreError::Full(_) | StoreError::Unreadable(_) => "StoreFullError",
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

/// The kept pages on disk.
#[pyclass(frozen, module = "dedup_service._native")]
pub(super) struct PageStore {
    store: SharedStore,
    #[pyo3(get)]
    folder: PathBuf,
}

#[pymethods]
impl PageStore {
    #[staticmethod]
    #[pyo3(signature = (folder, label, base = None))]
    fn create(py: Python<'_>, folder: PathBuf, label: &StoreLabel, base: Option<&Self>) -> PyResult<Self> {
        let label = label.label();
        let made = work(py, || match base {
            None => store::Store::create(&folder, &label),
            Some(base) => store::Store::create_on(&folder, &label, base.taken()?),
        })?;
        Ok(Self { store: Arc::new(RwLock::new(Some(made))), folder })
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
        Ok(Self { store: Arc::new(RwLock::new(Some(opened))), folder })
    }

    fn view(&self, py: Python<'_>) -> PyResult<Self> {
        let view = self.read(py, store::Store::view)?;
        Ok(Self { store: Arc::new(RwLock::new(Some(view))), folder: self.folder.clone() })
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

    fn append(&self, py: Python<'_>, entries: Vec<PyRef<'_, Entry>>) -> PyResult<u32> {
        let entries: Vec<decider::Entry> = entries.iter().map(|entry| entry.entry(py)).collect();
        self.change(py, |store| store.append(&entries.iter().map(decider::Entry::stored).collect::<Vec<_>>()))
    }

    fn remove(&self, py: Python<'_>, rows: Vec<u32>) -> PyResult<()> {
        self.change(py, |store| store.remove(&rows))
    }

    fn erase(&self, py: Python<'_>, rows: Vec<u32>) -> PyResult<()> {
        self.change(py, |store| store.erase(&rows))
    }

    #[pyo3(signature = (rows, *, with_evidence = true))]
    fn entries(&self, py: Python<'_>, rows: Vec<u32>, with_evidence: bool) -> PyResult<Vec<Entry>> {
        let found = self.read(py, |store| {
            let (mut found, mut buffers) = (Vec::with_capacity(rows.len()), (Vec::new(), Vec::new()));
            for number in rows {
                let evidence = if with_evidence { store.evidence(number, &mut buffers.0) } else { Ok(&[][..]) };
                let row = unless_erased(store, number, store.row(number, &mut buffers.1))?;
                if let (Some((row, path)), Some(evidence)) = (row, unless_erased(store, number, evidence)?) {
                    let (evidence, keys) = (evidence.to_vec(), path.to_vec());
                    let number = (row.flags & SETTLED != 0).then_some(number);
                    found.push(decider::Entry { row, evidence, keys, number });
                }
            }
            Ok(found)
        })?;
        Ok(found.iter().map(|entry| Entry::of(py, entry)).collect())
    }

    fn live_rows(&self, py: Python<'_>, first: u32, limit: usize) -> PyResult<Vec<u32>> {
        self.read(py, |store| {
            let rows: Vec<u32> = store.live_rows(first).take(limit).collect();
            if let [first, .., last] = rows[..] {
                store.will_need_all(first..last.saturating_add(1), true);
            }
            Ok(rows)
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
    fn finish(&self, py: Python<'_>, extra: PyBackedBytes) -> PyResult<()> {
        work(py, || {
            let pending = self.pending.write().unwrap_or_else(PoisonError::into_inner).take();
            pending.map_or(Ok(()), |pending| pending.finish(&extra))
        })
    }
}

#[pyfunction]
pub(super) fn read_manifest(py: Python<'_>, folder: PathBuf) -> PyResult<Option<Manifest>> {
    Ok(work(py, || store::read_manifest(&folder))?.map(Manifest::from))
}

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
