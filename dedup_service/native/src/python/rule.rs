//! The rule as Python sees it: compiled from a `MatchRule`, which has been validated there.

use pyo3::conversion::{FromPyObject, FromPyObjectOwned};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;

use super::decider::Entry;
use super::work;
use crate::error::TableError;
use crate::evidence::Evidence;
use crate::guards::Guards;
use crate::rule::{self, AT_LEAST, AT_MOST, Compared, Condition, Row};
use crate::similarity::{Combined, Distance, Similarity};
use crate::stream::score::Card;

/// A rule, compiled.
#[pyclass(frozen, module = "dedup_service._native")]
pub(super) struct Rule {
    pub(super) rule: rule::Rule,
}

/// What a rule says of a candidate. score: of a match, 0 to 1, None of a near miss. reason: of a verdict; that of a near
/// miss ends with the kept page's name.
#[pyclass(frozen, get_all, module = "dedup_service._native")]
pub(super) struct ComparedPages {
    score: Option<f64>,
    reason: String,
}

#[pymethods]
impl Rule {
    #[new]
    fn new(rule: &Bound<'_, PyAny>) -> PyResult<Self> {
        let conditions = items(rule, "conditions")?;
        let conditions = conditions.iter().map(|of| Ok(Condition::new(field(of, "words")?, field(of, "body")?)?));
        let combined: Option<Bound<'_, PyAny>> = field(rule, "combined")?;
        let combined = combined.map(|of| Ok::<_, PyErr>(Combined::new(whole(&of, "mu_thousandths")?)?)).transpose()?;
        let rows = items(rule, "verified")?.iter().map(row_of).collect::<PyResult<_>>()?;
        let bounds: Bound<'_, PyAny> = field(rule, "guards")?;
        let guards = Guards {
            max_pages: whole(&bounds, "max_pages")?,
            max_hosts: whole(&bounds, "max_hosts")?,
            max_titles: whole(&bounds, "max_titles")?,
            surge_percent: whole(&bounds, "surge_percent")?,
        };
        let (conditions, keys) = (conditions.collect::<PyResult<_>>()?, field(rule, "keys")?);
        let card = card_of(&field(rule, "card")?)?;
        Ok(Self { rule: rule::Rule::new(conditions, combined, keys, rows, card, guards)? })
    }

    #[getter]
    fn min_rough_jaccard(&self) -> f64 {
        self.rule.min_rough_jaccard()
    }

    fn compare(&self, py: Python<'_>, kept: &Entry, page: &Entry, common: Vec<u32>) -> PyResult<Option<ComparedPages>> {
        let (ours, theirs, same_host) = (kept.side(py), page.side(py), kept.host == page.host);
        let found = work(py, || Ok::<_, TableError>(self.rule.compare(&ours, &theirs, &common, same_host)))?;
        Ok(match found {
            Compared::Match(found) => {
                Some(ComparedPages { score: Some(found.score), reason: self.rule.reason(found.by) })
            }
            Compared::NearMiss(near) => Some(ComparedPages { score: None, reason: near.reason().to_owned() }),
            Compared::Nothing => None,
        })
    }
}

#[pyfunction]
pub(super) fn score_of(words: Option<u32>, body: Option<u32>) -> Option<f64> {
    rule::score_of(Distance { words, body })
}

#[pyfunction]
pub(super) fn similarity<'py>(
    py: Python<'py>,
    pages: (PyBackedBytes, PyBackedBytes),
    distance: (Option<u32>, Option<u32>),
    common: Vec<u32>,
    same_host: bool,
    mu_thousandths: u64,
    card: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let (one, other) = (Evidence::new(&pages.0), Evidence::new(&pages.1));
    let distance = Distance { words: distance.0, body: distance.1 };
    let card = card_of(card)?;
    let found = work(py, || Ok::<_, TableError>(Similarity::of(&one, &other, distance, &common, same_host)))?;
    let quantities = PyDict::new(py);
    for (name, value) in [
        ("jaccard", found.jaccard),
        ("whole_jaccard", found.whole_jaccard),
        ("figures", found.figures),
        ("score", found.score(&card)),
    ] {
        quantities.set_item(name, value)?;
    }
    for (name, quantity) in AT_LEAST.iter().chain(&AT_MOST) {
        quantities.set_item(name, quantity(&found))?;
    }
    let lines: Vec<_> = card.lines(found.quantities(), found.min_letters).collect();
    quantities.set_item("points", lines)?;
    quantities.set_item("common_letters", (found.common_letters[0], found.common_letters[1]))?;
    let combined = found.combined(Combined::new(mu_thousandths)?);
    let fraction = py.import("fractions")?.getattr("Fraction")?;
    quantities.set_item("combined", fraction.call1((combined.numerator, combined.denominator))?)?;
    Ok(quantities)
}

fn card_of(card: &Bound<'_, PyAny>) -> PyResult<Card> {
    Ok(Card::new(field(card, "bias")?, field(card, "signed")?)?)
}

fn row_of(row: &Bound<'_, PyAny>) -> PyResult<Row> {
    let bound = |name| bound_of(row, name);
    let (mut at_least, mut at_most) = (Vec::new(), Vec::new());
    for (quantities, bounds) in [(&AT_LEAST[..], &mut at_least), (&AT_MOST[..], &mut at_most)] {
        for &(name, quantity) in quantities {
            bounds.extend(bound(name)?.map(|bound| (quantity, bound)));
        }
    }
    let (jaccard, figures, combined) = (field(row, "jaccard")?, bound("figures")?, bound("combined")?);
    Ok(Row { name: field(row, "name")?, jaccard, at_least, at_most, figures, combined, score: bound("score")? })
}

/// A bound of a row; of a whole number that is too large, the largest float, which no finite quantity reaches.
fn bound_of(row: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<f64>> {
    let bound: Bound<'_, PyAny> = field(row, name)?;
    match bound.extract::<f64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(row.py()) => Ok(Some(f64::MAX)),
        _ => field(row, name),
    }
}

/// A whole number from 0; of one that is too large, the largest.
fn whole(object: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    let number: Bound<'_, PyAny> = field(object, name)?;
    if number.gt(u64::MAX)? { Ok(u64::MAX) } else { field(object, name) }
}

fn items<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
    field(object, name)
}

/// An attribute of a rule or of its parts; one of another type is a fault of the configuration.
fn field<'py, T: FromPyObjectOwned<'py>>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<T> {
    let value = object.getattr(name)?;
    value.extract().map_err(|error: <T as FromPyObject<'_, 'py>>::Error| {
        let error: PyErr = error.into();
        TableError::Configuration(format!("{name} of a rule is out of range: {error}")).into()
    })
}
