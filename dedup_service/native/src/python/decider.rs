//! The decider as Python sees it: a batch of pages goes in, a decision for each comes out.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::building::TablesBuild;
use super::host_text::HostText;
use super::rule::Rule;
use super::store::PageStore;
use super::work;
use crate::decider::{self, DeciderError, Kind, Reason};
use crate::evidence::{Evidence, size_of};
use crate::expiry::{ExpiryReason, ExpiryState, Keep};
use crate::guards::{COPY_BYTES, Copy, GuardState, GuardTracker, Objection, ShareState};
use crate::rule::{self, LONG};
use crate::store::Row;
use crate::window::flags;

impl From<DeciderError> for PyErr {
    fn from(error: DeciderError) -> Self {
        match error {
            DeciderError::Table(error) => error.into(),
            DeciderError::Store(error) => error.into(),
            DeciderError::State(message) => super::raised("dedup_service.core.errors", "StateError", message),
            DeciderError::Gone(sequence) => pyo3::exceptions::PyKeyError::new_err(sequence),
        }
    }
}

/// A page to decide.
#[pyclass(frozen, module = "dedup_service._native")]
pub(super) struct Page {
    row: Row,
    claim: Option<u64>,
    host_name: u32,
    evidence: PyBackedBytes,
    keys: PyBackedBytes,
}

#[pymethods]
impl Page {
    #[new]
    #[pyo3(signature = (sequence, words, body, body_hash, text_hash, url, host, evidence, keys, *, claim, is_judged))]
    #[allow(clippy::too_many_arguments)] // the fields of a page
    fn new(
        sequence: i64,
        words: Option<u64>,
        body: Option<u64>,
        body_hash: Option<u64>,
        text_hash: Option<u64>,
        url: u64,
        host: u64,
        evidence: PyBackedBytes,
        keys: PyBackedBytes,
        claim: Option<u64>,
        is_judged: bool,
    ) -> Self {
        let row = Row {
            sequence,
            words: words.unwrap_or(0),
            body: body.unwrap_or(0),
            body_hash: body_hash.unwrap_or(0),
            text_hash: text_hash.unwrap_or(0),
            url_hash: url,
            host: (host >> 32) as u32,
            flags: flags_of(words, body, body_hash, text_hash, is_judged, &evidence),
            ..Row::default()
        };
        Self { row, claim, host_name: host as u32, evidence, keys }
    }
}

fn flags_of(
    words: Option<u64>,
    body: Option<u64>,
    body_hash: Option<u64>,
    text_hash: Option<u64>,
    is_indexed: bool,
    evidence: &[u8],
) -> u8 {
    let decides = body_hash.is_some() && size_of(evidence) >= LONG;
    let set = |is_set: bool, flag| if is_set { flag } else { 0 };
    set(words.is_some(), flags::WORDS)
        | set(body.is_some(), flags::BODY)
        | set(body_hash.is_some(), flags::BODY_HASH)
        | set(text_hash.is_some(), flags::TEXT_HASH)
        | set(is_indexed, flags::INDEXED)
        | set(decides, flags::BODY_DECIDES)
}

impl Page {
    pub(super) fn page(&self) -> decider::Page<'_> {
        decider::Page {
            row: self.row,
            claim: self.claim,
            host_name: self.host_name,
            evidence: &self.evidence,
            keys: &self.keys,
        }
    }
}

/// A kept page.
#[pyclass(frozen, get_all, module = "dedup_service._native")]
pub(super) struct Entry {
    sequence: i64,
    words: Option<u64>,
    body: Option<u64>,
    body_hash: Option<u64>,
    url_hash: u64,
    indexed: bool,
    evidence: Py<PyBytes>,
    text_hash: Option<u64>,
    pub(super) host: u32,
    ordinal: i64,
    keys: Py<PyBytes>,
    settled: bool,
    row: i64,
}

#[pymethods]
impl Entry {
    #[new]
    #[pyo3(signature = (sequence, words, body, body_hash, url_hash, indexed = true, evidence = Cow::default(), text_hash = None,
        host = 0, ordinal = 0, keys = Cow::default(), settled = false, row = -1))]
    #[allow(clippy::too_many_arguments)] // the fields of an entry
    fn new(
        py: Python<'_>,
        sequence: i64,
        words: Option<u64>,
        body: Option<u64>,
        body_hash: Option<u64>,
        url_hash: u64,
        indexed: bool,
        evidence: Cow<'_, [u8]>,
        text_hash: Option<u64>,
        host: u32,
        ordinal: i64,
        keys: Cow<'_, [u8]>,
        settled: bool,
        row: i64,
    ) -> Self {
        let (evidence, keys) = (PyBytes::new(py, &evidence).unbind(), PyBytes::new(py, &keys).unbind());
        Self {
            sequence,
            words,
            body,
            body_hash,
            url_hash,
            indexed,
            evidence,
            text_hash,
            host,
            ordinal,
            keys,
            settled,
            row,
        }
    }

    fn __eq__(&self, py: Python<'_>, other: PyRef<'_, Self>) -> bool {
        let unnumbered = |entry: &Self| decider::Entry { number: None, ..entry.entry(py) };
        unnumbered(self) == unnumbered(&other)
    }

    fn at(&self, py: Python<'_>, sequence: i64) -> Self {
        let (evidence, keys) = (self.evidence.clone_ref(py), self.keys.clone_ref(py));
        Self { sequence, evidence, keys, ..*self }
    }

    #[getter]
    fn flags(&self, py: Python<'_>) -> u8 {
        let evidence = self.evidence.as_bytes(py);
        let flags = flags_of(self.words, self.body, self.body_hash, self.text_hash, self.indexed, evidence);
        flags | if self.settled { flags::SETTLED } else { 0 }
    }
}

impl Entry {
    pub(super) fn entry(&self, py: Python<'_>) -> decider::Entry {
        let row = Row {
            sequence: self.sequence,
            words: self.words.unwrap_or(0),
            body: self.body.unwrap_or(0),
            body_hash: self.body_hash.unwrap_or(0),
            text_hash: self.text_hash.unwrap_or(0),
            url_hash: self.url_hash,
            host: self.host,
            ordinal: self.ordinal as u64,
            flags: self.flags(py),
            ..Row::default()
        };
        let number = if self.settled { u32::try_from(self.row).ok() } else { None };
        let (evidence, keys) = (self.evidence.as_bytes(py).to_vec(), self.keys.as_bytes(py).to_vec());
        decider::Entry { row, evidence, keys, number }
    }

    /// What a rule looks at.
    pub(super) fn side(&self, py: Python<'_>) -> rule::Side<'_> {
        let Self { words, body, body_hash, text_hash, .. } = *self;
        rule::Side { words, body, body_hash, text_hash, evidence: Evidence::new(self.evidence.as_bytes(py)) }
    }

    pub(super) fn of(py: Python<'_>, entry: &decider::Entry) -> Self {
        let (row, has) = (entry.row, |flag| entry.row.flags & flag != 0);
        Self {
            sequence: row.sequence,
            words: has(flags::WORDS).then_some(row.words),
            body: has(flags::BODY).then_some(row.body),
            body_hash: has(flags::BODY_HASH).then_some(row.body_hash),
            url_hash: row.url_hash,
            indexed: has(flags::INDEXED),
            evidence: PyBytes::new(py, &entry.evidence).unbind(),
            text_hash: has(flags::TEXT_HASH).then_some(row.text_hash),
            host: row.host,
            ordinal: row.ordinal as i64,
            keys: PyBytes::new(py, &entry.keys).unbind(),
            settled: entry.number.is_some(),
            row: entry.number.map_or(-1, i64::from),
        }
    }
}

#[pyfunction]
pub(super) fn promising(py: Python<'_>, entries: Vec<PyRef<'_, Entry>>, page: &Entry, most: usize) -> Vec<usize> {
    /// At J = 0, half of the bits are equal, give or take 8: three standard errors above.
    const CHANCE: u32 = 128 + 24;
    const FAR: i64 = 65;
    let sketch_of = |entry: &Entry| Evidence::new(entry.evidence.as_bytes(py)).sketch().copied();
    let sketch = sketch_of(page);
    let bits = |one: Option<u64>, other: Option<u64>| Some(i64::from((one? ^ other?).count_ones()));
    let apart = |entry: &Entry| {
        let distances = [bits(entry.words, page.words), bits(entry.body, page.body)];
        let equal = |(one, other): (&u8, &u8)| (!(one ^ other)).count_ones();
        let both = sketch.zip(sketch_of(entry));
        let equal: u32 = both.map_or(0, |(one, other)| one[..32].iter().zip(&other[..32]).map(equal).sum());
        distances.into_iter().flatten().min().unwrap_or(FAR) - i64::from(equal.saturating_sub(CHANCE))
    };
    let apart: Vec<i64> = entries.iter().map(|entry| apart(entry)).collect();
    let mut places: Vec<usize> = (0..entries.len()).collect();
    places.sort_by_key(|place| apart[*place]);
    places.truncate(most);
    places
}

/// What becomes of a page.
///
/// kind: a verdict. reason: of the verdict, None if the page itself says it or there is none; the name of the kept page
/// at `named` follows. guard: which one objects to the match with that page, with what it counts, and its limit.
#[pyclass(frozen, get_all, module = "dedup_service._native")]
pub(super) struct Decided {
    kind: &'static str,
    reason: Option<String>,
    named: Option<i64>,
    guard: Option<(&'static str, u64, u64)>,
    original: Option<i64>,
    words: Option<u32>,
    body: Option<u32>,
    score: Option<f64>,
    kept: bool,
    replaces: Option<i64>,
    by_claim: bool,
    claim_refused: bool,
    copy: Option<Py<PyBytes>>,
}

impl Decided {
    /// None for a page that is unique, and of which there is nothing else to say.
    fn of(py: Python<'_>, decision: &decider::Decision, rule: &crate::rule::Rule) -> Option<Self> {
        let (mut reason, mut named, mut guard, mut by_claim) = (None, None, None, false);
        match decision.reason {
            Reason::None if !decision.claim_refused => return None,
            Reason::None | Reason::OfPage => {}
            Reason::SameBody => reason = Some("same URL, same body".to_owned()),
            Reason::OtherBody => reason = Some("same URL, other body".to_owned()),
            Reason::ClaimedSameBody => (reason, by_claim) = (Some("same body".to_owned()), true),
            Reason::ClaimedOtherBody => (reason, by_claim) = (Some("other body".to_owned()), true),
            Reason::Correction => reason = Some("a person called it a duplicate".to_owned()),
            Reason::Matched(by) => reason = Some(rule.reason(by)),
            Reason::Fault(ref fault) => reason = Some(fault.clone()),
            Reason::Near(near, sequence) => (reason, named) = (Some(near.reason().to_owned()), Some(sequence)),
            Reason::Guard(objection, sequence) => {
                named = Some(sequence);
                guard = Some(match objection {
                    Objection::Titles(size, limit) => ("titles", size, limit),
                    Objection::Hosts(size, limit) => ("hosts", size, limit),
                    Objection::Pages(size, limit) => ("pages", size, limit),
                    Objection::Surge(recently, usually) => ("surge", recently, usually),
                });
            }
        }
        Some(Self {
            kind: match decision.kind {
                Kind::Unique => "unique",
                Kind::Duplicate => "duplicate",
                Kind::Unchanged => "unchanged",
                Kind::Updated => "updated",
                Kind::Undecided => "undecided",
            },
            reason,
            named,
            guard,
            original: decision.original,
            words: decision.distance.words,
            body: decision.distance.body,
            score: decision.score,
            kept: decision.kept,
            replaces: decision.replaces,
            by_claim,
            claim_refused: decision.claim_refused,
            copy: decision.copy.map(|copy| PyBytes::new(py, &copy.pack()).unbind()),
        })
    }
}

/// Sizes of the tables: (of the block index of each channel, or None; of the cells; bytes of the hash tables; bytes that
/// the entries take).
///
/// Of a block index: rows, distinct fingerprints, bytes, rows of the largest bucket, split buckets, buckets of a table.
/// Of the cells: rows in cells, cells, cells that turned rows away, bytes, bytes of sieves among them.
pub(super) type SizesOfTables = (
    [Option<(usize, usize, usize, usize, usize, usize)>; 2],
    (usize, usize, usize, usize, usize),
    (usize, usize, usize),
    usize,
);

pub(super) fn sizes_of(sizes: decider::Sizes) -> SizesOfTables {
    let near = sizes.near.map(|near| {
        near.map(|of| (of.entries, of.fingerprints, of.bytes, of.largest_bucket, of.split_buckets, of.buckets))
    });
    let (cells, [urls, texts, bodies]) = (sizes.cells, sizes.hashes);
    let cells = (cells.entries, cells.cells, cells.overflowed, cells.bytes, cells.sieve_bytes);
    (near, cells, (urls, texts, bodies), sizes.entry_bytes)
}

/// Return settled entries with their tables: those of a store, or none in memory.
pub(super) fn opened(
    py: Python<'_>,
    store: Option<&PageStore>,
    tables: Option<&TablesBuild>,
    window: u64,
    slots: usize,
    levels: usize,
) -> PyResult<decider::Settled> {
    let tables = match tables {
        None => decider::Tables::new(slots, levels)?,
        Some(build) => build.finished(py)?,
    };
    let entries: Box<dyn decider::Entries> = match store {
        None => Box::new(decider::MemoryEntries::default()),
        Some(store) => Box::new(decider::StoredEntries::new(store.shared())),
    };
    Ok(decider::Settled::new(entries, tables, window, levels))
}

/// Decides pages in the order of their sequences, and keeps the entries of kept pages.
#[pyclass(module = "dedup_service._native")]
pub(super) struct Decider {
    inner: decider::Decider,
    rule: crate::rule::Rule,
    /// What stopped a batch whose first pages were decided.
    stopped: Option<PyErr>,
    /// Whether a batch was stopped: then nobody knows how far its last page came.
    is_broken: bool,
}

impl Decider {
    /// Decide or apply pages, unless that was stopped before.
    fn change(
        &mut self,
        py: Python<'_>,
        task: impl FnOnce(&mut decider::Decider) -> decider::Result<()> + Send,
    ) -> PyResult<()> {
        if self.is_broken {
            let message = "the decider was stopped in the middle of a page: open its state again".to_owned();
            return Err(DeciderError::State(message).into());
        }
        self.is_broken = true;
        let Self { inner, .. } = self;
        work(py, || task(inner))?;
        self.is_broken = false;
        Ok(())
    }
}

#[pymethods]
impl Decider {
    #[new]
    #[pyo3(signature = (rule, *, window, slots, levels, store = None, tables = None, answered = None, ordinal = 0, settled = Vec::new(), young = Vec::new(), removed = Vec::new(),
        host_text = Vec::new(), guards = None, expiry = (-1, Vec::new(), 0, 0), max_pages = None, max_age_minutes = None))]
    #[allow(clippy::too_many_arguments, clippy::type_complexity)] // a state
    fn new(
        py: Python<'_>,
        rule: &Rule,
        window: u64,
        slots: usize,
        levels: usize,
        store: Option<&PageStore>,
        tables: Option<&TablesBuild>,
        answered: Option<(usize, usize, Option<PyBackedBytes>)>,
        ordinal: u64,
        settled: Vec<PyRef<'_, Entry>>,
        young: Vec<PyRef<'_, Entry>>,
        removed: Vec<(i64, PyRef<'_, Entry>)>,
        host_text: Vec<u8>,
        guards: Option<(Vec<u8>, u64, Vec<u8>, i64, i64, i64)>,
        expiry: (i64, Vec<u8>, u64, u64),
        max_pages: Option<u64>,
        max_age_minutes: Option<i64>,
    ) -> PyResult<Self> {
        let guards = guards.map(|(groups, decided, recent, before, learned, usual)| {
            let share = ShareState { decided, recent, before, learned, usual };
            GuardTracker::from_state(&GuardState { groups, share })
        });
        let removed = removed
            .iter()
            .map(|(ordinal, entry)| decider::Removed { ordinal: *ordinal as u64, entry: entry.entry(py) });
        let state = decider::State {
            ordinal,
            settled: settled.iter().map(|entry| entry.entry(py)).collect(),
            numbered: store.is_some(),
            young: young.iter().map(|entry| entry.entry(py)).collect(),
            removed: removed.collect(),
            host_text: crate::host_text::HostText::from_state(&host_text)?,
            guards: guards.transpose()?,
            expiry: ExpiryState { up_to: expiry.0, times: expiry.1, by_count: expiry.2, by_age: expiry.3 },
        };
        let (rule, keep) = (rule.rule.clone(), Keep { max_pages, max_age_minutes });
        let decider = if let Some((shards, live, state_of_shards)) = answered {
            let answered = match state_of_shards {
                None => decider::Answered::new(shards, window, levels, live),
                Some(state) => decider::Answered::from_state(shards, window, levels, &state)?,
            };
            work(py, || decider::Decider::new(rule.clone(), keep, Box::new(answered), state))?
        } else {
            let settled = opened(py, store, tables, window, slots, levels)?;
            work(py, || decider::Decider::new(rule.clone(), keep, Box::new(settled), state))?
        };
        Ok(Self { inner: decider, rule, stopped: None, is_broken: false })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn decide_batch(&mut self, py: Python<'_>, pages: Vec<PyRef<'_, Page>>) -> Vec<Option<Decided>> {
        let pages: Vec<decider::Page> = pages.iter().map(|page| page.page()).collect();
        let mut decided = Vec::with_capacity(pages.len());
        let done = self.change(py, |decider| decider.decide_batch(&pages, &mut decided));
        self.stopped = done.err();
        decided.iter().map(|decision| Decided::of(py, decision, &self.rule)).collect()
    }

    fn panic_at(&mut self, sequence: i64) {
        self.inner.panic_at(sequence);
    }

    fn raise_stopped(&mut self) -> PyResult<()> {
        self.stopped.take().map_or(Ok(()), Err)
    }

    #[allow(clippy::type_complexity)] // an effect
    fn apply(
        &mut self,
        py: Python<'_>,
        pages: Vec<PyRef<'_, Page>>,
        effects: Vec<(bool, Option<i64>, Option<PyBackedBytes>)>,
    ) -> PyResult<()> {
        let pages: Vec<decider::Page> = pages.iter().map(|page| page.page()).collect();
        let copy_of = |packed: &PyBackedBytes| {
            let copy: Option<&[u8; COPY_BYTES]> = packed.first_chunk().filter(|_| packed.len() == COPY_BYTES);
            copy.map(Copy::unpack).ok_or_else(|| DeciderError::State(format!("{} bytes are no copy", packed.len())))
        };
        let effects: Vec<decider::Effect> = effects
            .iter()
            .map(|(kept, replaces, copy)| {
                let copy = copy.as_ref().map(copy_of).transpose()?;
                Ok(decider::Effect { kept: *kept, replaces: *replaces, copy })
            })
            .collect::<Result<_, DeciderError>>()?;
        if pages.len() != effects.len() {
            let message = format!("{} pages have {} effects", pages.len(), effects.len());
            return Err(DeciderError::State(message).into());
        }
        self.change(py, |decider| decider.apply(&pages, &effects))
    }

    fn remove(&mut self, py: Python<'_>, sequence: i64) -> PyResult<()> {
        work(py, || self.inner.remove(sequence))
    }

    fn remove_expired(&mut self, py: Python<'_>, up_to: i64) -> PyResult<()> {
        work(py, || self.inner.remove_expired(up_to))
    }

    fn entry(&mut self, py: Python<'_>, sequence: i64) -> PyResult<Option<Entry>> {
        Ok(work(py, || self.inner.entry(sequence))?.map(|entry| Entry::of(py, &entry)))
    }

    fn holds(&mut self, py: Python<'_>, sequence: i64) -> PyResult<bool> {
        work(py, || self.inner.holds(sequence))
    }

    fn young(&mut self, py: Python<'_>) -> PyResult<Vec<Entry>> {
        Ok(work(py, || self.inner.young())?.iter().map(|entry| Entry::of(py, entry)).collect())
    }

    fn visit(&self, py: Python<'_>, url: u64) -> PyResult<Option<i64>> {
        work(py, || self.inner.visit(url))
    }

    fn set_rule(&mut self, py: Python<'_>, rule: &Rule) -> PyResult<()> {
        self.rule = rule.rule.clone();
        work(py, || self.inner.set_rule(rule.rule.clone()))
    }

    fn set_keep(&mut self, max_pages: Option<u64>, max_age_minutes: Option<i64>) {
        self.inner.expiry().set_keep(Keep { max_pages, max_age_minutes });
    }

    fn advance(&mut self, sequence: i64, minute: i64) -> bool {
        self.inner.expiry().advance(sequence, minute)
    }

    fn expired(&mut self) -> (u64, u64) {
        let expiry = self.inner.expiry();
        (expiry.expired(ExpiryReason::Count), expiry.expired(ExpiryReason::Age))
    }

    fn expired_up_to(&mut self) -> i64 {
        self.inner.expiry().up_to()
    }

    fn minute(&mut self) -> Option<i64> {
        self.inner.expiry().minute()
    }

    fn host_text(&self) -> HostText {
        HostText { host_text: self.inner.host_text().clone() }
    }

    fn host_text_bytes(&self) -> usize {
        self.inner.host_text().size_bytes()
    }

    fn candidates(&mut self, py: Python<'_>, page: &Page) -> PyResult<Vec<i64>> {
        work(py, || self.inner.candidates_of(&page.page()))
    }

    fn sizes(&self) -> SizesOfTables {
        sizes_of(self.inner.sizes())
    }

    fn piece(&self, py: Python<'_>, first: u32, limit: usize) -> PyResult<Option<(u32, Vec<Entry>)>> {
        let piece = work(py, || self.inner.piece(first, limit))?;
        let last = piece.last().and_then(|entry| entry.number);
        Ok(last.map(|last| (last, piece.iter().map(|entry| Entry::of(py, entry)).collect())))
    }

    fn correct(&mut self, url: u64, original: u64, duplicate: bool) {
        self.inner.overrides().add(url, original, duplicate);
    }

    fn work(&self) -> (u64, u64) {
        self.inner.work()
    }

    fn state(&mut self, py: Python<'_>) -> PyResult<StateCopy> {
        work(py, || self.inner.state()).map(StateCopy)
    }

    #[allow(clippy::type_complexity)] // an answer
    fn answer(
        &mut self,
        py: Python<'_>,
        answers: Vec<(Vec<PyBackedBytes>, Option<PyBackedBytes>, PyBackedBytes, bool)>,
    ) -> PyResult<()> {
        let batches: Vec<Vec<&[u8]>> =
            answers.iter().map(|answer| answer.0.iter().map(|batch| &**batch).collect()).collect();
        let answers: Vec<decider::Answer> = answers
            .iter()
            .zip(&batches)
            .map(|((_, record, oldest, is_all), batches)| decider::Answer {
                batches,
                record: record.as_deref(),
                oldest,
                is_all: *is_all,
            })
            .collect();
        work(py, || self.inner.answer(&answers))
    }

    #[allow(clippy::type_complexity)] // an outcome
    fn take_outcome(&mut self, py: Python<'_>) -> PyResult<(u64, Py<PyBytes>, Vec<(u64, i64, u64)>)> {
        let outcome = self.inner.take_outcome()?;
        let removed = outcome.removed.iter().map(|one| (one.after, one.sequence, one.ordinal)).collect();
        Ok((outcome.first, PyBytes::new(py, &outcome.kept).unbind(), removed))
    }

    fn answered_state(&mut self, py: Python<'_>) -> Option<Py<PyBytes>> {
        Some(PyBytes::new(py, &self.inner.answered()?.state()).unbind())
    }

    fn first_young(&self) -> Option<i64> {
        self.inner.first_young()
    }
}

/// The state of a decider at one moment, without its settled entries.
#[pyclass(frozen, module = "dedup_service._native")]
pub(super) struct StateCopy(decider::State);

#[pymethods]
impl StateCopy {
    #[allow(clippy::type_complexity)] // a state
    fn fields(
        &self,
        py: Python<'_>,
    ) -> PyResult<(
        u64,
        Vec<Entry>,
        Vec<(i64, Entry)>,
        Py<PyBytes>,
        Option<(Py<PyBytes>, u64, Py<PyBytes>, i64, i64, i64)>,
        (i64, Py<PyBytes>, u64, u64),
    )> {
        let Self(state) = self;
        let encoded = || (state.host_text.state(), state.guards.as_ref().map(GuardTracker::state));
        let (host_text, guards) = work(py, || Ok::<_, DeciderError>(encoded()))?;
        let guards = guards.map(|GuardState { groups, share }| {
            let (groups, recent) = (PyBytes::new(py, &groups).unbind(), PyBytes::new(py, &share.recent).unbind());
            (groups, share.decided, recent, share.before, share.learned, share.usual)
        });
        let ExpiryState { up_to, times, by_count, by_age } = &state.expiry;
        Ok((
            state.ordinal,
            state.young.iter().map(|entry| Entry::of(py, entry)).collect(),
            state.removed.iter().map(|one| (one.ordinal as i64, Entry::of(py, &one.entry))).collect(),
            PyBytes::new(py, &host_text).unbind(),
            guards,
            (*up_to, PyBytes::new(py, times).unbind(), *by_count, *by_age),
        ))
    }
}
