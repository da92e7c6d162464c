//! The module `dedup_service._native`.

use pyo3::prelude::*;

#[pymodule]
mod _native {}
