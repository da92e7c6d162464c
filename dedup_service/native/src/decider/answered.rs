//! The settled entries of a resolver: what all shards answer of them.
//!
//! An entry settles here when it settles in its shard: from then on the shard answers for it. Of an entry that is removed
//! after that, the sequence is remembered until its shard knows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::State;
use super::candidates::{Candidates, Oldest};
use super::error::{DeciderError, Result};
use super::found::Found;
use super::page::{Entry, Prepared, Removed};
use super::wire::{Reader, begun, put_list, unreadable};
use crate::rule::Rule;
use crate::store::Row;
use crate::window::Window;

/// What one shard says of a message of the log.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answer<'a> {
    /// Of the pages that are decided together, in order: bytes of `Shard::answer`.
    pub batches: &'a [&'a [u8]],
    /// Of the entries that its record speaks of: bytes of `Shard::at` or `Shard::at_url`.
    pub record: Option<&'a [u8]>,
    /// The earliest entries, if any may expire: bytes of `Shard::oldest`.
    pub oldest: &'a [u8],
    /// Whether the shard has no others.
    pub is_all: bool,
}

/// An entry that was removed, as an effect of the page with the ordinal `after` or of a record that follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// See above.
    pub after: u64,
    /// Of the entry.
    pub sequence: i64,
    /// Of the entry.
    pub ordinal: u64,
}

/// What a message of the log has done to the entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Ordinal of the first page that was decided in it, or of the next page if none was.
    pub first: u64,
    /// Of each page that was decided in it, whether it is kept: 1 or 0.
    pub kept: Vec<u8>,
    /// In the order of their removal.
    pub removed: Vec<Removal>,
}

/// The settled entries of all shards, as far as their answers have them.
///
/// Invariant: `present` and each of `batches` have an answer of every shard, to the same pages.
#[derive(Debug, Default)]
pub struct Answered {
    shards: usize,
    length: u64,
    levels: usize,
    live: usize,
    settled_to: i64,
    /// Whether entries may expire.
    expires: bool,
    oldest: OldestOfAll,
    /// Removed settled entries, by sequence, of which the shards do not know yet.
    gone: BTreeMap<i64, Removal>,
    /// Removed entries that are not settled, by sequence.
    young_gone: BTreeMap<i64, Removed>,
    batches: VecDeque<Vec<Found>>,
    present: Vec<Found>,
    record: Vec<Row>,
    /// Ordinal of the first page whose effects nobody has taken.
    untold: u64,
    kept: Vec<u64>,
    removals: Vec<Removal>,
}

impl Answered {
    /// Return the entries of so many shards, `live` of them, before the first message. length: pages of the window.
    /// levels: keys of each part of a page.
    pub fn new(shards: usize, length: u64, levels: usize, live: usize) -> Self {
        Self { shards, length, levels, live, settled_to: -1, ..Self::default() }
    }

    /// Return the entries as `state` had them. The other arguments are those of `new`.
    ///
    /// # Errors
    /// `State` for other bytes.
    pub fn from_state(shards: usize, length: u64, levels: usize, state: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(state)?;
        let (live, settled_to, expires) = (reader.u64()? as usize, reader.i64()?, reader.flag()?);
        let oldest = OldestOfAll {
            is_cut: reader.flag()?,
            listed_to: reader.u64()?,
            listed: reader.list(16, |reader| Ok((reader.i64()?, reader.u64()?)))?.into(),
            ..OldestOfAll::default()
        };
        reader.end()?;
        Ok(Self { settled_to, expires, oldest, ..Self::new(shards, length, levels, live) })
    }

    /// Return what a snapshot has of them beside window and removed entries.
    pub fn state(&self) -> Vec<u8> {
        let mut bytes = begun();
        bytes.extend((self.live as u64).to_le_bytes());
        bytes.extend(self.settled_to.to_le_bytes());
        bytes.extend([u8::from(self.expires), u8::from(self.oldest.is_cut)]);
        bytes.extend(self.oldest.listed_to.to_le_bytes());
        let left: Vec<_> = self.oldest.listed.iter().filter(|one| !self.oldest.removed.contains(&one.0)).collect();
        put_list(&mut bytes, left.into_iter(), |bytes, (sequence, ordinal)| {
            bytes.extend(sequence.to_le_bytes());
            bytes.extend(ordinal.to_le_bytes());
        });
        bytes
    }

    /// Take the answers of all shards to the message that is decided next. first: ordinal of its first page.
    ///
    /// # Errors
    /// `State` if they are not of all shards, or of different pages, or if bytes cannot be read; nothing has changed then.
    pub fn answer(&mut self, first: u64, answers: &[Answer]) -> Result<()> {
        let count = answers.first().map_or(0, |answer| answer.batches.len());
        if answers.len() != self.shards || answers.iter().any(|answer| answer.batches.len() != count) {
            return Err(DeciderError::State(format!(
                "{} of {} shards have answered, or to different pages: all of them have to answer to the same",
                answers.len(),
                self.shards
            )));
        }
        let mut batches = VecDeque::with_capacity(count);
        for place in 0..count {
            let founds: Vec<Found> =
                answers.iter().map(|answer| Found::decode(answer.batches[place])).collect::<Result<_>>()?;
            batches.push_back(founds);
        }
        let mut record = Vec::new();
        for bytes in answers.iter().filter_map(|answer| answer.record) {
            let found = Found::decode(bytes)?;
            record.extend(found.candidates.iter().map(|candidate| candidate.row));
        }
        record.sort_by_key(|row| row.sequence);
        let listed = answers.iter().map(|answer| listed(answer.oldest)).collect::<Result<Vec<_>>>()?;
        let pages: usize = batches.iter().map(|founds| founds[0].pages.len()).sum();
        (self.batches, self.record) = (batches, record);
        if count > 0 {
            self.expires = answers.iter().any(|answer| !answer.is_all || !answer.oldest.is_empty());
            if !self.expires {
                self.oldest = OldestOfAll::default(); // it is not needed, and would grow
            }
        }
        if listed.iter().any(|listed| !listed.is_empty()) {
            let is_all: Vec<bool> = answers.iter().map(|answer| answer.is_all).collect();
            let known = |sequence| !self.gone.contains_key(&sequence) && !self.young_gone.contains_key(&sequence);
            let listed_to = (first + pages as u64).saturating_sub(self.length);
            self.oldest = OldestOfAll::new(&listed, &is_all, known, listed_to);
        }
        Ok(())
    }

    /// Return what the message has done for which the shards have answered. next: ordinal of the next page.
    ///
    /// # Errors
    /// `State` if it has fewer pages than they have answered for.
    pub fn take_outcome(&mut self, next: u64) -> Result<Outcome> {
        if !self.batches.is_empty() {
            return Err(DeciderError::State(
                "a message has fewer pages than the shards have answered for: they do not read the same log".to_owned(),
            ));
        }
        let first = std::mem::replace(&mut self.untold, next);
        let mut kept = vec![0; next.saturating_sub(first) as usize];
        for ordinal in self.kept.drain(..) {
            if let Some(kept) = ordinal.checked_sub(first).and_then(|page| kept.get_mut(page as usize)) {
                *kept = 1;
            }
        }
        Ok(Outcome { first, kept, removed: std::mem::take(&mut self.removals) })
    }

    /// Leave the entries up to an ordinal to their shards, and forget removals of which these know.
    fn settle_to(&mut self, window: &mut Window, last: i64) {
        if last <= self.settled_to {
            return;
        }
        self.settled_to = last;
        let mut settled = 0;
        for (young, _) in window.unsettled(last) {
            settled += 1;
            let (sequence, ordinal) = (young.row.sequence, young.row.ordinal);
            if let Some(gone) = self.young_gone.remove(&sequence) {
                self.gone.insert(sequence, Removal { after: gone.ordinal, sequence, ordinal });
            } else {
                self.live += 1;
                if self.expires {
                    self.oldest.append(sequence, ordinal);
                }
            }
        }
        window.settle(0, (0..settled).map(|_| Box::default()));
        self.gone.retain(|_, removal| removal.after as i64 > last);
    }

    fn remember(&mut self, sequence: i64, ordinal: u64, after: u64) -> Removal {
        let removal = Removal { after, sequence, ordinal };
        self.removals.push(removal);
        self.oldest.remove(sequence);
        removal
    }
}

impl Candidates for Answered {
    fn count(&self) -> usize {
        self.live
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn levels(&self) -> usize {
        self.levels
    }

    fn probe_for(&mut self, _: &Rule) -> Result<()> {
        Ok(())
    }

    fn restore(&mut self, state: &State) -> Result<()> {
        self.untold = state.ordinal;
        for Removed { ordinal: after, entry } in &state.removed {
            let Row { sequence, ordinal, .. } = entry.row;
            if entry.number.is_some() {
                self.gone.insert(sequence, Removal { after: *after, sequence, ordinal });
            } else {
                self.young_gone.insert(sequence, Removed { ordinal: *after, entry: entry.clone() });
            }
        }
        Ok(())
    }

    fn find(&mut self, sequence: i64) -> Result<Option<(u32, Option<Row>)>> {
        let row = self.record.iter().find(|row| row.sequence == sequence && !self.gone.contains_key(&sequence));
        Ok(row.map(|row| (0, Some(*row))))
    }

    fn entry(&mut self, sequence: i64) -> Result<Option<Entry>> {
        let found = self.find(sequence)?.and_then(|(number, row)| Some((number, row?)));
        let none = Vec::new;
        Ok(found.map(|(number, row)| Entry { row, evidence: none(), keys: none(), number: Some(number) }))
    }

    fn visit(&self, place: Option<usize>, url: u64) -> Result<Option<(u32, Row)>> {
        let is_it = |row: &Row| row.url_hash == url && !self.gone.contains_key(&row.sequence);
        let Some(place) = place else { return Ok(self.record.iter().copied().find(is_it).map(|row| (0, row))) };
        let targets = self.present.iter().flat_map(|found| {
            let targets = found.pages.get(place).map_or(&[][..], |page| &page.targets);
            targets.iter().map(|target| found.get(*target).0.row)
        });
        Ok(targets.filter(is_it).min_by_key(|row| row.sequence).map(|row| (0, row)))
    }

    fn oldest(&mut self) -> Result<Oldest> {
        Ok(match self.oldest.first() {
            Some((sequence, ordinal)) => Oldest::Entry(0, Row { sequence, ordinal, ..Row::default() }),
            None if self.oldest.is_cut => Oldest::Unknown,
            None => Oldest::None,
        })
    }

    fn kept(&mut self, ordinal: u64) {
        self.kept.push(ordinal);
    }

    fn remove(&mut self, sequence: i64, _: u32, row: Option<Row>, after: u64) -> Result<()> {
        let removal = self.remember(sequence, row.map_or(0, |row| row.ordinal), after);
        self.gone.insert(sequence, removal);
        self.live = self.live.saturating_sub(1);
        Ok(())
    }

    fn removed_young(&mut self, row: Row, keys: &[u8], after: u64) {
        self.remember(row.sequence, row.ordinal, after);
        let entry = Entry { row, evidence: Vec::new(), keys: keys.to_vec(), number: None };
        self.young_gone.insert(row.sequence, Removed { ordinal: after, entry });
    }

    fn removed(&self) -> Vec<Removed> {
        let settled = self.gone.values().map(|&Removal { after, sequence, ordinal }| {
            let row = Row { sequence, ordinal, ..Row::default() };
            Removed { ordinal: after, entry: Entry { row, evidence: Vec::new(), keys: Vec::new(), number: Some(0) } }
        });
        let mut removed: Vec<Removed> = settled.chain(self.young_gone.values().cloned()).collect();
        removed.sort_by_key(|one| (one.ordinal, one.entry.row.sequence));
        removed
    }

    fn is_behind(&self, _: usize) -> bool {
        false
    }

    /// Nothing settles but with the answers to the next pages.
    fn settle(&mut self, _: &mut Window, _: u64) -> Result<()> {
        Ok(())
    }

    fn find_for(&mut self, window: &mut Window, ordinal: u64, pages: &[Prepared], _: &Rule) -> Result<Found> {
        self.present = self.batches.pop_front().unwrap_or_default();
        let answered: BTreeSet<usize> = self.present.iter().map(|found| found.pages.len()).collect();
        if answered != BTreeSet::from([pages.len()]) {
            return Err(DeciderError::State(format!(
                "{} pages are decided together, the shards have answered for {answered:?}: they do not read the same log",
                pages.len()
            )));
        }
        self.settle_to(window, ordinal as i64 - self.length as i64 + pages.len() as i64 - 1);
        Ok(Found::of_all(&self.present, 0..pages.len(), |sequence| self.gone.contains_key(&sequence)))
    }

    fn find_again(&mut self, _: &[Prepared], place: usize, _: &Rule) -> Result<Found> {
        Ok(Found::of_all(&self.present, place..place + 1, |sequence| self.gone.contains_key(&sequence)))
    }

    fn answered(&mut self) -> Option<&mut Answered> {
        Some(self)
    }
}

/// Read what `Shard::oldest` wrote.
fn listed(bytes: &[u8]) -> Result<Vec<(i64, u64)>> {
    if bytes.len() % 16 != 0 {
        return Err(unreadable("the last entry of a list is cut"));
    }
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    Ok(bytes.chunks_exact(16).map(|one| (word(one) as i64, word(&one[8..]))).collect())
}

/// The earliest settled entries of all shards, in order, as far as they are listed: sequence and ordinal.
///
/// Where those that are listed are used up, and there are others, there is no earliest until the next list: then entries
/// expire later, and the order stays.
#[derive(Debug, Default)]
struct OldestOfAll {
    listed: VecDeque<(i64, u64)>,
    /// Those of them that were removed, but the first one never.
    removed: BTreeSet<i64>,
    /// Whether there are others.
    is_cut: bool,
    /// Ordinal before which entries were settled in the shards when these listed them.
    listed_to: u64,
}

impl OldestOfAll {
    /// Return what the lists of all shards say together. `is_all`: of each list, whether the shard has no others. known:
    /// whether an entry counts.
    fn new(lists: &[Vec<(i64, u64)>], is_all: &[bool], known: impl Fn(i64) -> bool, listed_to: u64) -> Self {
        let cut = lists.iter().zip(is_all).filter(|(_, is_all)| !**is_all);
        let bound = cut.filter_map(|(list, _)| list.last()).map(|last| last.0).min();
        let within = |one: &&(i64, u64)| known(one.0) && bound.is_none_or(|bound| one.0 <= bound);
        let mut listed: Vec<(i64, u64)> = lists.iter().flatten().filter(within).copied().collect();
        listed.sort_unstable();
        Self { listed: listed.into(), removed: BTreeSet::new(), is_cut: bound.is_some(), listed_to }
    }

    fn first(&mut self) -> Option<(i64, u64)> {
        while let Some(first) = self.listed.front().copied() {
            if !self.removed.remove(&first.0) {
                return Some(first);
            }
            self.listed.pop_front();
        }
        None
    }

    /// Append an entry that was settled behind all others.
    fn append(&mut self, sequence: i64, ordinal: u64) {
        if !self.is_cut && ordinal >= self.listed_to {
            self.listed.push_back((sequence, ordinal)); // otherwise the next list has it
        }
    }

    fn remove(&mut self, sequence: i64) {
        if self.listed.binary_search_by_key(&sequence, |one| one.0).is_ok() {
            self.removed.insert(sequence);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The earliest one is that of all entries, as far as no shard has cut its list before it.
        #[test]
        fn the_earliest_is_that_of_all_shards(
            owners in prop::collection::vec(0..3usize, 0..40),
            most in 1..8usize,
            removed in prop::collection::vec(0..50i64, 0..30),
        ) {
            let mut live: Vec<i64> = (0..owners.len() as i64).collect();
            let of_shard = |shard| -> Vec<(i64, u64)> {
                let own = live.iter().filter(|sequence| owners[**sequence as usize] == shard);
                own.take(most).map(|sequence| (*sequence, *sequence as u64)).collect()
            };
            let lists: Vec<Vec<(i64, u64)>> = (0..3).map(of_shard).collect();
            let is_all: Vec<bool> = lists.iter().map(|list| list.len() < most).collect();
            let cuts = lists.iter().zip(&is_all).filter(|(_, is_all)| !**is_all);
            let bound = cuts.map(|(list, _)| list[most - 1].0).min();
            let mut oldest = OldestOfAll::new(&lists, &is_all, |_| true, owners.len() as u64);
            oldest.append(50, 50);
            live.extend(bound.is_none().then_some(50));
            for sequence in removed {
                live.retain(|one| *one != sequence);
                oldest.remove(sequence);
                let first = live.first().filter(|first| bound.is_none_or(|bound| **first <= bound));
                prop_assert_eq!(oldest.first(), first.map(|first| (*first, *first as u64)));
            }
        }

        /// Any bytes are a state or a list, or refused.
        #[test]
        fn made_up_states_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(mut answered) = Answered::from_state(2, 16, 4, &bytes) {
                let state = answered.state();
                prop_assert_eq!(Answered::from_state(2, 16, 4, &state).unwrap().state(), state);
                answered.oldest().unwrap();
            }
            let answer = Answer { oldest: &bytes, is_all: true, ..Answer::default() };
            let mut answered = Answered::new(1, 16, 4, 0);
            prop_assert_eq!(answered.answer(0, &[answer]).is_ok(), bytes.len() % 16 == 0);
            let oldest = answered.oldest().unwrap();
            prop_assert_eq!(matches!(oldest, Oldest::Entry(..)), bytes.len() >= 16 && bytes.len() % 16 == 0);
        }
    }

    /// All shards have to answer, and to the same pages.
    #[test]
    fn answers_of_some_shards_are_refused() {
        let bytes = Found::new(1, Vec::new()).encode();
        let batches = [&bytes[..]];
        let answer = Answer { batches: &batches, is_all: true, ..Answer::default() };
        let mut answered = Answered::new(2, 16, 4, 0);
        assert!(answered.answer(0, &[answer]).is_err());
        assert!(answered.answer(0, &[answer, Answer::default()]).is_err());
        answered.answer(0, &[answer, answer]).unwrap();
        assert!(answered.take_outcome(0).is_err(), "a page was answered for and not decided");
    }
}
