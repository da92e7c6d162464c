//! The module `dedup_service._native`: buffers come in, bytes and small objects go out.
//!
//! Numbers come in any object with a buffer of that type, such as an array of numpy. What is returned as bytes has
//! native byte order. The interpreter lock is released while a batch is worked on.
//!
//! `_native.pyi` describes each class, method and function.

#![allow(clippy::needless_pass_by_value)] // arguments are taken from Python by value

mod building;
mod decider;
mod guards;
mod host_text;
mod prepare;
mod rule;
mod shards;
mod store;
mod text;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::decider::message_of;
use crate::error::TableError;
use crate::tables::{blocks, hamming};

impl From<TableError> for PyErr {
    fn from(error: TableError) -> Self {
        let (name, message) = match error {
            TableError::Configuration(message) => ("ConfigurationError", message),
            TableError::State(message) => ("StateError", message),
            TableError::Internal(message) => ("InternalError", message),
        };
        raised("dedup_service.core.errors", name, message)
    }
}

/// Return an exception of a class of Python.
fn raised(module: &str, name: &str, message: String) -> PyErr {
    Python::attach(|py| {
        let raised = py.import(module).and_then(|errors| errors.getattr(name)?.call1((message,)));
        raised.map_or_else(|error| error, PyErr::from_value)
    })
}

/// Work with the interpreter lock released; a panic becomes an error.
fn work<T: Send, E: Into<PyErr> + Send>(
    py: Python<'_>,
    task: impl FnOnce() -> std::result::Result<T, E> + Send,
) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(task)));
    let failed = |panic: Box<dyn Any + Send>| Err(TableError::Internal(message_of(&*panic)).into());
    done.map_or_else(failed, |done| done.map_err(Into::into))
}

fn values<T: Element>(py: Python<'_>, buffer: &PyBuffer<T>) -> PyResult<Vec<T>> {
    buffer.to_vec(py)
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

    fn statistics(&self) -> (usize, usize, usize, usize, usize, usize) {
        let sizes = self.index.statistics();
        let hamming::Statistics { entries, fingerprints, bytes, largest_bucket, split_buckets, buckets } = sizes;
        (entries, fingerprints, bytes, largest_bucket, split_buckets, buckets)
    }

    fn work(&self) -> (u64, u64, u64) {
        let work = self.index.work();
        (work.probes, work.buckets, work.entries)
    }
}

#[pyfunction]
fn block_bounds(radius: usize) -> PyResult<Vec<(i64, i64)>> {
    if radius > blocks::MAX_RADIUS {
        let message = format!("radius {radius} is outside 0..{}", blocks::MAX_RADIUS);
        return Err(TableError::Configuration(message).into());
    }
    let bounds = blocks::Blocks::new(u64::MAX).bounds(radius);
    Ok(bounds.iter().map(|&(block, lane)| (block.map_or(-1, i64::from), i64::from(lane))).collect())
}

#[pyfunction]
fn panic_on_purpose(py: Python<'_>, message: String) -> PyResult<()> {
    work(py, move || -> Result<(), TableError> { std::panic::panic_any(message) })
}

/// The preparation of pages, the tables and the store of twinsieve.
#[pymodule]
mod _native {
    #[pymodule_export]
    const CHARACTER_TABLES: &str = crate::characters::VERSION;

    #[pymodule_export]
    use super::building::TablesBuild;
    #[pymodule_export]
    use super::decider::{Decided, Decider, Entry, Page, StateCopy, promising};
    #[pymodule_export]
    use super::guards::clusters_after;
    #[pymodule_export]
    use super::host_text::HostText;
    #[pymodule_export]
    use super::prepare::{PreparedText, Preparer, Word};
    #[pymodule_export]
    use super::rule::{ComparedPages, Rule, score_of, similarity};
    #[pymodule_export]
    use super::shards::{ShardEntries, found_in_answer, packed_entries, pages_of_shard, unpacked_entries};
    #[pymodule_export]
    use super::store::{Manifest, PageStore, PendingCommit, StoreLabel, read_commit, read_manifest};
    #[pymodule_export]
    use super::text::{
        PageText, Segmenter, between_repost_marks, cut_at_boundaries, distinct_ngrams, exact_form, fold, is_chinese,
        sentences_in_order,
    };
    #[pymodule_export]
    use super::{HammingIndex, NearRows, block_bounds, panic_on_purpose};
}
