//! The preparation of pages as Python sees it: pages go in, what is made of their texts comes out.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyString};

use super::text::{Segmenter, Text};
use super::work;
use crate::error::TableError;
use crate::features::cutter::{Cutter, IcuWords};
use crate::features::lexicon::{Lexicon, MarkerBy, WordLists, WordNeeds};
use crate::features::word_hash::WordHash;
use crate::features::words::Weights;
use crate::prepare;
use crate::segmentation::scripts::Language;

/// What is read of a `core.page.Page`.
#[derive(FromPyObject)]
struct Page {
    title: Text,
    text: Text,
    lang: Option<Text>,
    keywords: Vec<Text>,
    tags: Vec<Text>,
    references: Vec<Text>,
    problem: Option<Py<PyString>>,
}

impl Page {
    fn page(self) -> prepare::Page<Text> {
        prepare::Page {
            title: self.title,
            text: self.text,
            language: Language::of_tag(self.lang.as_ref().map(AsRef::as_ref)),
            metadata: self.keywords.into_iter().chain(self.tags).chain(self.references).collect(),
        }
    }
}

/// What is read of `core.space.Space.to_dict`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Space {
    scheme: Scheme,
    bits: usize,
    shingle: usize,
    least_letters: usize,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
#[allow(clippy::struct_excessive_bools)] // as the scheme has them
struct Scheme {
    tf: String,
    idf: bool,
    levels: bool,
    title: f64,
    marker: f64,
    marker_by: String,
    pos: bool,
    length: String,
    combine: String,
    with_title: bool,
    least_chars: usize,
    hash: String,
}

impl Scheme {
    fn needs(&self) -> WordNeeds {
        let is_off = self.marker.total_cmp(&1.0).is_eq();
        let marker_by = match self.marker_by.as_str() {
            _ if is_off => MarkerBy::Nothing,
            "word" => MarkerBy::Word,
            _ => MarkerBy::Sentence,
        };
        WordNeeds { with_title: self.with_title, marker_by, min_chars: self.least_chars }
    }

    /// Return the weights, if they are of the usual scheme.
    fn weights(&self, is_wide: bool) -> Option<Weights> {
        let is_usual = self.tf == "log" && !self.levels && !self.pos && self.length.is_empty();
        is_usual.then(|| Weights {
            by_idf: self.idf,
            title: self.title,
            marker: self.marker,
            is_product: self.combine == "product",
            hash: if self.hash == "java" { WordHash::Java } else { WordHash::Xxh3 },
            is_wide,
        })
    }
}

/// Prepares the pages of a space.
#[pyclass(frozen, module = "dedup_service._native")]
pub(super) struct Preparer {
    preparer: prepare::Preparer,
}

#[pymethods]
impl Preparer {
    #[new]
    #[pyo3(signature = (space, segmenter, *, idf, stop_words, markers, icu = None))]
    fn new(
        py: Python<'_>,
        space: &Bound<'_, PyAny>,
        segmenter: &Segmenter,
        idf: PyBackedStr,
        stop_words: Vec<String>,
        markers: Vec<String>,
        icu: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let Space { scheme, bits, shingle, least_letters } = space.call_method0("to_dict")?.extract()?;
        if shingle == 0 || ![64, 128].contains(&bits) {
            let expected = "a space has n-grams of a letter or more, and fingerprints of 64 or 128 bits";
            return Err(TableError::Configuration(format!("{expected}, got {shingle} and {bits}")).into());
        }
        work(py, || {
            let cutter = Cutter::new(segmenter.segmenter.clone(), icu.map(icu_words));
            let lists = WordLists { idf: &idf, stop_words: &stop_words, markers: &markers };
            let lexicon = Lexicon::new(&lists, scheme.needs(), &cutter)?;
            let is_wide = bits == 128;
            let weights = scheme.weights(is_wide);
            let (ngram, min_letters) = (shingle, least_letters);
            let preparer = prepare::Preparer { cutter, lexicon, weights, is_wide, ngram, min_letters };
            Ok::<_, TableError>(Self { preparer })
        })
    }

    #[pyo3(signature = (pages, threads = 1))]
    fn prepare(&self, py: Python<'_>, pages: Vec<Page>, threads: usize) -> PyResult<Vec<PreparedText>> {
        let problems: Vec<_> =
            pages.iter().map(|page| page.problem.as_ref().map(|problem| problem.clone_ref(py))).collect();
        let pages: Vec<prepare::Page<Text>> = pages.into_iter().map(Page::page).collect();
        let prepared = work(py, || self.preparer.prepare(&pages, threads))?;
        Ok(prepared.into_iter().zip(problems).map(|(made, problem)| PreparedText::of(py, made, problem)).collect())
    }

    fn words(&self, py: Python<'_>, page: Page) -> PyResult<Vec<Word>> {
        let page = page.page();
        let words = work(py, || self.preparer.words(&page))?;
        Ok(words
            .into_iter()
            .map(|(word, counted)| Word {
                word,
                count: counted.count,
                idf: counted.idf,
                in_title: counted.in_title,
                is_marked: counted.is_marked,
                is_chinese: counted.is_chinese,
            })
            .collect())
    }
}

/// What is made of the texts of a page.
#[pyclass(frozen, get_all, module = "dedup_service._native")]
pub(super) struct PreparedText {
    words: Option<Fingerprint>,
    body: Option<Fingerprint>,
    body_hash: Option<u64>,
    text_hash: Option<u64>,
    evidence: Py<PyBytes>,
    keys: Py<PyBytes>,
    reason: Option<Py<PyString>>,
}

impl PreparedText {
    fn of(py: Python<'_>, made: prepare::Prepared, problem: Option<Py<PyString>>) -> Self {
        let too_little = made.too_little.map(|reason| PyString::new(py, &reason.to_string()).unbind());
        let keys = if problem.is_some() { &[][..] } else { &made.keys };
        Self {
            words: made.words.map(Fingerprint),
            body: made.body.map(Fingerprint),
            body_hash: made.body_hash,
            text_hash: made.text_hash,
            evidence: PyBytes::new(py, &made.evidence).unbind(),
            keys: PyBytes::new(py, keys).unbind(),
            reason: problem.or(too_little),
        }
    }
}

/// A fingerprint of 64 or 128 bits; the conversion of large integers takes long.
#[derive(Clone, Copy)]
struct Fingerprint(u128);

impl<'py> IntoPyObject<'py> for Fingerprint {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Ok(match u64::try_from(self.0) {
            Ok(low) => low.into_pyobject(py)?.into_any(),
            Err(_) => self.0.into_pyobject(py)?.into_any(),
        })
    }
}

/// A distinct word of a page that is a feature.
#[allow(clippy::struct_field_names)] // as Python sees it
#[pyclass(frozen, get_all, module = "dedup_service._native")]
pub(super) struct Word {
    word: String,
    count: u32,
    idf: f64,
    in_title: bool,
    is_marked: bool,
    is_chinese: bool,
}

/// Return ICU's words by a function of Python that cuts a text into strings.
fn icu_words(cut: Py<PyAny>) -> IcuWords {
    Box::new(move |text| {
        let lengths = |py: Python<'_>| {
            let words: Vec<Text> = cut.call1(py, (text,))?.extract(py)?;
            PyResult::Ok(words.iter().map(|word| word.as_ref().chars().count()).collect())
        };
        Python::attach(lengths).map_err(|error| TableError::Internal(format!("ICU cannot cut a text: {error}")))
    })
}
