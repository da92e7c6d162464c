//! From a prepared page to what becomes of it: a deterministic function of the pages so far.
//!
//! A kept page has an entry, which later pages are compared with. A page of a new URL is kept if and only if no earlier
//! kept page matches it; corrections and repeat visits decide first. A page without text has no entry. A known URL is one
//! with a kept visit: the same body again is unchanged; another body is an update, and its entry replaces the earlier one.
//! A URL whose visits were all duplicates stays unknown (ADR 0007).
//!
//! A page of an unknown URL may be a visit of the known URL that it claims, provided that the rule accepts the two texts.
//! The entry of the claimed URL stays: no page replaces another by naming it (ADR 0018).
//!
//! A match that a guard does not accept makes the page undecided. It is passed on but adds no entry, so it never becomes
//! an original (ADR 0015). Entries beyond the bounds of expiry leave with the pages that come.
//!
//! Every source of candidates is complete within its definition: equal texts, fingerprints within the radius of a channel,
//! rows that share keys in the cells, and the window. The ordinal of a page is the number of pages decided before it; with
//! it, every answer is a function of the log, not of how it was cut into batches or where it was continued.

mod answered;
mod candidates;
mod entries;
mod error;
mod found;
mod page;
mod settled;
mod shard;
mod tables;
mod wire;

use std::any::Any;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use answered::{Answer, Answered, Outcome, Removal};
use candidates::{Candidates, Oldest};
pub use entries::{Entries, MemoryEntries, SharedStore, StoredEntries};
pub use error::{DeciderError, Result};
use found::{Found, OfPage};
pub use page::{Entry, Page, Removed};
use page::{Prepared, entry_of, young_of};
use settled::MAX_EQUAL;
pub use settled::{Settled, Sizes};
pub use shard::{Shard, Told};
pub use tables::{Tables, radii_of};
pub use wire::{decode_entries, encode_entries, found_in};

use crate::evidence::Evidence;
use crate::expiry::{Expiry, ExpiryState, Keep, MAX_BEFORE_PAGE};
use crate::guards::{Copy, GuardTracker, Objection, title_of};
use crate::host_text::HostText;
use crate::overrides::Overrides;
use crate::rule::{Compared, MatchedBy, NearMiss, Rule, Side, score_of};
use crate::similarity::{Distance, Screen, most_bits_apart, same_title};
use crate::store::Row;
use crate::window::flags::{self, BODY_HASH};
use crate::window::{EqualPlaces, Matches, Search, Window};

/// Pages that are probed at once.
const MOST_PAGES: usize = 512;

/// What a page is to the pages before.
#[derive(Clone, std::marker::Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No kept page matches it.
    Unique,
    /// A kept page matches it.
    Duplicate,
    /// A visit of a known URL, with the same body.
    Unchanged,
    /// A visit of a known URL, with another body.
    Updated,
    /// Too short or without text, or a guard objects.
    Undecided,
}

/// Why.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// Nothing matches.
    None,
    /// The page says itself why it cannot be judged.
    OfPage,
    /// The visit of its URL has this body.
    SameBody,
    /// The visit of its URL has another body.
    OtherBody,
    /// The visit of the URL that it claims has this body.
    ClaimedSameBody,
    /// The visit of the URL that it claims has another body.
    ClaimedOtherBody,
    /// A correction.
    Correction,
    /// The rule.
    Matched(MatchedBy),
    /// Not by the rule, but nearly: the kept page at this sequence.
    Near(NearMiss, i64),
    /// A guard objects to the match with the kept page at this sequence.
    Guard(Objection, i64),
    /// A fault of ours: what it panicked with.
    Fault(String),
}

/// What becomes of a page, and its effect on the entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What the page is.
    pub kind: Kind,
    /// Why.
    pub reason: Reason,
    /// Sequence of the kept page or earlier visit that it is compared with.
    pub original: Option<i64>,
    /// From the original.
    pub distance: Distance,
    /// Similarity to the original, 0 to 1.
    pub score: Option<f64>,
    /// Whether the page has an entry.
    pub kept: bool,
    /// Sequence of the entry that it replaces.
    pub replaces: Option<i64>,
    /// Whether it claims a known URL without matching its visit.
    pub claim_refused: bool,
    /// What guards count of a match, accepted or not.
    pub copy: Option<Copy>,
}

impl Decision {
    fn new(kind: Kind, reason: Reason) -> Self {
        Self {
            kind,
            reason,
            original: None,
            distance: Distance::default(),
            score: None,
            kept: false,
            replaces: None,
            claim_refused: false,
            copy: None,
        }
    }

    fn kept(self) -> Self {
        Self { kept: true, ..self }
    }

    fn of(self, kept: &Kept, distance: Distance, score: Option<f64>) -> Self {
        Self { original: Some(kept.row.sequence), distance, score, ..self }
    }
}

/// The effect of a decision that was made before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effect {
    /// Whether the page has an entry.
    pub kept: bool,
    /// Sequence of the entry that it replaced.
    pub replaces: Option<i64>,
    /// What guards counted of it.
    pub copy: Option<Copy>,
}

/// An entry that a page is compared with.
#[derive(Clone, std::marker::Copy, Debug)]
struct Kept {
    row: Row,
    at: At,
}

#[derive(Clone, std::marker::Copy, Debug)]
enum At {
    /// Its number in the store, and its place among what was found for the page.
    Settled(u32, Option<u32>),
    /// Its place in the window; none of one that is not settled.
    Window(Option<usize>),
}

impl Kept {
    fn found(found: &Found, place: u32) -> Self {
        let candidate = found.get(place).0;
        Self { row: candidate.row, at: At::Settled(candidate.number, Some(place)) }
    }
}

/// A match of a page.
struct Best {
    kept: Kept,
    score: f64,
    by: MatchedBy,
}

/// What is known of the pages that are decided together.
struct Batch<'a> {
    pages: Vec<Prepared<'a>>,
    found: Found,
    /// What was found anew for one page, since removed entries left room for others: its place, and a `Found` of it alone.
    renewed: Option<(usize, Found)>,
    young: Vec<Matches>,
    equal: Vec<EqualPlaces>,
    /// Sequences of the settled entries that were removed since.
    removed: HashSet<i64>,
}

impl Batch<'_> {
    /// Return what was found for a page among settled entries, and with them.
    fn found(&self, place: usize) -> (&Found, &OfPage) {
        match &self.renewed {
            Some((renewed, found)) if *renewed == place => (found, &found.pages[0]),
            _ => (&self.found, &self.found.pages[place]),
        }
    }

    /// Take note that a settled entry was removed.
    fn remove(&mut self, sequence: i64) {
        self.removed.insert(sequence);
        self.found.remove(sequence);
        if let Some((_, found)) = &mut self.renewed {
            found.remove(sequence);
        }
    }
}

/// Decides pages in the order of their sequences, and keeps the entries of kept pages.
pub struct Decider {
    rule: Rule,
    settled: Box<dyn Candidates>,
    window: Window,
    host_text: HostText,
    guards: Option<GuardTracker>,
    expiry: Expiry,
    overrides: Overrides,
    ordinal: u64,
    looked_at: u64,
    compared: u64,
    /// Where to panic, for tests.
    panics_at: Option<i64>,
}

/// The state of a decider without its settled entries.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Pages decided.
    pub ordinal: u64,
    /// Live settled entries that the store does not have, in order.
    pub settled: Vec<Entry>,
    /// Live entries that are not settled, in order.
    pub young: Vec<Entry>,
    /// Removed entries that the cells still need, in the order of their removal.
    pub removed: Vec<Removed>,
    /// Whether the store has given removed entries that are settled their numbers.
    pub numbered: bool,
    /// What is known of the hosts' own text.
    pub host_text: HostText,
    /// What guards count; None for a rule without guards.
    pub guards: Option<GuardTracker>,
    /// What expired, and times.
    pub expiry: ExpiryState,
}

impl Decider {
    /// Return a decider that goes on from a state, with the settled entries at that place of the log.
    ///
    /// # Errors
    /// As building an index of the entries, if the rule probes one that is not there.
    pub fn new(rule: Rule, keep: Keep, mut settled: Box<dyn Candidates>, state: State) -> Result<Self> {
        settled.probe_for(&rule)?;
        settled.restore(&state)?;
        let mut young: Vec<(Entry, bool)> = state.young.into_iter().map(|entry| (entry, true)).collect();
        young.extend(state.removed.into_iter().filter(|one| one.entry.number.is_none()).map(|one| (one.entry, false)));
        young.sort_by_key(|(entry, _)| entry.row.ordinal);
        let mut window = Window::default();
        window.announce(young.iter().map(|(entry, _)| young_of(entry.row, &entry.evidence, &entry.keys)));
        for (place, (_, is_live)) in young.iter().enumerate() {
            window.keep(place, *is_live);
        }
        window.finish();
        Ok(Self {
            guards: rule.guards.any().then(|| state.guards.unwrap_or_default()),
            rule,
            settled,
            window,
            host_text: state.host_text,
            expiry: Expiry::new(keep, &state.expiry)?,
            overrides: Overrides::default(),
            ordinal: state.ordinal,
            looked_at: 0,
            compared: 0,
            panics_at: None,
        })
    }

    /// Return the number of live entries.
    pub fn len(&self) -> usize {
        self.settled.count() + self.window.len()
    }

    /// Decide pages in order of their sequences; append what becomes of each to `decided`.
    ///
    /// # Errors
    /// What stopped it; the pages before are in `decided`.
    pub fn decide_batch(&mut self, pages: &[Page], decided: &mut Vec<Decision>) -> Result<()> {
        for pages in pages.chunks(self.most_pages()) {
            let mut batch = self.probed(pages)?;
            let done: Result<()> = (0..batch.pages.len()).try_for_each(|place| {
                decided.push(self.decide_page(&mut batch, place)?);
                Ok(())
            });
            self.window.finish();
            done?;
        }
        Ok(())
    }

    /// Apply decisions on pages that were made before: the same state follows as from `decide_batch`.
    ///
    /// # Errors
    /// `Gone` if a page replaces an entry that there is not.
    pub fn apply(&mut self, pages: &[Page], effects: &[Effect]) -> Result<()> {
        if pages.len() != effects.len() {
            return Err(DeciderError::State(format!("{} pages have {} effects", pages.len(), effects.len())));
        }
        let most = self.most_pages();
        for (pages, effects) in pages.chunks(most).zip(effects.chunks(most)) {
            let (first, pages) = (self.ordinal, self.prepared(pages));
            if self.settled.is_behind(self.window.backlog(self.left_before(first))) {
                self.settled.settle(&mut self.window, first)?;
            }
            self.window.leave(self.left_before(first));
            self.announce(&pages);
            let done: Result<()> = pages.iter().zip(effects).enumerate().try_for_each(|(place, (page, effect))| {
                self.begin(None)?;
                if let Some(guards) = &mut self.guards {
                    guards.follow(effect.copy);
                }
                if let Some(sequence) = effect.replaces {
                    self.drop_entry(sequence)?;
                }
                if effect.kept {
                    self.window.keep(place, true);
                }
                self.expire(1, None)?;
                self.learn(page);
                Ok(())
            });
            self.window.finish();
            done?;
        }
        Ok(())
    }

    /// Remove the live entry at a sequence. Outside of a batch.
    ///
    /// # Errors
    /// `Gone` if there is none.
    pub fn remove(&mut self, sequence: i64) -> Result<()> {
        self.drop_entry(sequence)?;
        if self.settled.is_behind(0) { self.catch_up() } else { Ok(()) }
    }

    /// Remove all entries up to a sequence: what a log says whose records of them are gone.
    ///
    /// # Errors
    /// As reading the store.
    pub fn remove_expired(&mut self, up_to: i64) -> Result<()> {
        while let Some(kept) = self.oldest()?.filter(|kept| kept.row.sequence <= up_to) {
            self.drop_kept(&kept, None)?;
        }
        self.expiry.set_up_to(up_to);
        Ok(())
    }

    /// Return the live entry at a sequence.
    ///
    /// # Errors
    /// As reading the store.
    pub fn entry(&mut self, sequence: i64) -> Result<Option<Entry>> {
        if let Some(young) = self.window.get(sequence) {
            return Ok(Some(entry_of(young)));
        }
        self.settled.entry(sequence)
    }

    /// Return whether there is a live entry at a sequence, or one that its base has erased and that is to be removed.
    ///
    /// # Errors
    /// As reading the store.
    pub fn holds(&mut self, sequence: i64) -> Result<bool> {
        Ok(self.window.get(sequence).is_some() || self.settled.find(sequence)?.is_some())
    }

    /// Return the live entries that are not settled, in order, after settling what is due.
    ///
    /// # Errors
    /// As `decide_batch`.
    pub fn young(&mut self) -> Result<Vec<Entry>> {
        self.catch_up()?;
        Ok(self.window.iter().map(entry_of).collect())
    }

    /// Return the sequence of the live entry with a URL's hash, the earliest if there are several.
    ///
    /// # Errors
    /// As reading the store.
    pub fn visit(&self, url: u64) -> Result<Option<i64>> {
        Ok(self.any_visit(None, url)?.map(|kept| kept.row.sequence))
    }

    /// Use another rule from the next page on.
    ///
    /// # Errors
    /// As building an index that it probes and that is not there.
    pub fn set_rule(&mut self, rule: Rule) -> Result<()> {
        self.catch_up()?;
        self.settled.probe_for(&rule)?;
        self.guards = if rule.guards.any() { Some(self.guards.take().unwrap_or_default()) } else { None };
        self.rule = rule;
        Ok(())
    }

    /// Panic at the page with this sequence, as a fault of this module would: for tests.
    pub fn panic_at(&mut self, sequence: i64) {
        self.panics_at = Some(sequence);
    }

    /// What expires, and when.
    pub fn expiry(&mut self) -> &mut Expiry {
        &mut self.expiry
    }

    /// The corrections in force.
    pub fn overrides(&mut self) -> &mut Overrides {
        &mut self.overrides
    }

    /// What is known of the hosts' own text.
    pub fn host_text(&self) -> &HostText {
        &self.host_text
    }

    /// What shards answer, if the settled entries are there.
    pub fn answered(&mut self) -> Option<&mut Answered> {
        self.settled.answered()
    }

    /// Take the answers of all shards to the message that is decided next.
    ///
    /// # Errors
    /// As [`Answered::answer`].
    pub fn answer(&mut self, answers: &[Answer]) -> Result<()> {
        let ordinal = self.ordinal;
        self.answered().ok_or_else(asks_nobody)?.answer(ordinal, answers)
    }

    /// Return what the message has done for which the shards have answered.
    ///
    /// # Errors
    /// As [`Answered::take_outcome`].
    pub fn take_outcome(&mut self) -> Result<Outcome> {
        let ordinal = self.ordinal;
        self.answered().ok_or_else(asks_nobody)?.take_outcome(ordinal)
    }

    /// Return the sequence of the earliest live entry that is not settled.
    pub fn first_young(&self) -> Option<i64> {
        self.window.earliest().map(|young| young.row.sequence)
    }

    /// Entries that were looked at in tables and window, and that were compared, for all pages so far.
    pub fn work(&self) -> (u64, u64) {
        (self.looked_at, self.compared)
    }

    /// Return the sequences of the live entries that are candidates for a page, ascending. The page is not decided.
    ///
    /// # Errors
    /// As `decide_batch`.
    pub fn candidates_of(&mut self, page: &Page) -> Result<Vec<i64>> {
        let batch = self.probed(std::slice::from_ref(page))?;
        let found = self.candidates(&batch, 0).into_iter().map(|kept| kept.row.sequence).collect();
        self.window.finish();
        Ok(found)
    }

    /// Return the sizes of tables and entries; fingerprints of the window count, too.
    pub fn sizes(&self) -> Sizes {
        self.settled.sizes(&self.window)
    }

    /// Return the first live settled entries from a row on, `limit` at most, with their evidence.
    ///
    /// # Errors
    /// As reading the store.
    pub fn piece(&self, first: u32, limit: usize) -> Result<Vec<Entry>> {
        self.settled.piece(first, limit)
    }

    /// Return the state without the settled entries, after settling what is due.
    ///
    /// # Errors
    /// As `decide_batch`.
    pub fn state(&mut self) -> Result<State> {
        self.catch_up()?;
        Ok(State {
            ordinal: self.ordinal,
            settled: Vec::new(),
            numbered: true,
            young: self.window.iter().map(entry_of).collect(),
            removed: self.settled.removed(),
            host_text: self.host_text.clone(),
            guards: self.guards.clone(),
            expiry: self.expiry.state(),
        })
    }

    /// Announce pages, and find what they may match. `Window::finish` ends it.
    fn probed<'a>(&mut self, pages: &[Page<'a>]) -> Result<Batch<'a>> {
        let first = self.ordinal;
        let pages = self.prepared(pages);
        let found = self.settled.find_for(&mut self.window, first, &pages, &self.rule)?;
        self.window.leave(self.left_before(first));
        self.announce(&pages);
        let young = self.window.compare(&Search {
            by_keys: self.rule.keys,
            most_bits_apart: most_bits_apart(self.rule.min_rough_jaccard()),
            words_radius: self.rule.words_radius(),
            body_radius: self.rule.body_radius(),
        });
        let equal = self.window.equal(&pages.iter().map(|page| page.page.claim).collect::<Vec<_>>());
        Ok(Batch { pages, found, renewed: None, young, equal, removed: HashSet::new() })
    }

    fn prepared<'a>(&self, pages: &[Page<'a>]) -> Vec<Prepared<'a>> {
        let levels = self.settled.levels();
        (self.ordinal..).zip(pages).map(|(ordinal, page)| Prepared::new(*page, ordinal, levels)).collect()
    }

    fn most_pages(&self) -> usize {
        most_pages(self.settled.length())
    }

    /// Return the ordinal up to which entries have left the window when a page is decided.
    fn left_before(&self, ordinal: u64) -> i64 {
        ordinal as i64 - self.settled.length() as i64
    }

    fn announce(&mut self, pages: &[Prepared]) {
        self.window.announce(pages.iter().map(|page| young_of(page.page.row, page.page.evidence, page.page.keys)));
    }

    /// Settle what is due up to the latest page.
    fn catch_up(&mut self) -> Result<()> {
        self.settled.settle(&mut self.window, self.ordinal.saturating_sub(1))
    }

    /// Go on to the next page.
    fn begin(&mut self, batch: Option<&mut Batch>) -> Result<()> {
        let ordinal = self.ordinal;
        self.ordinal += 1;
        self.window.leave(self.left_before(ordinal));
        self.expire(MAX_BEFORE_PAGE, batch)
    }

    /// Remove the earliest entries that are beyond the bounds of expiry, `limit` of them at most.
    fn expire(&mut self, limit: usize, mut batch: Option<&mut Batch>) -> Result<()> {
        if !self.expiry.keep().any() {
            return Ok(());
        }
        for _ in 0..limit {
            let Some(kept) = self.oldest()? else { break };
            let Some(reason) = self.expiry.reason(self.len(), kept.row.sequence) else { break };
            self.drop_kept(&kept, batch.as_deref_mut())?;
            self.expiry.count(kept.row.sequence, reason);
        }
        Ok(())
    }

    fn oldest(&mut self) -> Result<Option<Kept>> {
        Ok(match self.settled.oldest()? {
            Oldest::Entry(_, row) if self.window.get(row.sequence).is_some() => {
                Some(Kept { row, at: At::Window(None) }) // a shard has settled it before
            }
            Oldest::Entry(number, row) => Some(Kept { row, at: At::Settled(number, None) }),
            Oldest::None => self.window.earliest().map(|young| Kept { row: young.row, at: At::Window(None) }),
            Oldest::Unknown => None,
        })
    }

    fn any_visit(&self, place: Option<usize>, url: u64) -> Result<Option<Kept>> {
        if let Some((number, row)) = self.settled.visit(place, url)? {
            return Ok(Some(Kept { row, at: At::Settled(number, None) }));
        }
        Ok(self.window.visit(url).map(|young| Kept { row: young.row, at: At::Window(None) }))
    }

    fn drop_entry(&mut self, sequence: i64) -> Result<()> {
        if let Some(young) = self.window.get(sequence) {
            let row = young.row;
            return self.drop_young(row);
        }
        let Some((number, row)) = self.settled.find(sequence)? else { return Err(DeciderError::Gone(sequence)) };
        self.drop_settled(number, row, sequence)
    }

    fn drop_kept(&mut self, kept: &Kept, batch: Option<&mut Batch>) -> Result<()> {
        let sequence = kept.row.sequence;
        match (kept.at, batch) {
            (At::Window(_), _) => self.drop_young(kept.row),
            (At::Settled(number, _), batch) => {
                if let Some(batch) = batch {
                    batch.remove(sequence);
                }
                self.drop_settled(number, Some(kept.row), sequence)
            }
        }
    }

    fn drop_settled(&mut self, number: u32, row: Option<Row>, sequence: i64) -> Result<()> {
        self.settled.remove(sequence, number, row, self.ordinal.saturating_sub(1))?;
        if let Some(row) = row {
            self.window.forget(row.ordinal as i64);
        }
        self.forget(sequence);
        Ok(())
    }

    fn drop_young(&mut self, row: Row) -> Result<()> {
        let Some(young) = self.window.get(row.sequence) else { return Err(DeciderError::Gone(row.sequence)) };
        self.settled.removed_young(row, &young.keys, self.ordinal.saturating_sub(1));
        self.window.remove(row.sequence);
        self.forget(row.sequence);
        Ok(())
    }

    fn forget(&mut self, sequence: i64) {
        if let Some(guards) = &mut self.guards {
            guards.forget(sequence);
        }
    }

    fn decide_page(&mut self, batch: &mut Batch, place: usize) -> Result<Decision> {
        self.begin(Some(batch))?;
        self.looked_at += u64::from(batch.found.pages[place].looked_at) + u64::from(batch.young[place].passed as u32);
        if batch.found.has_room(place, &batch.removed) {
            batch.renewed = Some((place, self.settled.find_again(&batch.pages, place, &self.rule)?));
        }
        let decision = self.decided_or_fault(batch, place)?;
        if let (Some(guards), None) = (&mut self.guards, &decision.copy) {
            guards.follow(None);
        }
        if decision.kept {
            self.window.keep(place, true);
            self.settled.kept(batch.pages[place].page.row.ordinal);
        }
        self.expire(1, Some(batch))?;
        self.learn(&batch.pages[place]);
        Ok(decision)
    }

    /// Learn the hosts' own text from a page, whatever its verdict.
    fn learn(&mut self, page: &Prepared) {
        let host = u64::from(page.page.row.host);
        self.host_text.learn(host, page.evidence.term_bytes(), page.page.keys, &page.sentences);
    }

    /// Decide a page; one at which a fault of ours panics is undecided, and the stream goes on.
    fn decided_or_fault(&mut self, batch: &mut Batch, place: usize) -> Result<Decision> {
        let decided = catch_unwind(AssertUnwindSafe(|| self.decided(batch, place)));
        decided.unwrap_or_else(|panic| Ok(Decision::new(Kind::Undecided, Reason::Fault(message_of(&*panic)))))
    }

    fn decided(&mut self, batch: &mut Batch, place: usize) -> Result<Decision> {
        assert!(self.panics_at != Some(batch.pages[place].page.row.sequence), "on purpose");
        let page = &batch.pages[place];
        if !page.has(BODY_HASH) {
            return Ok(Decision::new(Kind::Undecided, Reason::OfPage));
        }
        let url = page.page.row.url_hash;
        if let Some(visit) = self.visit_in(batch, place, url)? {
            return self.revisited(batch, place, &visit);
        }
        if let Some(original) = self.overrides.duplicate_of(url) {
            if let Some(visit) = self.visit_in(batch, place, original)? {
                let distance = distance(&visit.row, &page.page.row);
                let score = score_of(distance).unwrap_or(0.0);
                return Ok(Decision::new(Kind::Duplicate, Reason::Correction).of(&visit, distance, Some(score)));
            }
        }
        let Some(claimed) = self.claimed(batch, place)? else { return Ok(self.judged(batch, place)) };
        if let Compared::Match(found) = self.compared_with(batch, place, &claimed) {
            let is_same = claimed.row.flags & BODY_HASH != 0 && claimed.row.body_hash == page.page.row.body_hash;
            let (kind, reason, score) = if is_same {
                (Kind::Unchanged, Reason::ClaimedSameBody, 1.0)
            } else {
                (Kind::Updated, Reason::ClaimedOtherBody, found.score)
            };
            let distance = distance(&claimed.row, &page.page.row);
            return Ok(Decision::new(kind, reason).of(&claimed, distance, Some(score)));
        }
        Ok(Decision { claim_refused: true, ..self.judged(batch, place) })
    }

    /// Return the live visit of the URL that a page claims; None without one, or if a person said otherwise.
    fn claimed(&self, batch: &Batch, place: usize) -> Result<Option<Kept>> {
        let page = &batch.pages[place].page;
        let Some(claim) = page.claim else { return Ok(None) };
        let visit = self.visit_in(batch, place, claim)?;
        Ok(visit.filter(|visit| !self.overrides.are_distinct(page.row.url_hash, visit.row.url_hash)))
    }

    /// Return the earliest live entry with a URL's hash.
    fn visit_in(&self, batch: &Batch, place: usize, url: u64) -> Result<Option<Kept>> {
        let (page, (found, of_page)) = (&batch.pages[place].page, batch.found(place));
        let (settled, young) = if url == page.row.url_hash {
            (&of_page.urls, &batch.equal[place].urls)
        } else if page.claim == Some(url) {
            (&of_page.claims, &batch.equal[place].claims)
        } else {
            return self.any_visit(Some(place), url);
        };
        if let Some(first) = found.live(settled).next() {
            return Ok(Some(Kept::found(found, first)));
        }
        Ok(young.iter().find_map(|&place| self.kept_at(place)))
    }

    /// Decide a page whose URL has a live visit.
    fn revisited(&mut self, batch: &mut Batch, place: usize, earlier: &Kept) -> Result<Decision> {
        let row = batch.pages[place].page.row;
        let distance = distance(&earlier.row, &row);
        if earlier.row.flags & BODY_HASH != 0 && earlier.row.body_hash == row.body_hash {
            return Ok(Decision::new(Kind::Unchanged, Reason::SameBody).of(earlier, distance, Some(1.0)));
        }
        let score = score_of(distance);
        self.drop_kept(earlier, Some(batch))?; // at last: what panics before has no effect
        let decision = Decision::new(Kind::Updated, Reason::OtherBody).of(earlier, distance, score).kept();
        Ok(Decision { replaces: Some(earlier.row.sequence), ..decision })
    }

    /// Decide a page of an unknown URL by comparison with kept pages.
    fn judged(&mut self, batch: &mut Batch, place: usize) -> Decision {
        let (best, near) = match self.same_text(batch, place) {
            Some(best) => (Some(best), None),
            None => self.best(batch, place),
        };
        if let Some(best) = best {
            return self.guarded(batch, place, &best);
        }
        if !batch.pages[place].can_be_judged() {
            return Decision::new(Kind::Undecided, Reason::OfPage).kept();
        }
        let reason = near.map_or(Reason::None, |(near, sequence)| Reason::Near(near, sequence));
        Decision::new(Kind::Unique, reason).kept()
    }

    /// Decide a page that matches a kept page: a duplicate, or undecided if a guard objects.
    fn guarded(&mut self, batch: &Batch, place: usize, best: &Best) -> Decision {
        let page = &batch.pages[place];
        let distance = distance(&best.kept.row, &page.page.row);
        let duplicate =
            Decision::new(Kind::Duplicate, Reason::Matched(best.by)).of(&best.kept, distance, Some(best.score));
        if self.guards.is_none() {
            return duplicate;
        }
        let copy = copy_of(&best.kept.row, &self.evidence_of(batch, place, &best.kept), page);
        let Some(guards) = &mut self.guards else { return duplicate };
        guards.follow(Some(copy));
        let objection = guards.objection(&self.rule.guards);
        let decision = match objection {
            Some(objection) => Decision::new(Kind::Undecided, Reason::Guard(objection, best.kept.row.sequence)),
            None => duplicate,
        };
        Decision { copy: Some(copy), ..decision }
    }

    /// Return an entry of the window that is live and still in it.
    fn kept_at(&self, place: usize) -> Option<Kept> {
        Some(Kept { row: self.window.at(place)?.row, at: At::Window(Some(place)) })
    }

    /// Return the match with the earliest entry of the same text. A crowd of them costs no more.
    fn same_text(&self, batch: &Batch, place: usize) -> Option<Best> {
        let (page, (found, of_page)) = (&batch.pages[place], batch.found(place));
        let mut equal: Vec<Kept> = Vec::new();
        for (settled, young) in
            [(&of_page.texts, &batch.equal[place].texts), (&of_page.bodies, &batch.equal[place].bodies)]
        {
            let settled = found.live(settled).map(|place| Kept::found(found, place));
            let young = young.iter().filter_map(|&place| self.kept_at(place));
            equal.extend(settled.chain(young).take(MAX_EQUAL));
        }
        equal.sort_by_key(|kept| kept.row.sequence);
        let url = page.page.row.url_hash;
        for kept in equal {
            if self.overrides.are_distinct(url, kept.row.url_hash) {
                continue;
            }
            let evidence = self.evidence_of(batch, place, &kept);
            if let Compared::Match(found) =
                self.rule.compare(&side(&kept.row, evidence), &side(&page.page.row, page.evidence), &[], false)
            {
                return Some(Best { kept, score: found.score, by: found.by });
            }
        }
        None
    }

    /// Return the match with the highest score, the earliest if several have it; without a match the nearest miss.
    fn best(&mut self, batch: &Batch, place: usize) -> (Option<Best>, Option<(NearMiss, i64)>) {
        let page = &batch.pages[place];
        let url = page.page.row.url_hash;
        let (mut best, mut near): (Option<Best>, Option<(NearMiss, i64)>) = (None, None);
        for kept in self.candidates(batch, place) {
            self.compared += 1;
            match self.compared_with(batch, place, &kept) {
                Compared::NearMiss(miss) if near.as_ref().is_none_or(|(nearest, _)| miss.rank() > nearest.rank()) => {
                    near = Some((miss, kept.row.sequence));
                }
                Compared::Match(found)
                    if !self.overrides.are_distinct(url, kept.row.url_hash)
                        && best.as_ref().is_none_or(|best| found.score > best.score) =>
                {
                    best = Some(Best { kept, score: found.score, by: found.by });
                }
                _ => {}
            }
        }
        (best, near)
    }

    /// Return the live entries that are candidates for a page, ascending by sequence.
    fn candidates(&self, batch: &Batch, place: usize) -> Vec<Kept> {
        let (page, (found, of_page)) = (&batch.pages[place], batch.found(place));
        let young = &batch.young[place].found;
        if of_page.near.is_empty() && young.is_empty() {
            return Vec::new();
        }
        let common = self.host_text.common(u64::from(page.page.row.host), &page.sentences);
        let screen = Screen::of(&page.evidence, &common, self.rule.min_rough_jaccard());
        let mut kept: Vec<Kept> = Vec::new();
        for near in found.live(&of_page.near) {
            if !self.rule.verified() || passes(&screen, found.get(near).1) {
                kept.push(Kept::found(found, near));
            }
        }
        for pair in young {
            let Some(young) = self.window.at(pair.place) else { continue };
            let passes =
                || screen.passes(self.window.sketch(pair.place), young.shingles, young.sentences.iter().copied());
            if (!self.rule.verified() && pair.by_distance) || passes() {
                kept.push(Kept { row: young.row, at: At::Window(Some(pair.place)) });
            }
        }
        kept.sort_by_key(|kept| kept.row.sequence);
        kept.dedup_by_key(|kept| kept.row.sequence);
        kept
    }

    /// Compare a page with an entry, without what is the own text of either host.
    fn compared_with(&self, batch: &Batch, place: usize, kept: &Kept) -> Compared {
        let (page, evidence) = (&batch.pages[place], self.evidence_of(batch, place, kept));
        let (ours, theirs) = (u64::from(page.page.row.host), u64::from(kept.row.host));
        let sentences: Vec<u32> = evidence.sentences().collect();
        let common = self.host_text.common_to_pair(ours, &page.sentences, theirs, &sentences);
        self.rule.compare(&side(&kept.row, evidence), &side(&page.page.row, page.evidence), &common, ours == theirs)
    }

    fn evidence_of<'a>(&'a self, batch: &'a Batch, place: usize, kept: &Kept) -> Evidence<'a> {
        Evidence::new(match kept.at {
            At::Settled(_, Some(found)) => batch.found(place).0.get(found).1,
            At::Window(Some(place)) => self.window.at(place).map_or(&[], |young| &young.evidence),
            At::Settled(_, None) | At::Window(None) => &[], // the visit that a correction names, which is not compared
        })
    }
}

fn asks_nobody() -> DeciderError {
    DeciderError::State("the settled entries are in this process: no shard has answers".to_owned())
}

/// Return how many pages are probed at once. length: pages of the window.
fn most_pages(length: u64) -> usize {
    MOST_PAGES.min(length as usize).max(1)
}

/// Return in how many bits the fingerprints of two rows differ.
fn distance(kept: &Row, page: &Row) -> Distance {
    side(kept, Evidence::default()).distance_to(&side(page, Evidence::default()))
}

/// Return whether a kept page may be similar to the page of a screen.
fn passes(screen: &Screen, packed: &[u8]) -> bool {
    let evidence = Evidence::new(packed);
    evidence.sketch().is_some_and(|sketch| screen.passes(sketch, evidence.shingles, evidence.sentences()))
}

/// Return what something panicked with.
pub fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("a fault of twinsieve: {}; report it", text.unwrap_or("a panic without a message"))
}

fn side<'a>(row: &Row, evidence: Evidence<'a>) -> Side<'a> {
    let value = |flag, value| (row.flags & flag != 0).then_some(value);
    Side {
        words: value(flags::WORDS, row.words),
        body: value(flags::BODY, row.body),
        body_hash: value(BODY_HASH, row.body_hash),
        text_hash: value(flags::TEXT_HASH, row.text_hash),
        evidence,
    }
}

/// Return a page that matches a kept page as a copy of it.
fn copy_of(kept: &Row, evidence: &Evidence, page: &Prepared) -> Copy {
    let row = &page.page.row;
    let is_same_body = row.flags & BODY_HASH == 0 || (kept.flags & BODY_HASH != 0 && kept.body_hash == row.body_hash);
    Copy {
        original: kept.sequence,
        url: row.url_hash as u32,
        host: page.page.host_name,
        title: if same_title(evidence, &page.evidence) { 0 } else { title_of(page.evidence.term_bytes()) },
        text: if is_same_body { 0 } else { row.body_hash as u32 },
    }
}
