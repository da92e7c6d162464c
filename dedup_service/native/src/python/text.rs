//! Folding and words as Python sees them, a text at a time: for schemes that are formulas, for `explain` and for tests.
//!
//! Lone surrogates become U+FFFD, and two that belong together the character that they are.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyString};

use super::{bytes_of, work};
use crate::error::{Result, TableError};
use crate::evidence::sentences::each_sentence;
use crate::segmentation::jieba::JiebaCutter;
use crate::segmentation::scripts::{self, Language};
use crate::segmentation::{self, Segment};
use crate::text::exact_form::{exact_hashes, write_exact_form};
use crate::text::ngrams::NgramFinder;
use crate::text::page_text::{self, BodyAndTitle};
use crate::text::{crowded_tags, fold as folding, repost_marks};

/// The text of a Python string: the one that it has in UTF-8, or another without its surrogates.
pub(super) enum Text {
    OfString(PyBackedStr),
    Replaced(String),
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        match self {
            Self::OfString(text) => text,
            Self::Replaced(text) => text,
        }
    }
}

impl Text {
    fn points(&self) -> Vec<u32> {
        self.as_ref().chars().map(u32::from).collect()
    }
}

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let string = object.cast::<PyString>()?;
        if let Ok(text) = PyBackedStr::try_from(string.to_owned()) {
            return Ok(Self::OfString(text));
        }
        let encoded = string.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
        let bytes = encoded.cast::<PyBytes>()?.as_bytes().chunks_exact(2);
        let units: Vec<u16> = bytes.map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
        Ok(Self::Replaced(String::from_utf16_lossy(&units)))
    }
}

fn text_of(points: &[u32]) -> String {
    points.iter().map(|&code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn texts_of(points: &[u32], segments: Vec<Segment>) -> Vec<String> {
    segments.into_iter().map(|segment| text_of(&points[segment])).collect()
}

/// Return what `task` returns, without the interpreter lock; a panic becomes an error.
fn unlocked<T: Send>(py: Python<'_>, task: impl FnOnce() -> T + Send) -> PyResult<T> {
    work(py, || Ok::<T, TableError>(task()))
}

#[pyfunction]
pub(super) fn crowding_attributes(py: Python<'_>, page: &[u8], limit: usize) -> PyResult<Vec<(usize, usize)>> {
    unlocked(py, || {
        let found = crowded_tags::crowding_attributes(page, limit).into_iter();
        found.map(|attributes| (attributes.start, attributes.end)).collect()
    })
}

#[pyfunction]
pub(super) fn fold(py: Python<'_>, text: Text) -> PyResult<String> {
    unlocked(py, || text_of(&folding::fold(text.as_ref())))
}

#[pyfunction]
pub(super) fn exact_form(py: Python<'_>, folded: Text) -> PyResult<String> {
    unlocked(py, || {
        let mut form = Vec::new();
        write_exact_form(&folded.points(), &mut form);
        text_of(&form)
    })
}

#[pyfunction]
pub(super) fn between_repost_marks(py: Python<'_>, folded: Text) -> PyResult<(usize, usize)> {
    unlocked(py, || {
        let between = repost_marks::between_repost_marks(&folded.points());
        (between.start, between.end)
    })
}

#[pyfunction]
pub(super) fn distinct_ngrams(py: Python<'_>, letters: Text, n: usize) -> PyResult<Py<PyBytes>> {
    let hashes = unlocked(py, || {
        let mut hashes = Vec::new();
        NgramFinder::default().find(&letters.points(), n, &mut hashes);
        hashes
    })?;
    Ok(bytes_of(py, &hashes))
}

/// The value of a sentence, the letters before it, and those up to its end.
type Sentence = (u32, u64, u64);

#[pyfunction]
pub(super) fn sentences_in_order(py: Python<'_>, folded: Text) -> PyResult<(Vec<Sentence>, u64)> {
    unlocked(py, || {
        let mut found = Vec::new();
        let letters = each_sentence(&folded.points(), |value, place| found.push((value, place.start, place.end)));
        (found, letters)
    })
}

#[pyfunction]
#[pyo3(signature = (folded, language = None))]
pub(super) fn is_chinese(py: Python<'_>, folded: Text, language: Option<PyBackedStr>) -> PyResult<bool> {
    unlocked(py, || scripts::is_chinese(&folded.points(), Language::of_tag(language.as_deref())))
}

#[pyfunction]
pub(super) fn cut_at_boundaries(py: Python<'_>, folded: Text) -> PyResult<Vec<String>> {
    unlocked(py, || {
        let (points, mut segments) = (folded.points(), Vec::new());
        segmentation::Segmenter::cut_at_boundaries(&points, &mut segments);
        texts_of(&points, segments)
    })
}

/// The texts of a page, folded.
#[pyclass(frozen, module = "dedup_service._native")]
pub(super) struct PageText {
    text: page_text::PageText,
}

#[pymethods]
impl PageText {
    #[new]
    fn new(py: Python<'_>, title: Text, body: Text) -> PyResult<Self> {
        let text = unlocked(py, || page_text::PageText::of(title.as_ref(), body.as_ref()))?;
        Ok(Self { text })
    }

    #[getter]
    fn title(&self) -> String {
        text_of(self.text.folded.title())
    }

    #[getter]
    fn body(&self) -> String {
        text_of(self.text.folded.body())
    }

    #[getter]
    fn letters(&self) -> String {
        text_of(&self.text.folded.letters())
    }

    #[getter]
    fn exact(&self) -> (String, String) {
        let exact: &BodyAndTitle = self.text.exact();
        (text_of(exact.title()), text_of(exact.body()))
    }

    #[getter]
    fn exact_hashes(&self) -> (Option<u64>, Option<u64>) {
        let hashes = exact_hashes(self.text.exact());
        (hashes.body, hashes.text)
    }
}

/// Cuts folded texts into words.
#[pyclass(frozen, module = "dedup_service._native")]
pub(super) struct Segmenter {
    pub(super) segmenter: segmentation::Segmenter,
}

#[pymethods]
impl Segmenter {
    #[new]
    #[pyo3(signature = (jieba, cache = None, user_words = Vec::new()))]
    fn new(py: Python<'_>, jieba: PathBuf, cache: Option<PathBuf>, user_words: Vec<String>) -> PyResult<Self> {
        let open = || -> Result<Self> {
            Ok(Self { segmenter: segmentation::Segmenter::open(&jieba, cache.as_deref(), &user_words)? })
        };
        work(py, open)
    }

    #[pyo3(signature = (folded, language = None))]
    fn cut(&self, py: Python<'_>, folded: Text, language: Option<PyBackedStr>) -> PyResult<Vec<String>> {
        unlocked(py, || {
            let (points, mut segments) = (folded.points(), Vec::new());
            let language = Language::of_tag(language.as_deref());
            self.segmenter.cut(&points, language, &mut JiebaCutter::default(), &mut segments);
            texts_of(&points, segments)
        })
    }

    fn cut_chinese(&self, py: Python<'_>, folded: Text) -> PyResult<Vec<String>> {
        unlocked(py, || {
            let (points, mut segments) = (folded.points(), Vec::new());
            self.segmenter.cut_chinese(&points, &mut JiebaCutter::default(), &mut segments);
            texts_of(&points, segments)
        })
    }
}
