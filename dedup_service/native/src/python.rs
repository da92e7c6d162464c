//! The module `dedup_service._native`: buffers come in, bytes and small objects go out.
//!
//! Numbers come in any object with a buffer of that type, such as an array of numpy. What is returned as bytes has
//! native byte order. The interpreter lock is released while a batch is worked on.

#![allow(clippy::needless_pass_by_value)] // arguments are taken from Python by value

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::error::{Result, TableError};
use crate::tables::cells::{self, CellStatistics, Change, Probe, Sieve};
use crate::tables::{blocks, hamming, hash_rows};

impl From<TableError> for PyErr {
    fn from(error: TableError) -> Self {
        let (name, message) = match error {
            TableError::Configuration(message) => ("ConfigurationError", message),
            TableError::State(message) => ("StateError", message),
            TableError::Internal(message) => ("InternalError", message),
        };
        Python::attach(|py| {
            let raised =
                py.import("dedup_service.core.errors").and_then(|errors| errors.getattr(name)?.call1((message,)));
            raised.map_or_else(|error| error, PyErr::from_value)
        })
    }
}

/// Work with the interpreter lock released; a panic becomes an error.
fn work<T: Send>(py: Python<'_>, task: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(task)));
    Ok(done.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let what = text.unwrap_or("a panic without a message");
        Err(TableError::Internal(format!("a fault of twinsieve: {what}; report it, with the lines before this one")))
    })?)
}

fn values<T: Element>(py: Python<'_>, buffer: &PyBuffer<T>) -> PyResult<Vec<T>> {
    buffer.to_vec(py)
}

fn ordinals_of(py: Python<'_>, buffer: &PyBuffer<i64>) -> PyResult<Vec<u64>> {
    Ok(values(py, buffer)?.into_iter().map(|ordinal| ordinal as u64).collect())
}

/// The sieves in a buffer of two words a row; a last word alone is left out.
fn sieves_of(py: Python<'_>, buffer: &PyBuffer<u64>) -> PyResult<Vec<Sieve>> {
    Ok(values(py, buffer)?.chunks_exact(2).map(|words| [words[0], words[1]]).collect())
}

fn bytes_of<T: bytemuck::NoUninit>(py: Python<'_>, values: &[T]) -> Py<PyBytes> {
    PyBytes::new(py, bytemuck::cast_slice(values)).unbind()
}

/// Where the values of each of n questions begin, and the last ones end: int64[n + 1].
fn offsets_of(py: Python<'_>, ends: &[usize]) -> Py<PyBytes> {
    let offsets: Vec<i64> = std::iter::once(0).chain(ends.iter().map(|&end| end as i64)).collect();
    bytes_of(py, &offsets)
}

/// Rows within the radius of n fingerprints. offsets: int64[n + 1], rows: uint32[m], distances: uint8[m], as bytes.
#[pyclass(frozen, get_all, module = "dedup_service._native")]
struct NearRows {
    offsets: Py<PyBytes>,
    rows: Py<PyBytes>,
    distances: Py<PyBytes>,
}

/// Rows by a fingerprint of 64 bits, found by Hamming distance, exactly for 0 to 7 bits.
#[pyclass(module = "dedup_service._native")]
#[derive(Default)]
struct HammingIndex {
    index: hamming::HammingIndex,
}

#[pymethods]
impl HammingIndex {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn __len__(&self) -> usize {
        self.index.len()
    }

    fn insert(&mut self, py: Python<'_>, rows: PyBuffer<u32>, fingerprints: PyBuffer<u64>) -> PyResult<()> {
        let (rows, fingerprints) = (values(py, &rows)?, values(py, &fingerprints)?);
        work(py, || self.index.insert_batch(&rows, &fingerprints))
    }

    fn remove(&mut self, py: Python<'_>, rows: PyBuffer<u32>, fingerprints: PyBuffer<u64>) -> PyResult<()> {
        let (rows, fingerprints) = (values(py, &rows)?, values(py, &fingerprints)?);
        work(py, || self.index.remove_batch(&rows, &fingerprints))
    }

    fn probe(
        &self,
        py: Python<'_>,
        fingerprints: PyBuffer<u64>,
        radius: usize,
        most_identical: usize,
    ) -> PyResult<NearRows> {
        let queries = values(py, &fingerprints)?;
        let mut found = hamming::Found::default();
        work(py, || self.index.probe_batch(&queries, radius, most_identical, &mut found))?;
        let ends = found.ends();
        let rows: Vec<u32> = found.all().iter().map(|near| near.row).collect();
        let distances: Vec<u8> = found.all().iter().map(|near| near.distance).collect();
        Ok(NearRows { offsets: offsets_of(py, ends), rows: bytes_of(py, &rows), distances: bytes_of(py, &distances) })
    }

    /// Sizes: (rows, distinct fingerprints, bytes, largest bucket, split buckets, buckets of a table).
    fn statistics(&self) -> (usize, usize, usize, usize, usize, usize) {
        let sizes = self.index.statistics();
        let hamming::Statistics { entries, fingerprints, bytes, largest_bucket, split_buckets, buckets } = sizes;
        (entries, fingerprints, bytes, largest_bucket, split_buckets, buckets)
    }

    /// Work of all probes so far: (fingerprints probed, buckets read, entries compared).
    fn work(&self) -> (u64, u64, u64) {
        let work = self.index.work();
        (work.probes, work.buckets, work.entries)
    }
}

/// Rows by hashes of 64 bits.
#[pyclass(module = "dedup_service._native")]
#[derive(Default)]
struct HashRows {
    table: hash_rows::HashRows,
}

/// Rows of n hashes or pages. offsets: int64[n + 1], rows: uint32[m], as bytes.
#[pyclass(frozen, get_all, module = "dedup_service._native")]
struct RowsFound {
    offsets: Py<PyBytes>,
    rows: Py<PyBytes>,
}

fn pairs(py: Python<'_>, hashes: &PyBuffer<u64>, rows: &PyBuffer<u32>) -> PyResult<Vec<(u64, u32)>> {
    let (hashes, rows) = (values(py, hashes)?, values(py, rows)?);
    if hashes.len() != rows.len() {
        return Err(TableError::State(format!("{} hashes for {} rows", hashes.len(), rows.len())).into());
    }
    Ok(hashes.into_iter().zip(rows).collect())
}

#[pymethods]
impl HashRows {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn __len__(&self) -> usize {
        self.table.len()
    }

    #[getter]
    fn size_bytes(&self) -> usize {
        self.table.bytes()
    }

    fn rows(&self, hash: u64) -> Vec<u32> {
        self.table.rows(hash)
    }

    fn rows_many(&self, py: Python<'_>, hashes: PyBuffer<u64>) -> PyResult<RowsFound> {
        let hashes = values(py, &hashes)?;
        let (ends, rows) = work(py, || Ok(self.table.rows_many(&hashes)))?;
        Ok(RowsFound { offsets: offsets_of(py, &ends), rows: bytes_of(py, &rows) })
    }

    fn add(&mut self, py: Python<'_>, hashes: PyBuffer<u64>, rows: PyBuffer<u32>) -> PyResult<()> {
        let pairs = pairs(py, &hashes, &rows)?;
        work(py, || {
            self.table.add_many(&pairs);
            Ok(())
        })
    }

    fn remove(&mut self, py: Python<'_>, hashes: PyBuffer<u64>, rows: PyBuffer<u32>) -> PyResult<()> {
        let pairs = pairs(py, &hashes, &rows)?;
        work(py, || self.table.remove_many(&pairs))
    }
}

/// What n pages found in the cells, and where m changes went.
#[pyclass(frozen, get_all, module = "dedup_service._native")]
struct CellAnswers {
    offsets: Py<PyBytes>,
    rows: Py<PyBytes>,
    probed: Py<PyBytes>,
    paths: Vec<Py<PyBytes>>,
}

fn cell_answers(py: Python<'_>, found: &cells::Found, paths: &[Vec<u8>]) -> CellAnswers {
    let probed: Vec<i64> = found.probed.iter().map(|&probed| i64::from(probed)).collect();
    CellAnswers {
        offsets: offsets_of(py, &found.ends),
        rows: bytes_of(py, &found.rows),
        probed: bytes_of(py, &probed),
        paths: paths.iter().map(|path| bytes_of(py, path)).collect(),
    }
}

/// Rows by the keys of their pages.
#[pyclass(module = "dedup_service._native")]
struct CellIndex {
    index: cells::CellIndex,
    levels: usize,
}

/// Keys of pages in one buffer, `PARTS` · levels of each, with their sieves.
fn probes<'a>(keys: &'a [u32], sieves: &[Sieve], levels: usize) -> Vec<Probe<'a>> {
    let keys = keys.chunks_exact(cells::PARTS * levels);
    keys.zip(sieves).map(|(keys, &sieve)| Probe { keys, sieve }).collect()
}

#[pymethods]
impl CellIndex {
    #[new]
    fn new(slots: usize, levels: usize) -> PyResult<Self> {
        Ok(Self { index: cells::CellIndex::new(slots, levels)?, levels })
    }

    fn __len__(&self) -> usize {
        self.index.len()
    }

    fn restore(
        &mut self,
        py: Python<'_>,
        rows: PyBuffer<u32>,
        ordinals: PyBuffer<i64>,
        sieves: PyBuffer<u64>,
        paths: PyBackedBytes,
    ) -> PyResult<()> {
        let (rows, ordinals, sieves) = (values(py, &rows)?, ordinals_of(py, &ordinals)?, sieves_of(py, &sieves)?);
        work(py, || self.index.restore(&rows, &ordinals, &sieves, &paths))
    }

    /// Apply changes, and probe pages between them: page i after the first due[i] changes.
    ///
    /// rows, ordinals, removes (uint8), keys, sieves, paths: of changes. due, `page_keys`, `page_sieves`: of pages.
    #[allow(clippy::too_many_arguments)] // columns, until the decider that has them is here
    fn follow(
        &mut self,
        py: Python<'_>,
        rows: PyBuffer<u32>,
        ordinals: PyBuffer<i64>,
        removes: PyBuffer<u8>,
        keys: PyBuffer<u32>,
        sieves: PyBuffer<u64>,
        paths: Vec<PyBackedBytes>,
        due: PyBuffer<i64>,
        page_keys: PyBuffer<u32>,
        page_sieves: PyBuffer<u64>,
    ) -> PyResult<CellAnswers> {
        let (rows, ordinals, removes) = (values(py, &rows)?, ordinals_of(py, &ordinals)?, values(py, &removes)?);
        let (keys, sieves) = (values(py, &keys)?, sieves_of(py, &sieves)?);
        let due: Vec<usize> = values(py, &due)?.into_iter().map(|due| due.max(0) as usize).collect();
        let (page_keys, page_sieves) = (values(py, &page_keys)?, sieves_of(py, &page_sieves)?);
        let levels = self.levels;
        let (found, paths) = work(py, || {
            let pages = probes(&page_keys, &page_sieves, levels);
            let inserted = probes(&keys, &sieves, levels);
            let columns = rows.iter().zip(&ordinals).zip(&removes).zip(&inserted).zip(&paths);
            let changes: Vec<Change> = columns
                .map(|((((&row, &ordinal), &removes), &page), path)| match removes {
                    0 => Change::Insert { row, ordinal, page },
                    _ => Change::Remove { row, ordinal, path },
                })
                .collect();
            if changes.len() != rows.len() {
                return Err(TableError::State(format!("{} rows, {} changes", rows.len(), changes.len())));
            }
            self.index.follow(&changes, &due, &pages)
        })?;
        Ok(cell_answers(py, &found, &paths))
    }

    fn release_sieves(&mut self, first: u32, end: u32) {
        self.index.release_sieves(first..end);
    }

    /// Sizes: (rows in cells, cells, cells that turned rows away, bytes, bytes of sieves among them).
    fn statistics(&self) -> (usize, usize, usize, usize, usize) {
        let CellStatistics { entries, cells, overflowed, bytes, sieve_bytes } = self.index.statistics();
        (entries, cells, overflowed, bytes, sieve_bytes)
    }
}

fn is_finished() -> PyErr {
    TableError::State("the table was given away; fill another one".to_owned()).into()
}

/// Many rows for an empty `HammingIndex`.
#[pyclass(module = "dedup_service._native")]
#[derive(Default)]
struct HammingFilling {
    rows: Vec<(u32, u64)>,
}

#[pymethods]
impl HammingFilling {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn add(&mut self, py: Python<'_>, rows: PyBuffer<u32>, fingerprints: PyBuffer<u64>) -> PyResult<()> {
        let pairs = pairs(py, &fingerprints, &rows)?;
        self.rows.extend(pairs.into_iter().map(|(fingerprint, row)| (row, fingerprint)));
        Ok(())
    }

    fn finish(&mut self, py: Python<'_>) -> PyResult<HammingIndex> {
        let rows = std::mem::take(&mut self.rows);
        Ok(HammingIndex { index: work(py, || hamming::HammingIndex::filled(rows))? })
    }
}

/// Many rows for an empty `HashRows`.
#[pyclass(module = "dedup_service._native")]
struct HashFilling {
    filling: Option<hash_rows::HashFilling>,
}

#[pymethods]
impl HashFilling {
    #[new]
    fn new(expected: usize) -> Self {
        Self { filling: Some(hash_rows::HashFilling::new(expected)) }
    }

    fn add(&mut self, py: Python<'_>, hashes: PyBuffer<u64>, rows: PyBuffer<u32>) -> PyResult<()> {
        let pairs = pairs(py, &hashes, &rows)?;
        let filling = self.filling.as_mut().ok_or_else(is_finished)?;
        work(py, || {
            filling.add(pairs);
            Ok(())
        })
    }

    fn finish(&mut self, py: Python<'_>, threads: usize) -> PyResult<HashRows> {
        let filling = self.filling.take().ok_or_else(is_finished)?;
        Ok(HashRows { table: work(py, || Ok(filling.finish(threads)))? })
    }
}

/// Many rows for an empty `CellIndex`.
#[pyclass(module = "dedup_service._native")]
struct CellFilling {
    filling: Option<cells::CellFilling>,
    levels: usize,
}

#[pymethods]
impl CellFilling {
    #[new]
    fn new(slots: usize, levels: usize, expected: usize) -> PyResult<Self> {
        Ok(Self { filling: Some(cells::CellFilling::new(slots, levels, expected)?), levels })
    }

    #[allow(clippy::too_many_arguments)] // columns, as of `follow`
    fn add(
        &mut self,
        py: Python<'_>,
        rows: PyBuffer<u32>,
        ordinals: PyBuffer<i64>,
        sieves: PyBuffer<u64>,
        data: PyBackedBytes,
        starts: PyBuffer<i64>,
        ends: PyBuffer<i64>,
    ) -> PyResult<()> {
        let (rows, ordinals, sieves) = (values(py, &rows)?, ordinals_of(py, &ordinals)?, sieves_of(py, &sieves)?);
        let (starts, ends) = (values(py, &starts)?, values(py, &ends)?);
        let filling = self.filling.as_mut().ok_or_else(is_finished)?;
        work(py, || {
            let mut paths = Vec::with_capacity(64 * rows.len());
            for (&start, &end) in starts.iter().zip(&ends) {
                let path = data.get(start.max(0) as usize..end.max(0) as usize);
                paths.extend_from_slice(path.ok_or_else(|| TableError::State(format!("no path at {start} to {end}")))?);
            }
            filling.add(&rows, &ordinals, &sieves, &paths)
        })
    }

    fn finish(&mut self, py: Python<'_>, threads: usize) -> PyResult<CellIndex> {
        let filling = self.filling.take().ok_or_else(is_finished)?;
        Ok(CellIndex { index: work(py, || Ok(filling.finish(threads)))?, levels: self.levels })
    }
}

/// In how many bits the block of each table and the next one may differ; -1 if the table is not asked.
#[pyfunction]
fn block_bounds(radius: usize) -> PyResult<Vec<(i64, i64)>> {
    if radius > blocks::MAX_RADIUS {
        let message = format!("radius {radius} is outside 0..{}", blocks::MAX_RADIUS);
        return Err(TableError::Configuration(message).into());
    }
    let bounds = blocks::Blocks::new(u64::MAX).bounds(radius);
    Ok(bounds.iter().map(|&(block, lane)| (block.map_or(-1, i64::from), i64::from(lane))).collect())
}

/// Panic as a fault of this module would, for tests.
#[pyfunction]
fn panic_on_purpose(py: Python<'_>, message: String) -> PyResult<()> {
    work(py, move || std::panic::panic_any(message))
}

/// The tables of twinsieve.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{
        CellAnswers, CellFilling, CellIndex, HammingFilling, HammingIndex, HashFilling, HashRows, NearRows, RowsFound,
        block_bounds, panic_on_purpose,
    };
    #[pymodule_export]
    const CROWD: usize = crate::tables::hash_rows::CROWD;
}
