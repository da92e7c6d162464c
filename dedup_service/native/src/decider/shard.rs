//! The entries of one shard of an index, and what they have to say of pages.
//!
//! A shard does not decide. It keeps the pages of which the resolver says so, and removes what that removes. Of entries
//! with one fingerprint or one hash it lists more than the resolver takes, since some may have been removed within the
//! window, of which it does not know yet. So caps do not depend on how many shards there are.

use super::candidates::Candidates;
use super::error::{DeciderError, Result};
use super::found::Found;
use super::page::{Entry, Page, Prepared, young_of};
use super::settled::{Asked, MAX_EQUAL, MAX_IDENTICAL, Settled, Sizes};
use super::{State, most_pages};
use crate::rule::Rule;
use crate::store::Row;
use crate::window::Window;

/// Entries with one fingerprint that are listed beside those that a resolver takes: so many may be removed in a window.
const SPARE_IDENTICAL: usize = 512;

/// What a shard says, as bytes for the resolver, and the sequences of the entries that it names, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// See `Found::encode`.
    pub bytes: Vec<u8>,
    /// Of the entries.
    pub sequences: Vec<i64>,
}

impl Told {
    fn new(found: &Found) -> Self {
        let sequences = found.candidates.iter().map(|candidate| candidate.row.sequence).collect();
        Self { bytes: found.encode(), sequences }
    }
}

/// Entries that were kept, in the order of the log: those that are due at a page are settled when it is answered.
pub struct Shard {
    rule: Rule,
    settled: Settled,
    window: Window,
}

impl Shard {
    /// Return the shard that has some settled entries.
    ///
    /// # Errors
    /// As building an index of the entries, if the rule probes one that is not there.
    pub fn new(rule: Rule, mut settled: Settled) -> Result<Self> {
        settled.probe_for(&rule)?;
        settled.restore(&State::default())?;
        Ok(Self { rule, settled, window: Window::default() })
    }

    /// Return the number of live entries.
    pub fn len(&self) -> usize {
        self.settled.count() + self.window.len()
    }

    /// Use another rule for the next page.
    ///
    /// # Errors
    /// As `new`.
    pub fn set_rule(&mut self, rule: Rule) -> Result<()> {
        self.settled.probe_for(&rule)?;
        self.rule = rule;
        Ok(())
    }

    /// Keep pages that come behind all others.
    pub fn keep(&mut self, pages: &[Entry]) {
        self.window.announce(pages.iter().map(|entry| young_of(entry.row, &entry.evidence, &entry.keys)));
        (0..pages.len()).for_each(|page| self.window.keep(page, true));
        self.window.finish();
    }

    /// Remove the live entry at a sequence, as an effect of the page with the ordinal `after`.
    ///
    /// # Errors
    /// `Gone` if there is none.
    pub fn remove(&mut self, sequence: i64, after: u64) -> Result<()> {
        if let Some(young) = self.window.get(sequence) {
            self.settled.removed_young(young.row, &young.keys, after);
            self.window.remove(sequence);
            return Ok(());
        }
        let Some((number, row)) = self.settled.find(sequence)? else { return Err(DeciderError::Gone(sequence)) };
        self.settled.remove(sequence, number, row, after)?;
        if let Some(row) = row {
            self.window.forget(row.ordinal as i64);
        }
        Ok(())
    }

    /// Return what the entries say of pages that are decided together: for each part that a decider takes at once.
    ///
    /// first: ordinal of the first page. targets: of each page the URL that a correction calls its original.
    ///
    /// # Errors
    /// As changing and reading store and tables.
    pub fn answer(&mut self, first: u64, pages: &[Page], targets: &[Option<u64>]) -> Result<Vec<Told>> {
        let (length, most) = (self.settled.length(), most_pages(self.settled.length()));
        let mut told = Vec::new();
        for (part, pages) in pages.chunks(most).enumerate() {
            let done = part * most;
            let (ordinal, levels) = (first + done as u64, self.settled.levels());
            let pages: Vec<Prepared> =
                (ordinal..).zip(pages).map(|(ordinal, page)| Prepared::new(*page, ordinal, levels)).collect();
            let cells = self.settled.settle_for(&mut self.window, ordinal, &pages, self.rule.keys)?;
            self.window.leave(ordinal as i64 + pages.len() as i64 - 1 - length as i64);
            let asked = Asked {
                most_apart: self.rule.most_apart(),
                identical: MAX_IDENTICAL + SPARE_IDENTICAL,
                equal: MAX_EQUAL + length as usize,
                crowd: 1,
                targets: targets.get(done..).unwrap_or_default(),
            };
            told.push(Told::new(&self.settled.probe(&pages, &cells, &asked)?));
        }
        Ok(told)
    }

    /// Do what `answer` does to the entries, up to the page with this ordinal.
    ///
    /// # Errors
    /// As changing store and tables.
    pub fn settle(&mut self, ordinal: u64) -> Result<()> {
        self.settled.settle(&mut self.window, ordinal)?;
        self.window.leave(ordinal as i64 - self.settled.length() as i64);
        Ok(())
    }

    /// Return the earliest entries as bytes, `most` of them: sequence and ordinal, 64 bits each; and whether they are all.
    ///
    /// # Errors
    /// As reading the store.
    pub fn oldest(&self, most: usize) -> Result<(Vec<u8>, bool)> {
        let rows = self.settled.live(0, most)?;
        let bytes = rows.iter().flat_map(|(_, row)| [row.sequence.to_le_bytes(), row.ordinal.to_le_bytes()]);
        Ok((bytes.flatten().collect(), rows.len() < most))
    }

    /// Return the sequence of the earliest settled entry.
    ///
    /// # Errors
    /// As reading the store.
    pub fn first(&self) -> Result<Option<i64>> {
        Ok(self.settled.live(0, 1)?.first().map(|(_, row)| row.sequence))
    }

    /// Return whether there is a live entry at a sequence.
    ///
    /// # Errors
    /// As reading the store.
    pub fn holds(&mut self, sequence: i64) -> Result<bool> {
        Ok(self.window.get(sequence).is_some() || self.settled.find(sequence)?.is_some())
    }

    /// Return what is to be said of the entries at a URL's hash.
    ///
    /// # Errors
    /// As reading the store.
    pub fn at_url(&self, url: u64) -> Result<Told> {
        Ok(named(self.settled.visits(url)?.into_iter().map(|(_, row)| row)))
    }

    /// Return what is to be said of the live entries at some sequences.
    ///
    /// # Errors
    /// As reading the store.
    pub fn at(&mut self, sequences: &[i64]) -> Result<Told> {
        let mut rows = Vec::new();
        for sequence in sequences {
            let erased = Row { sequence: *sequence, ..Row::default() };
            let young = self.window.get(*sequence).map(|young| young.row);
            rows.extend(match young {
                None => self.settled.find(*sequence)?.map(|(_, row)| row.unwrap_or(erased)),
                young => young,
            });
        }
        rows.sort_by_key(|row| row.sequence);
        rows.dedup_by_key(|row| row.sequence);
        Ok(named(rows.into_iter()))
    }

    /// Return the sizes of tables and entries.
    pub fn sizes(&self) -> Sizes {
        self.settled.sizes(&self.window)
    }
}

fn named(rows: impl Iterator<Item = Row>) -> Told {
    let mut found = Found::default();
    rows.for_each(|row| found.put(row, &[]));
    Told::new(&found)
}
