//! What a decider needs of the entries behind the window, wherever they are.

use super::State;
use super::answered::Answered;
use super::error::Result;
use super::found::Found;
use super::page::{Entry, Prepared, Removed};
use super::settled::Sizes;
use crate::rule::Rule;
use crate::store::Row;
use crate::window::Window;

/// The earliest entry behind the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oldest {
    /// Its number, and its row; of an entry that is elsewhere, no more of it than sequence and ordinal.
    Entry(u32, Row),
    /// There is none.
    None,
    /// There may be one, but nobody has said which: nothing expires before.
    Unknown,
}

/// The entries behind the window, called settled.
///
/// Invariant: what is found for a page is what one process with all entries would find.
pub trait Candidates: Send + Sync {
    /// Return how many are live.
    fn count(&self) -> usize;

    /// Return the pages of the window.
    fn length(&self) -> u64;

    /// Return the keys of each part of a page.
    fn levels(&self) -> usize;

    /// Have what a rule probes.
    ///
    /// # Errors
    /// As building an index that is not there.
    fn probe_for(&mut self, rule: &Rule) -> Result<()>;

    /// Take over the settled and the removed entries of a state.
    ///
    /// # Errors
    /// If they contradict what is there.
    fn restore(&mut self, state: &State) -> Result<()>;

    /// Return the live one at a sequence: its number and its row, which is None if its base has erased it.
    ///
    /// # Errors
    /// As reading the store.
    fn find(&mut self, sequence: i64) -> Result<Option<(u32, Option<Row>)>>;

    /// Return the live one at a sequence with its evidence and its path, as far as they are here.
    ///
    /// # Errors
    /// As reading the store.
    fn entry(&mut self, sequence: i64) -> Result<Option<Entry>>;

    /// Return the first live one with a URL's hash. place: of the page that is decided; None for a record.
    ///
    /// # Errors
    /// As reading the store.
    fn visit(&self, place: Option<usize>, url: u64) -> Result<Option<(u32, Row)>>;

    /// Return the earliest live one.
    ///
    /// # Errors
    /// As reading the store.
    fn oldest(&mut self) -> Result<Oldest>;

    /// Take note that the page with this ordinal is kept.
    fn kept(&mut self, _ordinal: u64) {}

    /// Remove a live one, as an effect of the page with the ordinal `after`. Its row is None if its base has erased it.
    ///
    /// # Errors
    /// As reading the store.
    fn remove(&mut self, sequence: i64, number: u32, row: Option<Row>, after: u64) -> Result<()>;

    /// Take note that an entry was removed from the window that is not settled; the cells will still need its keys.
    fn removed_young(&mut self, row: Row, keys: &[u8], after: u64);

    /// Return the removed entries that the cells still need, in the order of their removal.
    fn removed(&self) -> Vec<Removed>;

    /// Whether so much waits that it should be settled although no page is probed.
    fn is_behind(&self, backlog: usize) -> bool;

    /// Let entries leave the window that are due when the page with this ordinal is decided.
    ///
    /// # Errors
    /// As changing store and tables.
    fn settle(&mut self, window: &mut Window, ordinal: u64) -> Result<()>;

    /// Do what `settle` does for the last of some pages, and return what is found for all. ordinal: of the first one.
    ///
    /// # Errors
    /// As `settle`, and as reading the store.
    fn find_for(&mut self, window: &mut Window, ordinal: u64, pages: &[Prepared], rule: &Rule) -> Result<Found>;

    /// Return what is found for one of these pages now, since removed entries leave room for others.
    ///
    /// # Errors
    /// As reading the store.
    fn find_again(&mut self, pages: &[Prepared], place: usize, rule: &Rule) -> Result<Found>;

    /// Return the first live ones from a row on, `limit` at most, with their evidence, as far as they are here.
    ///
    /// # Errors
    /// As reading the store.
    fn piece(&self, _first: u32, _limit: usize) -> Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    /// Return the sizes of tables and entries, as far as they are here. window: whose fingerprints count, too.
    fn sizes(&self, _window: &Window) -> Sizes {
        Sizes::default()
    }

    /// What shards answer, if they are there.
    fn answered(&mut self) -> Option<&mut Answered> {
        None
    }
}
