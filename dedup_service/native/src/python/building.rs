//! Tables that are built from a store, as Python sees them.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use super::rule::Rule;
use super::store::PageStore;
use super::work;
use crate::building;
use crate::decider::{Tables, radii_of};
use crate::error::TableError;

/// The tables of the live rows of a store, which does not change meanwhile.
#[pyclass(frozen, module = "dedup_service._native")]
pub(super) struct TablesBuild {
    build: Mutex<Option<building::TablesBuild>>,
    store: Py<PageStore>,
    radii: [Option<usize>; 2],
}

fn is_finished() -> PyErr {
    TableError::State("the tables were given away, or could not be built".to_owned()).into()
}

#[pymethods]
impl TablesBuild {
    #[new]
    fn new(
        py: Python<'_>,
        store: Py<PageStore>,
        rule: &Rule,
        slots: usize,
        levels: usize,
        threads: usize,
    ) -> PyResult<Self> {
        let radii = radii_of(&rule.rule);
        let (hashes, near) = (Tables::hashed(), Tables::indexed(radii));
        let begin = |store: &_| Ok(building::TablesBuild::new(store, (slots, levels), &hashes, &near, threads));
        let build = store.get().read(py, begin)??;
        Ok(Self { build: Mutex::new(Some(build)), store, radii })
    }

    fn step(&self, py: Python<'_>, rows: u32) -> PyResult<u64> {
        let mut build = self.taken().ok_or_else(is_finished)?;
        let (mut build, done) = self.store.get().read(py, |store| {
            let done = build.step(store, rows)?;
            Ok((build, done))
        })?;
        let lost = build.take_lost();
        if !lost.is_empty() {
            self.store.get().change(py, |store| store.remove(&lost))?;
        }
        *self.build.lock().unwrap_or_else(PoisonError::into_inner) = Some(build);
        Ok(done)
    }
}

impl TablesBuild {
    /// Return the tables, which are gone for Python then.
    pub(super) fn finished(&self, py: Python<'_>) -> PyResult<Tables> {
        let build = self.taken().ok_or_else(is_finished)?;
        work(py, || Ok::<_, TableError>(Tables::of(build.finish(), self.radii)))
    }

    fn taken(&self) -> Option<building::TablesBuild> {
        self.build.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
