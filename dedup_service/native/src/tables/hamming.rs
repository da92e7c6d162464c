//! Every row whose 64-bit fingerprint is within k bits of another one, exactly, for each k from 0 to 7.
//!
//! A level has four tables (`level`, `blocks`). An entry of a bucket is its lane and its row; the whole fingerprint is stored once,
//! by row. A probe scans the lanes of a bucket, many in an instruction, and looks at the fingerprint where a lane is near.
//! The first table that finds a fingerprint reports it, so answers need no set.
//!
//! *Crowds.* Where a bucket is crowded, its fingerprints have some bits in common, the key's at least: their *pattern*.
//! They leave all tables of their level, and have a level of their own, whose blocks are of the bits that vary most. A
//! probe compares its fingerprint with each pattern; what is left of the radius is the radius of the crowd's level. So a
//! 32-bit half that many fingerprints share costs one more probe, over the other half. A crowd can have crowds.
//! A fingerprint is in the first crowd that it fits, in order of their making, so it is found again without a map.
//!
//! *Twins.* The tables have one row of each fingerprint, and an ordered set has the other ones.

use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use super::blocks::{MAX_RADIUS, TABLES};
pub use super::level::Work;
use super::level::{Crowd, GROUP, Level};
use super::row_column::RowColumn;
use crate::error::{Result, TableError};
use crate::huge_pages::HugePool;

/// Bits of a crowd's blocks: at most, so that 4,096 entries do not take more than 32 bytes each for their buckets; and at
/// least, below which a crowd is not worth its buckets.
const CROWD_BITS: u32 = 12;
const LEAST_BITS: u32 = 5;
/// Moved entries of one bucket from which all of the bucket are looked at once, instead of once for each.
const MANY_MOVED: usize = 16;
/// Suspects that are collected while their fingerprints are on the way.
const SUSPECTS: usize = 128;
/// Fingerprints whose buckets are fetched ahead of an insertion, and whose places in them.
const AHEAD: usize = 24;
const NEAR_AHEAD: usize = 8;
/// The level of the fingerprints that are in no crowd.
const MAIN: usize = 0;

/// A row within the radius, and its distance in bits; ordered by distance, then row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Near {
    /// Distance in bits, 0 to 7.
    pub distance: u8,
    /// The row.
    pub row: u32,
}

/// The answers of a batch of probes.
#[derive(Debug, Default)]
pub struct Found {
    near: Vec<Near>,
    ends: Vec<usize>,
}

impl Found {
    /// The rows of all queries, one after another.
    pub fn all(&self) -> &[Near] {
        &self.near
    }

    /// Where the rows of each query end.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// The rows near a query, nearest first, then by row; none for a query that was not in the batch.
    pub fn of(&self, query: usize) -> &[Near] {
        let start = query.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied());
        start.zip(self.ends.get(query)).map_or(&[], |(start, &end)| &self.near[start..end])
    }
}

/// Sizes of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Rows.
    pub entries: usize,
    /// Distinct fingerprints.
    pub fingerprints: usize,
    /// Memory of all parts.
    pub bytes: usize,
    /// Distinct fingerprints of the largest bucket that a probe may scan.
    pub largest_bucket: usize,
    /// Buckets that were split: crowds with a level of their own.
    pub split_buckets: usize,
    /// Buckets of a table, crowds not counted.
    pub buckets: usize,
}

/// A row that a table of a level suspects to be near a query.
#[derive(Clone, Copy)]
struct Suspect {
    query: u32,
    level: u32,
    table: u32,
    row: u32,
}

/// Rows by their 64-bit fingerprints, found by Hamming distance.
pub struct HammingIndex {
    fingerprints: RowColumn<u64>,
    pool: HugePool,
    /// Of all fingerprints, then of crowds; of one that went, an empty one without blocks.
    levels: Vec<Level>,
    vacant: Vec<usize>,
    /// Rows of a fingerprint of which the tables have another row.
    twins: BTreeSet<(u64, u32)>,
    /// Distinct fingerprints, at most, since memory was last given back.
    most: usize,
    probes: AtomicU64,
    buckets: AtomicU64,
    compared: AtomicU64,
}

impl Default for HammingIndex {
    fn default() -> Self {
        Self {
            fingerprints: RowColumn::default(),
            pool: HugePool::default(),
            levels: vec![Level::new(0, u64::MAX)],
            vacant: Vec::new(),
            twins: BTreeSet::new(),
            most: 0,
            probes: AtomicU64::new(0),
            buckets: AtomicU64::new(0),
            compared: AtomicU64::new(0),
        }
    }
}

impl HammingIndex {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// Number of distinct fingerprints.
    pub fn distinct(&self) -> usize {
        self.len() - self.twins.len()
    }

    /// Make an index of rows by their fingerprints, in several threads, at least 1: each group of buckets is laid out once.
    pub fn filled(fingerprints: RowColumn<u64>, threads: usize) -> Self {
        let mut index = Self { fingerprints, ..Self::default() };
        let mut twins = index.fill_tables(0..1, &[], threads);
        twins.sort_unstable();
        index.fill_tables(1..TABLES, &twins, threads);
        index.twins = twins.into_iter().map(|row| (index.fingerprints.value(row), row)).collect();
        index.most = index.distinct();
        index.levels[MAIN].entries = index.most;
        index.split_all(MAIN);
        index
    }

    /// Lay out tables of all fingerprints, each thread some groups of each. twins: rows that are in no table, ascending,
    /// which table 0 finds and this returns.
    fn fill_tables(&mut self, tables: Range<usize>, twins: &[u32], threads: usize) -> Vec<u32> {
        let fingerprints = &self.fingerprints;
        let per_table = self.levels[MAIN].groups.len() / TABLES;
        let share = per_table.div_ceil(threads);
        let groups_of = |table: usize, thread: usize| {
            let first = table * per_table;
            first + (thread * share).min(per_table)..first + ((thread + 1) * share).min(per_table)
        };
        let fill = |thread: usize| {
            let (mut level, mut pool, mut found) = (Level::new(0, u64::MAX), HugePool::default(), Vec::new());
            for table in tables.clone() {
                let groups = groups_of(table, thread);
                level.fill(&mut pool, table, groups.clone(), || {
                    let mut twins = twins.iter().peekable();
                    fingerprints.iter().filter(move |(row, _)| twins.next_if_eq(&row).is_none())
                });
                if table == 0 {
                    for bucket in groups.start * GROUP..groups.end * GROUP {
                        found.extend(level.take_twins(&mut pool, bucket, |row| fingerprints.value(row)));
                    }
                }
            }
            (level, pool, found)
        };
        let filled: Vec<_> = thread::scope(|scope| {
            let fill = &fill;
            let working: Vec<_> = (0..threads).map(|number| scope.spawn(move || fill(number))).collect();
            working.into_iter().map(|work| work.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        let mut all_found = Vec::new();
        for (number, (level, pool, found)) in filled.into_iter().enumerate() {
            let shift = self.pool.absorb(pool);
            for table in tables.clone() {
                self.levels[MAIN].take_groups(&level, groups_of(table, number), shift);
            }
            all_found.extend(found);
        }
        all_found
    }

    /// Add rows with their fingerprints, of which several may have one.
    ///
    /// # Errors
    ///
    /// `Configuration` if there are more of one than of the other, or for row `u32::MAX`; `State` if a row is there
    /// already, or is given twice. Then nothing was added.
    pub fn insert_batch(&mut self, rows: &[u32], fingerprints: &[u64]) -> Result<()> {
        check_lengths(rows, fingerprints)?;
        rows.iter().try_for_each(|&row| check_row(row))?;
        for (done, (&row, &fingerprint)) in rows.iter().zip(fingerprints).enumerate() {
            if !self.fingerprints.insert(row, fingerprint) {
                rows[..done].iter().for_each(|&row| _ = self.fingerprints.remove(row));
                return Err(is_there(row));
            }
        }
        for (place, (&row, &fingerprint)) in rows.iter().zip(fingerprints).enumerate() {
            self.prefetch_insertion(fingerprints, place);
            self.enter(row, fingerprint);
        }
        self.most = self.most.max(self.distinct());
        Ok(())
    }

    fn prefetch_insertion(&self, fingerprints: &[u64], place: usize) {
        let main = &self.levels[MAIN];
        if let Some(&next) = fingerprints.get(place + AHEAD) {
            (0..TABLES).for_each(|table| main.prefetch_spans(table, next, 0));
        }
        if let Some(&next) = fingerprints.get(place + NEAR_AHEAD) {
            main.prefetch_lanes(&self.pool, 0, next, 0);
            (0..TABLES)
                .for_each(|table| main.prefetch_room(&self.pool, main.bucket(table, main.blocks.key(next, table))));
        }
    }

    /// Add a row whose fingerprint is stored already to the tables.
    fn enter(&mut self, row: u32, fingerprint: u64) {
        let (_, number) = self.home(fingerprint);
        if self.is_known(number, fingerprint) {
            self.twins.insert((fingerprint, row));
        } else if self.levels[number].insert(&mut self.pool, fingerprint, row) {
            self.split_crowded(number, fingerprint);
        }
    }

    /// The level of a fingerprint, and the one that has it as a crowd.
    fn home(&self, fingerprint: u64) -> (usize, usize) {
        let (mut above, mut number) = (MAIN, MAIN);
        while let Some(crowd) = self.levels[number].crowds.iter().find(|crowd| crowd.fits(fingerprint)) {
            (above, number) = (number, crowd.level);
        }
        (above, number)
    }

    fn is_known(&self, number: usize, fingerprint: u64) -> bool {
        let (level, mut known) = (&self.levels[number], false);
        let found = |row| known |= self.fingerprints.value(row) == fingerprint;
        level.suspects(&self.pool, 0, level.blocks.dense(fingerprint), 0, &mut Work::default(), found);
        known
    }

    /// Remove rows, with the fingerprints that they have.
    ///
    /// # Errors
    ///
    /// `Configuration` if there are more of one than of the other; `State` if a row is not there, has another
    /// fingerprint, or is given twice. Then nothing was removed.
    pub fn remove_batch(&mut self, rows: &[u32], fingerprints: &[u64]) -> Result<()> {
        check_lengths(rows, fingerprints)?;
        for (done, (&row, &fingerprint)) in rows.iter().zip(fingerprints).enumerate() {
            if self.fingerprints.get(row) != Some(fingerprint) {
                rows[..done].iter().zip(fingerprints).for_each(|(&row, &old)| _ = self.fingerprints.insert(row, old));
                return Err(TableError::State(format!(
                    "row {row} with fingerprint {fingerprint} is not in the index; \
                     remove with the fingerprint that was inserted, once"
                )));
            }
            self.fingerprints.remove(row);
        }
        rows.iter().zip(fingerprints).for_each(|(&row, &fingerprint)| self.leave(row, fingerprint));
        self.compact_if_empty();
        Ok(())
    }

    /// Remove a row from the tables.
    fn leave(&mut self, row: u32, fingerprint: u64) {
        if self.twins.remove(&(fingerprint, row)) {
            return;
        }
        let twin = self.twins.range((fingerprint, 0)..=(fingerprint, u32::MAX)).next().copied();
        if let Some(twin) = twin {
            self.twins.remove(&twin);
        }
        let (mut above, mut number) = self.home(fingerprint);
        self.levels[number].replace(&mut self.pool, fingerprint, row, twin.map(|(_, row)| row));
        while number != MAIN && self.levels[number].entries == 0 && self.levels[number].crowds.is_empty() {
            self.levels[above].crowds.retain(|crowd| crowd.level != number);
            let gone = std::mem::replace(&mut self.levels[number], Level::new(0, 0));
            gone.groups.iter().for_each(|group| self.pool.give_back(group.place, group.lines()));
            self.vacant.push(number);
            (above, number) = self.home(fingerprint);
        }
    }

    /// Give memory back once three quarters of the fingerprints went.
    fn compact_if_empty(&mut self) {
        if self.distinct() < self.most / 4 {
            self.most = self.distinct();
            let old = std::mem::take(&mut self.pool);
            self.levels.iter_mut().for_each(|level| level.compact(&mut self.pool, &old));
        }
    }

    /// Make crowds of the buckets of a fingerprint that are crowded.
    fn split_crowded(&mut self, number: usize, fingerprint: u64) {
        for table in 0..TABLES {
            let level = &self.levels[number];
            let bucket = level.bucket(table, level.blocks.key(level.blocks.dense(fingerprint), table));
            if level.is_crowded(bucket) {
                self.split(number, table, bucket);
            }
        }
    }

    /// Make crowds of all buckets of a level that are crowded.
    fn split_all(&mut self, number: usize) {
        for bucket in 0..self.levels[number].spans.len() {
            if self.levels[number].is_crowded(bucket) {
                self.split(number, bucket >> self.levels[number].blocks.bits(), bucket);
            }
        }
    }

    /// Make a crowd of the fingerprints of a bucket, or of most of them, and move them to a level of their own.
    fn split(&mut self, number: usize, table: usize, bucket: usize) {
        let level = &self.levels[number];
        let mut moved: Vec<(u32, u64)> =
            level.rows(&self.pool, bucket).iter().map(|&row| (row, self.fingerprints.value(row))).collect();
        let Some((crowd, chosen)) = crowd_of(&moved, level.common | level.blocks.mask(table)) else { return };
        moved.retain(|&(_, fingerprint)| crowd.fits(fingerprint));
        self.take_out(number, &moved, crowd);
        let level = Level::new(crowd.mask, chosen);
        let new = self.vacant.pop().unwrap_or(self.levels.len());
        if new == self.levels.len() {
            self.levels.push(level);
        } else {
            self.levels[new] = level;
        }
        self.levels[number].crowds.push(Crowd { level: new, ..crowd });
        for (row, fingerprint) in moved {
            self.levels[new].insert(&mut self.pool, fingerprint, row);
        }
        self.split_all(new);
    }

    /// Remove the entries that a crowd takes from all tables of its level.
    fn take_out(&mut self, number: usize, moved: &[(u32, u64)], crowd: Crowd) {
        let level = &mut self.levels[number];
        for table in 0..TABLES {
            let bucket_of = |fingerprint| level.bucket(table, level.blocks.key(level.blocks.dense(fingerprint), table));
            let mut left: Vec<(usize, u32)> =
                moved.iter().map(|&(row, fingerprint)| (bucket_of(fingerprint), row)).collect();
            left.sort_unstable();
            for same in left.chunk_by(|one, next| one.0 == next.0) {
                if same.len() < MANY_MOVED {
                    for &(bucket, row) in same {
                        level.replace_in(&mut self.pool, bucket, row, None);
                    }
                } else {
                    let fingerprints = &self.fingerprints;
                    level.retain(&mut self.pool, same[0].0, |row| !crowd.fits(fingerprints.value(row)));
                }
            }
        }
        level.entries -= moved.len();
    }

    /// Find every row within `radius` bits of each query.
    ///
    /// radius: 0 to 7. `most_identical`: of the rows that have one fingerprint, so many at most are found, those with the
    /// smallest numbers; otherwise n queries of n rows that have one fingerprint find n * n. found: its former content
    /// goes, its memory is used again.
    ///
    /// # Errors
    ///
    /// `Configuration` for a radius above 7 or `most_identical` 0.
    pub fn probe_batch(&self, queries: &[u64], radius: usize, most_identical: usize, found: &mut Found) -> Result<()> {
        found.near.clear();
        found.ends.clear();
        if radius > MAX_RADIUS {
            return Err(TableError::Configuration(format!(
                "radius {radius} is outside 0..{MAX_RADIUS}, which four 16-bit blocks search exactly; choose another"
            )));
        }
        if most_identical == 0 {
            return Err(TableError::Configuration("most_identical is 0; give 1 or more".into()));
        }
        let ahead = if radius > 3 { 1 } else { 4 };
        let (main, mut work, mut suspects) = (&self.levels[MAIN], Work::default(), Vec::new());
        for (number, &query) in queries.iter().enumerate() {
            for table in 0..TABLES {
                if let Some(&next) = queries.get(number + 4 * ahead) {
                    main.prefetch_spans(table, next, radius);
                }
                if let Some(&next) = queries.get(number + ahead) {
                    main.prefetch_lanes(&self.pool, table, next, radius);
                }
                self.list_suspects(MAIN, table, query, number, radius, &mut work, &mut suspects);
            }
            self.probe_crowds(MAIN, query, number, radius, &mut work, &mut suspects);
            if suspects.len() >= SUSPECTS {
                self.verify(&mut suspects, queries, radius, most_identical, found);
            }
        }
        self.verify(&mut suspects, queries, radius, most_identical, found);
        found.ends.resize(queries.len(), found.near.len());
        let mut start = 0;
        for &end in &found.ends {
            found.near[start..end].sort_unstable();
            start = end;
        }
        self.probes.fetch_add(queries.len() as u64, Relaxed);
        self.buckets.fetch_add(work.buckets, Relaxed);
        self.compared.fetch_add(work.entries, Relaxed);
        Ok(())
    }

    /// List the suspects of all crowds of a level whose pattern is near.
    fn probe_crowds(
        &self,
        above: usize,
        query: u64,
        number: usize,
        radius: usize,
        work: &mut Work,
        suspects: &mut Vec<Suspect>,
    ) {
        for crowd in &self.levels[above].crowds {
            let differ = ((query ^ crowd.pattern) & crowd.mask).count_ones() as usize;
            if differ > radius {
                continue;
            }
            let (level, left) = (&self.levels[crowd.level], radius - differ);
            let dense = level.blocks.dense(query);
            (0..TABLES).for_each(|table| level.prefetch_lanes(&self.pool, table, dense, left));
            for table in 0..TABLES {
                self.list_suspects(crowd.level, table, query, number, left, work, suspects);
            }
            self.probe_crowds(crowd.level, query, number, radius, work, suspects);
        }
    }

    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn list_suspects(
        &self,
        level: usize,
        table: usize,
        query: u64,
        number: usize,
        radius: usize,
        work: &mut Work,
        suspects: &mut Vec<Suspect>,
    ) {
        let dense = self.levels[level].blocks.dense(query);
        self.levels[level].suspects(&self.pool, table, dense, radius, work, |row| {
            self.fingerprints.prefetch(row);
            suspects.push(Suspect { query: number as u32, level: level as u32, table: table as u32, row });
        });
    }

    /// Move the suspects that are near, and that no earlier table found, to the answers.
    fn verify(&self, suspects: &mut Vec<Suspect>, queries: &[u64], radius: usize, most: usize, found: &mut Found) {
        for Suspect { query, level, table, row } in suspects.drain(..) {
            let (fingerprint, level) = (self.fingerprints.value(row), &self.levels[level as usize]);
            let difference = fingerprint ^ queries[query as usize];
            let distance = difference.count_ones() as usize;
            if distance > radius {
                continue;
            }
            let left = radius - (difference & level.common).count_ones() as usize;
            if level.blocks.is_first(table as usize, difference, left) {
                found.ends.resize(query as usize, found.near.len());
                self.add_rows(row, fingerprint, distance as u8, most, &mut found.near);
            }
        }
    }

    /// Add the row of a fingerprint and its twins, so many of them at most.
    fn add_rows(&self, row: u32, fingerprint: u64, distance: u8, most: usize, near: &mut Vec<Near>) {
        let start = near.len();
        near.push(Near { distance, row });
        if !self.twins.is_empty() {
            let twins = self.twins.range((fingerprint, 0)..=(fingerprint, u32::MAX)).take(most);
            near.extend(twins.map(|&(_, row)| Near { distance, row }));
            if near.len() - start > most {
                near[start..].sort_unstable();
                near.truncate(start + most);
            }
        }
    }

    /// Sizes; reads the headers of all buckets.
    pub fn statistics(&self) -> Statistics {
        const TWIN: usize = 24; // 16 bytes, in tree nodes that are two thirds full
        let largest = self.levels.iter().flat_map(|level| &level.spans).map(|span| span.len).max();
        let tables: usize = self.levels.iter().map(Level::bytes).sum();
        Statistics {
            entries: self.len(),
            fingerprints: self.distinct(),
            bytes: self.fingerprints.bytes() + self.pool.bytes() + tables + self.twins.len() * TWIN,
            largest_bucket: largest.unwrap_or(0) as usize,
            split_buckets: self.levels.len() - 1 - self.vacant.len(),
            buckets: 1 << self.levels[MAIN].blocks.bits(),
        }
    }

    /// The cost of all probes so far.
    pub fn work(&self) -> Work {
        Work {
            probes: self.probes.load(Relaxed),
            buckets: self.buckets.load(Relaxed),
            entries: self.compared.load(Relaxed),
        }
    }
}

/// What a crowd of these entries has in common, and of which bits the blocks of its level are, if it is worth a level.
///
/// certain: bits that they all have in common. The pattern is of all bits that are mostly equal, if most entries fit it,
/// or else of the certain ones.
fn crowd_of(entries: &[(u32, u64)], certain: u64) -> Option<(Crowd, u64)> {
    const RARE: usize = 5; // a bit that a fifth have otherwise still belongs to the pattern, 20 of those fit few entries
    let ones = |bit: u32| entries.iter().filter(|entry| entry.1 >> bit & 1 == 1).count();
    let counts: Vec<usize> = (0..u64::BITS).map(ones).collect();
    let rarer = |bit: u32| counts[bit as usize].min(entries.len() - counts[bit as usize]);
    let usual =
        (0..u64::BITS).filter(|&bit| 2 * counts[bit as usize] > entries.len()).fold(0, |bits, bit| bits | 1 << bit);
    let equal =
        (0..u64::BITS).filter(|&bit| RARE * rarer(bit) <= entries.len()).fold(certain, |bits, bit| bits | 1 << bit);
    let crowd =
        [equal, certain].map(|mask| Crowd { mask, pattern: usual & mask, level: MAIN }).into_iter().find(|crowd| {
            let fit = entries.iter().filter(|entry| crowd.fits(entry.1)).count();
            2 * fit >= entries.len() && crowd.mask.count_zeros() / 4 >= LEAST_BITS
        })?;
    let mut varied: Vec<u32> = (0..u64::BITS).filter(|bit| crowd.mask >> bit & 1 == 0).collect();
    varied.sort_by_key(|&bit| std::cmp::Reverse(rarer(bit)));
    varied.truncate((varied.len() / 4 * 4).min(4 * CROWD_BITS as usize));
    Some((crowd, varied.into_iter().fold(0, |bits, bit| bits | 1 << bit)))
}

fn check_row(row: u32) -> Result<()> {
    if row == u32::MAX {
        return Err(TableError::Configuration(format!("row {row} is above {}, the largest row number", u32::MAX - 1)));
    }
    Ok(())
}

fn check_lengths(rows: &[u32], fingerprints: &[u64]) -> Result<()> {
    if rows.len() != fingerprints.len() {
        let (rows, fingerprints) = (rows.len(), fingerprints.len());
        return Err(TableError::Configuration(format!(
            "there are {rows} rows and {fingerprints} fingerprints; give as many of both"
        )));
    }
    Ok(())
}

fn is_there(row: u32) -> TableError {
    TableError::State(format!("row {row} is in the index already; remove it first, or insert it once"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::mix64;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn random(seed: u64, number: u64) -> u64 {
        mix64(mix64(seed) ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// What the index should find, by looking at each row.
    fn brute_force(rows: &BTreeMap<u32, u64>, query: u64, radius: usize, most: usize) -> Vec<Near> {
        let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
        let near = rows.iter().filter_map(|(&row, &fingerprint)| {
            let distance = (fingerprint ^ query).count_ones() as u8;
            let count = seen.entry(fingerprint).or_default();
            *count += 1;
            (distance as usize <= radius && *count <= most).then_some(Near { distance, row })
        });
        let mut near: Vec<Near> = near.collect();
        near.sort_unstable();
        near
    }

    fn check(index: &HammingIndex, rows: &BTreeMap<u32, u64>, seed: u64) {
        let fingerprints: Vec<u64> = rows.values().copied().collect();
        let near = |word: u64, number: u64| (0..number % 9).fold(word, |w, n| w ^ 1 << (random(number, n) & 63));
        let stored =
            |n: u64| fingerprints.get(random(seed, n) as usize % fingerprints.len().max(1)).copied().unwrap_or(n);
        let queries: Vec<u64> = (0..40).map(|n| near(stored(n), n)).collect();
        let mut found = Found::default();
        for radius in 0..=MAX_RADIUS {
            for most in [1, 3, usize::MAX] {
                index.probe_batch(&queries, radius, most, &mut found).unwrap();
                assert_eq!(found.ends().len(), queries.len());
                for (number, &query) in queries.iter().enumerate() {
                    assert_eq!(
                        found.of(number),
                        brute_force(rows, query, radius, most),
                        "radius {radius}, most {most}"
                    );
                }
            }
        }
        let distinct: std::collections::BTreeSet<u64> = fingerprints.iter().copied().collect();
        assert_eq!((index.len(), index.distinct()), (rows.len(), distinct.len()));
    }

    /// Insert fingerprints with scattered rows, check, remove some, check, insert them again, remove all.
    fn live(fingerprints: &[u64], least_crowds: usize) {
        let rows: Vec<u32> = (0..fingerprints.len() as u64).map(|n| (n * 40_503 % 1_000_003) as u32).collect();
        let mut stored: BTreeMap<u32, u64> = rows.iter().copied().zip(fingerprints.iter().copied()).collect();
        let mut index = HammingIndex::default();
        index.insert_batch(&rows, fingerprints).unwrap();
        check(&index, &stored, 1);
        let mut fingerprints = RowColumn::default();
        for (&row, &fingerprint) in &stored {
            fingerprints.set(row, fingerprint);
        }
        let filled = HammingIndex::filled(fingerprints, 1 + stored.len() % 4);
        check(&filled, &stored, 2);
        let crowds = [index.statistics().split_buckets, filled.statistics().split_buckets];
        assert!(crowds.iter().all(|&crowds| crowds >= least_crowds), "{crowds:?}");
        let (gone, gone_rows): (Vec<u64>, Vec<u32>) =
            stored.iter().filter(|(row, _)| *row % 8 > 0).map(|(&row, &fingerprint)| (fingerprint, row)).unzip();
        index.remove_batch(&gone_rows, &gone).unwrap();
        stored.retain(|row, _| row % 8 == 0);
        check(&index, &stored, 3);
        index.insert_batch(&gone_rows, &gone).unwrap();
        stored.extend(gone_rows.iter().copied().zip(gone.iter().copied()));
        check(&index, &stored, 4);
        let (rows, fingerprints): (Vec<u32>, Vec<u64>) = stored.iter().unzip();
        index.remove_batch(&rows, &fingerprints).unwrap();
        check(&index, &BTreeMap::new(), 5);
        assert_eq!(index.statistics().split_buckets, 0);
        assert_eq!(index.statistics().largest_bucket, 0);
    }

    #[test]
    fn even_fingerprints_are_found_as_by_brute_force() {
        live(&(0..5000).map(|n| random(1, n)).collect::<Vec<_>>(), 0);
    }

    #[test]
    fn a_block_that_a_fifth_share_is_found_as_by_brute_force() {
        let hot = |n: u64| if n % 5 == 0 { random(2, n) & !0xFFFF_0000 | 0x5AA5_0000 } else { random(2, n) };
        live(&(0..5000).map(hot).collect::<Vec<_>>(), 1);
    }

    #[test]
    fn a_half_that_a_fifth_share_is_found_as_by_brute_force() {
        for half in [0xFFFF_FFFF, 0xFFFF_FFFF_0000_0000, 0xFFFF_0000_FFFF, 0xFFFF_0000_FFFF_0000, 0x5555_5555_5555_5555]
        {
            let hot =
                |n: u64| if n % 5 == 0 { random(3, n) & !half | 0x0123_4567_89AB_CDEF & half } else { random(3, n) };
            live(&(0..2000).map(hot).collect::<Vec<_>>(), usize::from(half & 0xFFFF != 0x5555));
        }
    }

    #[test]
    fn crowds_of_crowds_are_found_as_by_brute_force() {
        let tight = |n: u64| {
            let masks = [!0, !0xFFFF, !0xFFFF_FFFF, 0xFFFF_0000_0000_0FFF, 0x0000_0FFF_0000_0FFF, 0xFFFF, 0x1FF];
            random(4, n) & masks[n as usize % masks.len()]
        };
        live(&(0..7000).map(tight).collect::<Vec<_>>(), 3);
    }

    #[test]
    fn fingerprints_that_many_rows_have_are_found_as_by_brute_force() {
        let same = |n: u64| if n % 5 == 0 { 77 } else { random(5, n % 900) & !0xFF };
        live(&(0..4000).map(same).collect::<Vec<_>>(), 0);
        for count in [63, 64, 65, 128, 129] {
            live(&vec![u64::MAX; count], 0);
            live(&(0..count as u64).collect::<Vec<_>>(), 0);
            live(&(0..count as u64).map(|n| n << 32 | 0x1234_5678).collect::<Vec<_>>(), usize::from(count > 64));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        /// Batches that are inserted and removed in any order, some of them refused, leave what a map has.
        #[test]
        fn an_index_is_a_map(steps in prop::collection::vec(
            (any::<bool>(), prop::collection::vec((0u32..600, 0u64..40), 1..200)), 1..30)) {
            let (mut index, mut map) = (HammingIndex::default(), BTreeMap::new());
            let word = |n: u64| if n < 20 { 1 << (3 * n) } else { random(6, n) & !0xFFFF };
            for (inserts, pairs) in steps {
                let rows: Vec<u32> = pairs.iter().map(|pair| pair.0).collect();
                let distinct: BTreeMap<u32, u64> = pairs.iter().map(|&(row, n)| (row, word(n + u64::from(row) * 64 / 77))).collect();
                if inserts {
                    let new: BTreeMap<u32, u64> =
                        distinct.iter().filter(|(row, _)| !map.contains_key(*row)).map(|(&row, &word)| (row, word)).collect();
                    let words: Vec<u64> = rows.iter().map(|row| distinct[row]).collect();
                    let fits = new.len() == rows.len();
                    prop_assert_eq!(index.insert_batch(&rows, &words).is_ok(), fits);
                    if !fits {
                        let (rows, words): (Vec<u32>, Vec<u64>) = new.iter().unzip();
                        index.insert_batch(&rows, &words).unwrap();
                    }
                    map.extend(new);
                } else {
                    let words: Vec<u64> = rows.iter().map(|row| map.get(row).copied().unwrap_or(5)).collect();
                    let fits = distinct.len() == rows.len() && rows.iter().all(|row| map.contains_key(row));
                    prop_assert_eq!(index.remove_batch(&rows, &words).is_ok(), fits);
                    if fits {
                        map.retain(|row, _| !rows.contains(row));
                    }
                }
            }
            check(&index, &map, 7);
        }
    }

    /// What cannot be right is refused with what to do, and nothing changes.
    #[test]
    fn wrong_arguments_are_refused() {
        let (mut index, mut found) = (HammingIndex::default(), Found::default());
        assert!(matches!(index.insert_batch(&[u32::MAX], &[0]), Err(TableError::Configuration(_))));
        assert!(matches!(index.insert_batch(&[1], &[]), Err(TableError::Configuration(_))));
        assert!(matches!(index.insert_batch(&[1, 1], &[0, 1]), Err(TableError::State(_))));
        assert!(matches!(index.remove_batch(&[1], &[0]), Err(TableError::State(_))));
        assert!(matches!(index.probe_batch(&[0], 8, 1, &mut found), Err(TableError::Configuration(_))));
        assert!(matches!(index.probe_batch(&[0], 3, 0, &mut found), Err(TableError::Configuration(_))));
        index.insert_batch(&[u32::MAX - 1], &[7]).unwrap();
        assert!(index.remove_batch(&[u32::MAX - 1], &[8]).is_err());
        assert_eq!((index.len(), index.fingerprints.get(u32::MAX - 1), index.fingerprints.get(1)), (1, Some(7), None));
    }

    /// Ten thousand rows of one fingerprint are one entry, and half of 50,000 in one bucket cost some hundred comparisons.
    #[test]
    fn the_work_of_crowds_is_bounded() {
        let (mut index, mut found) = (HammingIndex::default(), Found::default());
        let rows: Vec<u32> = (0..50_000).collect();
        index.insert_batch(&rows[..10_000], &vec![42; 10_000]).unwrap();
        index.probe_batch(&[43], 3, usize::MAX, &mut found).unwrap();
        assert_eq!((found.of(0).len(), index.statistics().largest_bucket, index.distinct()), (10_000, 1, 1));
        assert!(index.work().entries <= 4);
        let half: Vec<u64> = (0..50_000).map(|n| random(8, n) << 32 | 0x1234_5AA5).collect();
        let mut index = HammingIndex::default();
        index.insert_batch(&rows, &half).unwrap();
        index.probe_batch(&half[..100], 3, usize::MAX, &mut found).unwrap();
        assert!(index.work().entries < 100 * 1000 && index.work().buckets < 100 * 20, "{:?}", index.work());
    }

    /// Memory goes back when most rows are removed, and the rest is found.
    #[test]
    fn memory_follows_the_rows() {
        let mut index = HammingIndex::default();
        let (rows, words): (Vec<u32>, Vec<u64>) = (0..300_000).map(|row| (row, random(9, row.into()))).unzip();
        index.insert_batch(&rows, &words).unwrap();
        let full = index.statistics().bytes;
        index.remove_batch(&rows[10_000..], &words[10_000..]).unwrap();
        assert!(index.statistics().bytes < full / 2, "{full} {:?}", index.statistics());
        let mut found = Found::default();
        index.probe_batch(&words, 0, 1, &mut found).unwrap();
        assert!((0..words.len()).all(|query| found.of(query).len() == usize::from(query < 10_000)));
    }
}
