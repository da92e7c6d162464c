//! Hosts' own text as Python sees it: calls of some microseconds, for which the interpreter lock stays held.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::bytes_of;
use crate::host_text;

/// Learns from pages in their order which sentences are their hosts' own text.
#[pyclass(module = "dedup_service._native")]
#[derive(Clone)]
pub(super) struct HostText {
    pub(super) host_text: host_text::HostText,
}

#[pymethods]
impl HostText {
    #[new]
    #[pyo3(signature = (state = None))]
    fn new(state: Option<PyBackedBytes>) -> PyResult<Self> {
        let state = state.as_deref().unwrap_or_default();
        Ok(Self { host_text: host_text::HostText::from_state(state)? })
    }

    fn __len__(&self) -> usize {
        self.host_text.len()
    }

    #[getter]
    fn size_bytes(&self) -> usize {
        self.host_text.size_bytes()
    }

    fn learn(&mut self, host: u64, terms: Vec<u16>, keys: PyBackedBytes, sentences: Vec<u32>) {
        let terms: Vec<u8> = terms.into_iter().flat_map(u16::to_le_bytes).collect();
        self.host_text.learn(host, &terms, &keys, &sentences);
    }

    fn common(&self, host: u64, sentences: Vec<u32>) -> Vec<bool> {
        self.host_text.are_common(host, &sentences).into_vec()
    }

    fn common_to_pair(&self, one: u64, ours: Vec<u32>, other: u64, theirs: Vec<u32>) -> Vec<u32> {
        self.host_text.common_to_pair(one, &ours, other, &theirs).into_vec()
    }

    fn copy(&self) -> Self {
        self.clone()
    }

    fn state(&self, py: Python<'_>) -> Py<PyBytes> {
        bytes_of(py, &self.host_text.state())
    }
}
