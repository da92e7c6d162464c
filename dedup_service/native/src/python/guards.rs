//! The guards' state as Python sees it.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::bytes_of;
use crate::guards::{DuplicateClusters, MAX_CLUSTERS};

#[pyfunction]
pub(super) fn clusters_after(py: Python<'_>, groups: PyBackedBytes, sequences: i64) -> PyResult<Py<PyBytes>> {
    let clusters = DuplicateClusters::from_packed(&groups, MAX_CLUSTERS)?;
    Ok(bytes_of(py, &clusters.pack_after(sequences)))
}
