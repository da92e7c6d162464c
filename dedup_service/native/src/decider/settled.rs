//! The settled entries: those that left the window, in the store and all tables.
//!
//! Tables change exactly `window` pages behind the log: the cells that a page is probed against are as they were after
//! the outcome of the page that many places before it. So an answer does not depend on how the log was cut into batches.

use std::collections::{BTreeMap, VecDeque};

use super::State;
use super::candidates::{Candidates, Oldest};
use super::entries::Entries;
use super::error::Result;
use super::found::{Found, Near, OfPage};
use super::page::{Entry, Prepared, Removed, keys_of};
use super::tables::{Tables, fingerprint, is_indexed, live_from};
use crate::evidence::Evidence;
use crate::rule::Rule;
use crate::similarity::sketch_distance;
use crate::store::{self, Row};
use crate::tables::cells::{self, Change, Probe};
use crate::tables::hamming;
use crate::tables::hash_rows::{CROWD, HashRows};
use crate::window::Window;
use crate::window::flags::{BODY_DECIDES, SETTLED, TEXT_HASH};

/// Entries with one fingerprint, at most, the earliest: the words of a page in another order have the same one, so a site
/// could make any number of them.
pub(super) const MAX_IDENTICAL: usize = 512;
/// Entries with one text, at most: copies are not kept, so there are more only where pages were updated to it.
pub(super) const MAX_EQUAL: usize = 64;
/// Entries behind the window, and removed ones, that wait until a page is probed, at most.
const MAX_WAITING: usize = 1024;
/// Rows whose sieves are given back together.
const SIEVE_ROWS: u32 = 4096;
/// Rows that are asked for at once where the oldest are read.
const OLDEST_AHEAD: u32 = 256;

/// A removed entry that is in the cells, or comes there.
#[derive(Clone, Debug)]
struct Removal {
    ordinal: u64,
    row: Row,
    /// Its number in the store; None before it is settled.
    number: Option<u32>,
    /// Its path; before it is settled its keys.
    path: Vec<u8>,
}

/// What is asked for of pages.
pub(super) struct Asked<'a> {
    /// Bits in which two sketches may differ, for rules with a table; None if fingerprints decide.
    pub(super) most_apart: Option<u32>,
    /// Entries with one fingerprint, at most.
    pub(super) identical: usize,
    /// Entries with one hash, at most.
    pub(super) equal: usize,
    /// Near entries of one channel from which on they are listed as a crowd.
    pub(super) crowd: usize,
    /// By page, the URL that a correction calls its original.
    pub(super) targets: &'a [Option<u64>],
}

/// Store, tables, and the removed entries that these still have.
pub struct Settled {
    entries: Box<dyn Entries>,
    tables: Tables,
    /// In the order of their removal.
    removals: VecDeque<Removal>,
    /// Removed entries that the store and the tables still have.
    gone: BTreeMap<u32, Row>,
    /// No live entry is before this row.
    oldest: u32,
    /// How far rows were asked for.
    fetched: u32,
    /// Pages of the window.
    length: u64,
    levels: usize,
    /// What the cells have for the pages that are decided.
    in_cells: cells::Found,
}

impl Settled {
    /// Return the settled entries of a store, which are in the tables. length: pages of the window. levels: keys of each
    /// part of a page.
    pub fn new(entries: Box<dyn Entries>, tables: Tables, length: u64, levels: usize) -> Self {
        Self {
            entries,
            tables,
            removals: VecDeque::new(),
            gone: BTreeMap::new(),
            oldest: 0,
            fetched: 0,
            length,
            levels,
            in_cells: cells::Found::default(),
        }
    }

    /// Return the live entries with a URL's hash, ascending.
    pub(super) fn visits(&self, url: u64) -> Result<Vec<(u32, Row)>> {
        let mut numbers = self.tables.urls.rows(url);
        numbers.retain(|number| !self.gone.contains_key(number));
        self.entries.retain_live(&mut numbers);
        let rows = self.entries.rows(&numbers)?;
        let known = numbers.into_iter().zip(rows).filter_map(|(number, row)| Some((number, row?)));
        Ok(known.filter(|(_, row)| row.url_hash == url).collect())
    }

    /// Put settled entries of another process, in order, behind those that there are; in memory they get new numbers.
    ///
    /// # Errors
    /// As appending, or if a path is none.
    fn restore_settled(&mut self, entries: &[Entry]) -> Result<()> {
        for some in entries.chunks(MAX_WAITING) {
            let added: Vec<store::Entry> = some.iter().map(Entry::stored).collect();
            let first = self.entries.append(&added)?;
            let rows: Vec<(u32, Row)> = (first..).zip(some).map(|(number, entry)| (number, entry.row)).collect();
            self.tables.add(&rows)?;
            for (number, entry) in (first..).zip(some) {
                self.restore_cells(number, &entry.stored().row, &entry.keys)?;
            }
        }
        Ok(())
    }

    /// Take over the removed entries that the cells still need, in the order of their removal. `numbered`: whether the
    /// store has given those that are settled their numbers.
    ///
    /// # Errors
    /// As `restore_settled`.
    fn restore_removed(&mut self, removed: &[Removed], numbered: bool) -> Result<()> {
        for Removed { ordinal, entry } in removed {
            let Entry { row, keys, mut number, .. } = entry.clone();
            if let (Some(own), true) = (number, numbered) {
                self.restore_cells(own, &row, &keys)?;
            } else if number.is_some() {
                let new = store::Entry { row, path: &[], evidence: &[] };
                let first = self.entries.append(&[new])?;
                self.entries.remove(&[first])?;
                self.restore_cells(first, &row, &keys)?;
                number = Some(first);
            }
            self.removals.push_back(Removal { ordinal: *ordinal, row, number, path: keys });
        }
        Ok(())
    }

    fn restore_cells(&mut self, number: u32, row: &Row, path: &[u8]) -> Result<()> {
        Ok(self.tables.cells.restore(number, row.ordinal, row.sieve, path)?)
    }

    /// Remove what is gone from the store and the tables.
    fn flush(&mut self) -> Result<()> {
        if self.gone.is_empty() {
            return Ok(());
        }
        let gone = std::mem::take(&mut self.gone);
        let (numbers, rows): (Vec<u32>, Vec<(u32, Row)>) = gone.into_iter().map(|gone| (gone.0, gone)).unzip();
        self.tables.remove(&rows)?;
        self.entries.remove(&numbers)?;
        Ok(())
    }

    /// Let entries leave the window, and removed ones the cells, that are due for some pages; probe the cells for these.
    ///
    /// ordinal: of the first page, before which nothing else is due.
    pub(super) fn settle_for(
        &mut self,
        window: &mut Window,
        ordinal: u64,
        pages: &[Prepared],
        by_keys: bool,
    ) -> Result<cells::Found> {
        self.flush()?;
        let length = self.length as i64;
        let last = ordinal as i64 - length + (pages.len() as i64 - 1).max(0);
        let first = self.entries.next_row();
        let unsettled: Vec<_> = window.unsettled(last).collect();
        let keys: Vec<Vec<u32>> = unsettled.iter().map(|(young, _)| keys_of(&young.keys, self.levels)).collect();
        let due = self.removals.iter().take_while(|removal| removal.ordinal as i64 <= last).count();
        let (mut changes, mut done) = (Vec::with_capacity(unsettled.len() + due), Vec::new());
        let mut left = self.removals.iter().take(due).peekable();
        let number_of = |sequence: i64| {
            let place = unsettled.binary_search_by_key(&sequence, |(young, _)| young.row.sequence).ok()?;
            Some(first + place as u32)
        };
        // What one page did is applied in this order: its own entry, then the removals.
        for (place, (young, sieve)) in unsettled.iter().enumerate() {
            while let Some(removal) = left.next_if(|removal| removal.ordinal < young.row.ordinal) {
                changes.push(change_of(removal, &number_of));
                done.push(removal.ordinal as i64);
            }
            let page = Probe { keys: &keys[place], sieve: *sieve };
            changes.push(Change::Insert { row: first + place as u32, ordinal: young.row.ordinal, page });
            done.push(young.row.ordinal as i64);
        }
        for removal in left {
            changes.push(change_of(removal, &number_of));
            done.push(removal.ordinal as i64);
        }
        let probes: Vec<Probe> = pages
            .iter()
            .map(|page| Probe { keys: if by_keys { &page.keys } else { &[] }, sieve: page.sieve })
            .collect();
        let first_due = ordinal as i64 - length;
        let due_of: Vec<usize> =
            (0..pages.len() as i64).map(|page| done.partition_point(|done| *done <= first_due + page)).collect();
        let (found, mut paths) = self.tables.cells.follow(&changes, &due_of, &probes)?;
        let is_removal: Vec<bool> = changes.iter().map(|change| matches!(change, Change::Remove { .. })).collect();
        if changes.is_empty() {
            return Ok(found);
        }
        let taken: Vec<u32> = changes
            .iter()
            .filter_map(|change| match change {
                Change::Remove { row, .. } => Some(*row),
                Change::Insert { .. } => None,
            })
            .collect();
        drop(changes);
        let mut inserted = is_removal.iter();
        paths.retain(|_| inserted.next() == Some(&false));
        self.removals.drain(..due);
        self.append(window, last, first, paths)?;
        self.release_sieves(&taken);
        Ok(found)
    }

    /// Give the entries that leave the window their rows in store and tables. Of removed ones only the row is left.
    fn append(&mut self, window: &mut Window, last: i64, first: u32, paths: Vec<Vec<u8>>) -> Result<()> {
        if paths.is_empty() {
            return Ok(());
        }
        let (mut dead, mut live) = (Vec::new(), Vec::new());
        let mut added = Vec::with_capacity(paths.len());
        for ((number, (young, sieve)), path) in (first..).zip(window.unsettled(last)).zip(&paths) {
            let row = Row { flags: young.row.flags | SETTLED, sieve, ..young.row };
            let path: &[u8] = if young.is_live() { path } else { &[] };
            added.push(store::Entry { row, path, evidence: &young.evidence });
            if young.is_live() {
                live.push((number, row));
            } else {
                dead.push((number, row.sequence));
            }
        }
        self.entries.append(&added)?;
        drop(added);
        for (number, sequence) in &dead {
            let waiting = self.removals.iter_mut().find(|one| one.number.is_none() && one.row.sequence == *sequence);
            if let Some(removal) = waiting {
                (removal.number, removal.path) = (Some(*number), paths[(number - first) as usize].clone());
            }
        }
        window.settle(first, paths.into_iter().map(Vec::into_boxed_slice));
        self.entries.remove(&dead.into_iter().map(|(number, _)| number).collect::<Vec<u32>>())?;
        self.tables.add(&live)
    }

    /// Give back the memory of sieves that nothing needs any more: chunks of them without a row in store or cells.
    fn release_sieves(&mut self, lost: &[u32]) {
        let end = self.entries.next_row();
        let mut chunks: Vec<u32> = lost.iter().map(|row| row / SIEVE_ROWS).collect();
        chunks.sort_unstable();
        chunks.dedup();
        for first in chunks.into_iter().map(|chunk| chunk * SIEVE_ROWS) {
            let Some(stop) = first.checked_add(SIEVE_ROWS).filter(|stop| *stop <= end) else { continue };
            let rows = first..stop;
            let is_live = self.entries.next_live(first).is_some_and(|row| rows.contains(&row));
            if !is_live && !self.removals.iter().any(|one| one.number.is_some_and(|row| rows.contains(&row))) {
                self.tables.cells.release_sieves(rows);
            }
        }
    }

    /// Return what tables and store have for some pages. cells: what `settle_for` returned for these.
    pub(super) fn probe(&mut self, pages: &[Prepared], cells: &cells::Found, asked: &Asked) -> Result<Found> {
        self.flush()?;
        let mut of_pages = vec![OfPage::default(); pages.len()];
        let mut pairs: Vec<Pair> = Vec::with_capacity(cells.rows.len());
        let mut start = 0;
        for (page, (&end, &probed)) in cells.ends.iter().zip(&cells.probed).enumerate() {
            of_pages[page].looked_at = probed;
            pairs.extend(cells.rows[start..end].iter().map(|row| (page as u32, *row, By::Cells)));
            start = end;
        }
        let crowds = self.probe_near(pages, asked, &mut of_pages, &mut pairs)?;
        let equal = self.look_up(pages, asked)?;
        let mut numbers: Vec<u32> = pairs.iter().map(|(_, row, _)| *row).collect();
        numbers.extend(equal.iter().map(|equal| equal.number));
        numbers.sort_unstable();
        numbers.dedup();
        self.entries.retain_live(&mut numbers);
        let (mut data, mut ends) = (Vec::new(), Vec::with_capacity(numbers.len()));
        self.entries.read_evidence(&numbers, &mut data, &mut ends)?;
        let span = |place: usize| (if place == 0 { 0 } else { ends[place - 1] })..ends[place];
        pairs.sort_unstable();
        pairs.dedup_by_key(|(page, row, _)| (*page, *row));
        let (mut wanted, mut near) = (vec![false; numbers.len()], Vec::with_capacity(pairs.len()));
        for (page, row, by) in pairs {
            let Ok(place) = numbers.binary_search(&row) else { continue };
            let is_near = asked.most_apart.is_none_or(|most_apart| {
                let theirs = Evidence::new(&data[span(place)]);
                let ours = &pages[page as usize].evidence;
                theirs.shingles > 0 && distance_of(ours, &theirs) <= most_apart
            });
            if is_near {
                near.push((page, place, by));
                wanted[place] = true;
            }
        }
        for one in &equal {
            if let Ok(place) = numbers.binary_search(&one.number) {
                wanted[place] = true;
            }
        }
        let chosen: Vec<usize> = (0..numbers.len()).filter(|place| wanted[*place]).collect(); // each would be a read
        let rows = self.entries.rows(&chosen.iter().map(|place| numbers[*place]).collect::<Vec<u32>>())?;
        let mut added = vec![None; numbers.len()];
        let spans: Vec<_> = chosen.iter().map(|place| span(*place)).collect();
        let mut found = Found::new(0, data);
        for ((place, row), span) in chosen.into_iter().zip(rows).zip(spans) {
            added[place] = row.map(|row| found.add(row, numbers[place], span));
        }
        for (page, place, by) in near {
            let of_page = &mut of_pages[page as usize];
            of_page.near.extend(added[place]);
            if by == By::Cells {
                of_page.by_cells.extend(added[place]);
            }
        }
        for one in equal {
            let place = numbers.binary_search(&one.number).ok().and_then(|place| added[place]);
            let of_page = &mut of_pages[one.page];
            let OfPage { urls, claims, texts, bodies, targets, .. } = of_page;
            [urls, claims, texts, bodies, targets][one.kind].extend(place);
        }
        for (page, channel, numbers) in crowds {
            let rows = self.entries.rows(&numbers)?.into_iter().flatten();
            let near =
                |row: Row| Near { channel: channel as u8, value: fingerprint(&row, channel), sequence: row.sequence };
            of_pages[page].crowd.extend(rows.map(near));
        }
        found.pages = of_pages;
        Ok(found)
    }

    /// Append what is near to the fingerprints of pages; return the crowds: page, channel and rows.
    fn probe_near(
        &self,
        pages: &[Prepared],
        asked: &Asked,
        of_pages: &mut [OfPage],
        pairs: &mut Vec<Pair>,
    ) -> Result<Vec<(usize, usize, Vec<u32>)>> {
        let (mut answers, mut crowds) = (hamming::Found::default(), Vec::new());
        for (channel, near) in self.tables.near.iter().enumerate() {
            let Some(near) = near else { continue };
            let asking: Vec<usize> =
                (0..pages.len()).filter(|page| is_indexed(&pages[*page].page.row, channel)).collect();
            let values: Vec<u64> = asking.iter().map(|page| fingerprint(&pages[*page].page.row, channel)).collect();
            near.index.probe_batch(&values, near.radius, asked.identical, &mut answers)?;
            for (query, page) in asking.into_iter().enumerate() {
                let rows = answers.of(query);
                of_pages[page].looked_at += rows.len() as u32;
                pairs.extend(rows.iter().map(|near| (page as u32, near.row, By::Distance)));
                if rows.len() >= asked.crowd {
                    crowds.push((page, channel, rows.iter().map(|near| near.row).collect()));
                }
            }
        }
        Ok(crowds)
    }

    /// Return the live entries with the hashes of pages, in order of kind, page and row.
    fn look_up(&self, pages: &[Prepared], asked: &Asked) -> Result<Vec<Equal>> {
        let (most, mut found) = (asked.equal, Vec::new());
        let target = |place: usize| asked.targets.get(place).copied().flatten();
        let hashes: [(&HashRows, &HashOf); 5] = [
            (&self.tables.urls, &|_, page| Some(page.page.row.url_hash)),
            (&self.tables.urls, &|_, page| page.page.claim),
            (&self.tables.texts, &|_, page| page.has(TEXT_HASH).then_some(page.page.row.text_hash)),
            (&self.tables.bodies, &|_, page| page.has(BODY_DECIDES).then_some(page.page.row.body_hash)),
            (&self.tables.urls, &|place, _| target(place)),
        ];
        let fields: [fn(&Row) -> u64; 5] =
            [|row| row.url_hash, |row| row.url_hash, |row| row.text_hash, |row| row.body_hash, |row| row.url_hash];
        for (kind, ((table, hash_of), field)) in hashes.into_iter().zip(fields).enumerate() {
            let (asking, values): (Vec<usize>, Vec<u64>) =
                pages.iter().enumerate().filter_map(|(place, page)| Some((place, hash_of(place, page)?))).unzip();
            let (ends, rows) = table.rows_many(&values);
            let mut start = 0;
            for ((page, value), end) in asking.into_iter().zip(values).zip(ends) {
                let mut numbers = rows[start..end].to_vec();
                start = end;
                if numbers.is_empty() {
                    continue;
                }
                if numbers.len() >= CROWD {
                    numbers = table.rows(value);
                }
                self.entries.retain_live(&mut numbers);
                let mut equal = 0;
                for some in numbers.chunks(most) {
                    for (number, row) in some.iter().zip(self.entries.rows(some)?) {
                        if equal < most && row.is_some_and(|row| field(&row) == value) {
                            found.push(Equal { kind, page, number: *number });
                            equal += 1;
                        }
                    }
                    if equal >= most {
                        break;
                    }
                }
            }
        }
        Ok(found)
    }

    /// Return the first live entries from a row on, `limit` at most.
    pub(super) fn live(&self, first: u32, limit: usize) -> Result<Vec<(u32, Row)>> {
        let live = live_from(&*self.entries, first).filter(|number| !self.gone.contains_key(number));
        let numbers: Vec<u32> = live.take(limit).collect();
        let rows = self.entries.rows(&numbers)?;
        Ok(numbers.into_iter().zip(rows).filter_map(|(number, row)| Some((number, row?))).collect())
    }

    /// Return a live entry with its evidence and its path.
    fn read(&self, number: u32, row: Row) -> Result<Entry> {
        let mut evidence = Vec::new();
        self.entries.read_evidence(&[number], &mut evidence, &mut Vec::new())?;
        Ok(Entry { row, evidence, keys: self.entries.path(number)?, number: Some(number) })
    }
}

impl Candidates for Settled {
    fn count(&self) -> usize {
        self.entries.count().saturating_sub(self.gone.len())
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn levels(&self) -> usize {
        self.levels
    }

    fn probe_for(&mut self, rule: &Rule) -> Result<()> {
        self.flush()?;
        self.tables.probe_for(rule, &*self.entries)
    }

    fn restore(&mut self, state: &State) -> Result<()> {
        self.restore_settled(&state.settled)?;
        self.restore_removed(&state.removed, state.numbered)
    }

    fn find(&mut self, sequence: i64) -> Result<Option<(u32, Option<Row>)>> {
        let mut number = self.entries.find(sequence)?;
        if number.and_then(|number| self.gone.get(&number)).is_some_and(|row| row.sequence != sequence) {
            self.flush()?; // of several that a base has erased, the store finds the first
            number = self.entries.find(sequence)?;
        }
        let Some(number) = number.filter(|number| !self.gone.contains_key(number)) else { return Ok(None) };
        Ok(self.entries.rows(&[number])?.into_iter().next().map(|row| (number, row)))
    }

    fn entry(&mut self, sequence: i64) -> Result<Option<Entry>> {
        let Some((number, Some(row))) = self.find(sequence)? else { return Ok(None) };
        self.read(number, row).map(Some)
    }

    fn visit(&self, _: Option<usize>, url: u64) -> Result<Option<(u32, Row)>> {
        Ok(self.visits(url)?.into_iter().next())
    }

    /// One that its base has erased is passed over: nobody can say what it was.
    fn oldest(&mut self) -> Result<Oldest> {
        while let Some(number) = self.entries.next_live(self.oldest) {
            self.oldest = number;
            if !self.gone.contains_key(&number) {
                if number >= self.fetched {
                    self.fetched = number.saturating_add(OLDEST_AHEAD);
                    self.entries.fetch_rows(number..self.fetched);
                }
                if let Some(row) = self.entries.rows(&[number])?.into_iter().next().flatten() {
                    return Ok(Oldest::Entry(number, row));
                }
            }
            let Some(next) = number.checked_add(1) else { break };
            self.oldest = next;
        }
        Ok(Oldest::None)
    }

    fn remove(&mut self, _: i64, number: u32, row: Option<Row>, after: u64) -> Result<()> {
        let Some(row) = row else {
            return Ok(self.entries.remove(&[number])?); // the store would find it for the next one, too
        };
        let path = self.entries.path(number)?;
        if !path.is_empty() {
            self.removals.push_back(Removal { ordinal: after, row, number: Some(number), path });
        }
        self.gone.insert(number, row);
        Ok(())
    }

    fn removed_young(&mut self, row: Row, keys: &[u8], after: u64) {
        self.removals.push_back(Removal { ordinal: after, row, number: None, path: keys.to_vec() });
    }

    fn removed(&self) -> Vec<Removed> {
        let entry =
            |one: &Removal| Entry { row: one.row, evidence: Vec::new(), keys: one.path.clone(), number: one.number };
        self.removals.iter().map(|one| Removed { ordinal: one.ordinal, entry: entry(one) }).collect()
    }

    fn is_behind(&self, backlog: usize) -> bool {
        self.removals.len() + backlog > MAX_WAITING || self.gone.len() > MAX_WAITING
    }

    fn settle(&mut self, window: &mut Window, ordinal: u64) -> Result<()> {
        self.settle_for(window, ordinal, &[], false).map(|_| ())
    }

    fn find_for(&mut self, window: &mut Window, ordinal: u64, pages: &[Prepared], rule: &Rule) -> Result<Found> {
        let cells = self.settle_for(window, ordinal, pages, rule.keys)?;
        let found = self.probe(pages, &cells, &asked_here(rule));
        self.in_cells = cells;
        found
    }

    fn find_again(&mut self, pages: &[Prepared], place: usize, rule: &Rule) -> Result<Found> {
        let cells = self.in_cells.of(place);
        self.probe(&pages[place..=place], &cells, &asked_here(rule))
    }

    fn piece(&self, first: u32, limit: usize) -> Result<Vec<Entry>> {
        let known = self.live(first, limit)?.into_iter();
        known.map(|(number, row)| self.read(number, row)).collect()
    }

    fn sizes(&self, window: &Window) -> Sizes {
        let mut near = [None, None];
        for (channel, (sizes, table)) in near.iter_mut().zip(&self.tables.near).enumerate() {
            let Some(table) = table else { continue };
            let mut young: Vec<u64> = window
                .iter()
                .filter(|young| is_indexed(&young.row, channel))
                .map(|young| fingerprint(&young.row, channel))
                .collect();
            let settled = table.index.statistics();
            let entries = settled.entries + young.len();
            young.sort_unstable();
            young.dedup();
            *sizes = Some(hamming::Statistics { entries, fingerprints: settled.fingerprints + young.len(), ..settled });
        }
        let tables = &self.tables;
        Sizes {
            near,
            cells: tables.cells.statistics(),
            hashes: [tables.urls.bytes(), tables.texts.bytes(), tables.bodies.bytes()],
            entry_bytes: self.entries.memory_bytes(),
        }
    }
}

/// Sizes of tables and entries; bytes are of memory.
#[derive(Default)]
pub struct Sizes {
    /// Of the Hamming index of each channel, if there is one.
    pub near: [Option<hamming::Statistics>; 2],
    /// Of the cells.
    pub cells: cells::CellStatistics,
    /// Bytes of the tables of URLs, texts and bodies.
    pub hashes: [usize; 3],
    /// Bytes that the entries take beside the tables.
    pub entry_bytes: usize,
}

/// Return what is asked for where all entries are: removed ones leave room for others (`Found::has_room`).
fn asked_here(rule: &Rule) -> Asked<'static> {
    Asked {
        most_apart: rule.most_apart(),
        identical: MAX_IDENTICAL,
        equal: MAX_EQUAL,
        crowd: MAX_IDENTICAL,
        targets: &[],
    }
}

/// A page, a row, and what says that they may be similar.
type Pair = (u32, u32, By);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Cells,
    Distance,
}

type HashOf<'a> = dyn Fn(usize, &Prepared) -> Option<u64> + 'a;

/// A live entry with a hash of a page. kind: of its URL, the URL that it claims, its text, its body, and its target.
struct Equal {
    kind: usize,
    page: usize,
    number: u32,
}

fn change_of<'a>(removal: &'a Removal, number_of: &impl Fn(i64) -> Option<u32>) -> Change<'a> {
    let row = removal.number.or_else(|| number_of(removal.row.sequence)).unwrap_or(u32::MAX);
    let path: &[u8] = if removal.number.is_some() { &removal.path } else { &[] };
    Change::Remove { row, ordinal: removal.row.ordinal, path }
}

/// Return the bits in which the sketches of two pages differ; all if one has none.
fn distance_of(ours: &Evidence, theirs: &Evidence) -> u32 {
    match (ours.sketch(), theirs.sketch()) {
        (Some(ours), Some(theirs)) => sketch_distance(ours, theirs),
        _ => u32::MAX,
    }
}
