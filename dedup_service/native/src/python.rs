//! The module `dedup_service._native`: lists come in, lists, bytes and small objects go out.
//!
//! What is returned as bytes has native byte order. The interpreter lock is released while a batch is worked on.
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

fn bytes_of<T: bytemuck::NoUninit>(py: Python<'_>, values: &[T]) -> Py<PyBytes> {
    PyBytes::new(py, bytemuck::cast_slice(values)).unbind()
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

    fn insert(&mut self, py: Python<'_>, rows: Vec<u32>, fingerprints: Vec<u64>) -> PyResult<()> {
        work(py, || self.index.insert_batch(&rows, &fingerprints))
    }

    fn remove(&mut self, py: Python<'_>, rows: Vec<u32>, fingerprints: Vec<u64>) -> PyResult<()> {
        work(py, || self.index.remove_batch(&rows, &fingerprints))
    }

    fn probe(
        &self,
        py: Python<'_>,
        fingerprints: Vec<u64>,
        radius: usize,
        most_identical: usize,
    ) -> PyResult<Vec<Vec<(u8, u32)>>> {
        let mut found = hamming::Found::default();
        work(py, || self.index.probe_batch(&fingerprints, radius, most_identical, &mut found))?;
        let mut start = 0;
        let near = |&end: &usize| {
            let of_one = &found.all()[std::mem::replace(&mut start, end)..end];
            of_one.iter().map(|near| (near.distance, near.row)).collect()
        };
        Ok(found.ends().iter().map(near).collect())
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
        PageText, Segmenter, between_repost_marks, crowding_attributes, cut_at_boundaries, distinct_ngrams, exact_form,
        fold, is_chinese, sentences_in_order,
    };
    #[pymodule_export]
    use super::{HammingIndex, block_bounds, panic_on_purpose};
}
