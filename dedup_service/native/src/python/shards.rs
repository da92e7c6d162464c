//! The entries of a shard as Python sees them. What it tells the resolver are bytes that Python carries and never reads.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::building::TablesBuild;
use super::decider::{Entry, Page, SizesOfTables, opened, sizes_of};
use super::rule::Rule;
use super::store::PageStore;
use super::work;
use crate::decider::{self, DeciderError, Told};

/// Bytes for the resolver, and the sequences of the entries that they name, ascending.
type PyTold = (Py<PyBytes>, Vec<i64>);

fn of_told(py: Python<'_>, told: Told) -> PyTold {
    (PyBytes::new(py, &told.bytes).unbind(), told.sequences)
}

/// The entries of a shard.
#[pyclass(module = "dedup_service._native")]
pub(super) struct ShardEntries(decider::Shard);

#[pymethods]
impl ShardEntries {
    #[new]
    #[pyo3(signature = (rule, *, window, slots, levels, store = None, tables = None))]
    fn new(
        py: Python<'_>,
        rule: &Rule,
        window: u64,
        slots: usize,
        levels: usize,
        store: Option<&PageStore>,
        tables: Option<&TablesBuild>,
    ) -> PyResult<Self> {
        let settled = opened(py, store, tables, window, slots, levels)?;
        Ok(Self(work(py, || decider::Shard::new(rule.rule.clone(), settled))?))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn set_rule(&mut self, py: Python<'_>, rule: &Rule) -> PyResult<()> {
        work(py, || self.0.set_rule(rule.rule.clone()))
    }

    fn keep(&mut self, py: Python<'_>, pages: Vec<PyRef<'_, Entry>>) -> PyResult<()> {
        let pages: Vec<decider::Entry> = pages.iter().map(|page| page.entry(py)).collect();
        work(py, || {
            self.0.keep(&pages);
            Ok::<_, DeciderError>(())
        })
    }

    fn remove(&mut self, py: Python<'_>, sequence: i64, after: u64) -> PyResult<()> {
        work(py, || self.0.remove(sequence, after))
    }

    fn answer(
        &mut self,
        py: Python<'_>,
        first: u64,
        pages: Vec<PyRef<'_, Page>>,
        targets: Vec<Option<u64>>,
    ) -> PyResult<Vec<PyTold>> {
        let pages: Vec<decider::Page> = pages.iter().map(|page| page.page()).collect();
        let told = work(py, || self.0.answer(first, &pages, &targets))?;
        Ok(told.into_iter().map(|told| of_told(py, told)).collect())
    }

    fn settle(&mut self, py: Python<'_>, ordinal: u64) -> PyResult<()> {
        work(py, || self.0.settle(ordinal))
    }

    fn oldest(&self, py: Python<'_>, most: usize) -> PyResult<(Py<PyBytes>, bool)> {
        let (bytes, is_all) = work(py, || self.0.oldest(most))?;
        Ok((PyBytes::new(py, &bytes).unbind(), is_all))
    }

    fn first(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        work(py, || self.0.first())
    }

    fn holds(&mut self, py: Python<'_>, sequence: i64) -> PyResult<bool> {
        work(py, || self.0.holds(sequence))
    }

    fn at_url(&self, py: Python<'_>, url: u64) -> PyResult<PyTold> {
        Ok(of_told(py, work(py, || self.0.at_url(url))?))
    }

    fn at(&mut self, py: Python<'_>, sequences: Vec<i64>) -> PyResult<PyTold> {
        Ok(of_told(py, work(py, || self.0.at(&sequences))?))
    }

    fn sizes(&self) -> SizesOfTables {
        sizes_of(self.0.sizes())
    }
}

#[pyfunction]
pub(super) fn pages_of_shard(
    py: Python<'_>,
    pages: Vec<PyRef<'_, Page>>,
    first: u64,
    index: u64,
    of: u64,
) -> Vec<Entry> {
    let own = (first..).zip(&pages).filter(|(ordinal, _)| ordinal.checked_rem(of) == index.checked_sub(1));
    own.map(|(ordinal, page)| Entry::of(py, &page.page().entry(ordinal))).collect()
}

#[pyfunction]
pub(super) fn packed_entries(py: Python<'_>, entries: Vec<PyRef<'_, Entry>>) -> Py<PyBytes> {
    let entries: Vec<decider::Entry> = entries.iter().map(|entry| entry.entry(py)).collect();
    PyBytes::new(py, &decider::encode_entries(&entries)).unbind()
}

#[pyfunction]
pub(super) fn unpacked_entries(py: Python<'_>, packed: PyBackedBytes) -> PyResult<Vec<Entry>> {
    let entries = decider::decode_entries(&packed)?;
    Ok(entries.iter().map(|entry| Entry::of(py, entry)).collect())
}

#[pyfunction]
pub(super) fn found_in_answer(answer: PyBackedBytes) -> PyResult<Vec<Vec<i64>>> {
    Ok(decider::found_in(&answer)?)
}
