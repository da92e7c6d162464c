//! Four tables over fingerprints: buckets of lanes and rows, in groups of 64 with one piece of memory.
//!
//! A bucket that is full copies its group alone. Rows and fingerprints are the caller's business: a level has one row of
//! each fingerprint, and says which rows may be near.

use std::ops::Range;

use super::blocks::{Blocks, TABLES};
use crate::huge_pages::{HugePool, LINE, Place};
use crate::memory::prefetch;

/// Buckets of a group.
pub(super) const GROUP: usize = 64;
/// Lanes that are scanned at a time; there is room for as many behind the last bucket of a group.
const WIDE: usize = 16;
/// A bucket of so many entries, and of more than `CROWDED` times the average, becomes a crowd.
const MIN_CROWD: usize = if cfg!(test) { 64 } else { 4096 }; // so that tests have crowds of crowds
const CROWDED: usize = 4;

/// Work of all probes since the index was made: a cost that no machine changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Fingerprints probed.
    pub probes: u64,
    /// Buckets read.
    pub buckets: u64,
    /// Lanes compared.
    pub entries: u64,
}

/// Where the entries of a bucket are in the memory of its group.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// The memory of `GROUP` buckets with keys that follow each other: lanes, then rows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Group {
    pub(super) place: Place,
    /// Entries for which there is room.
    pub(super) room: u32,
}

impl Group {
    fn lane_lines(self) -> u32 {
        (self.room as usize + WIDE).div_ceil(LINE / 2) as u32
    }

    pub(super) fn lines(self) -> u32 {
        if self.room == 0 { 0 } else { self.lane_lines() + (self.room as usize).div_ceil(LINE / 4) as u32 }
    }

    pub(super) fn rows_place(self) -> Place {
        self.place.after(self.lane_lines())
    }
}

/// Fingerprints that have bits in common, and the number of their level.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crowd {
    pub(super) mask: u64,
    pub(super) pattern: u64,
    pub(super) level: usize,
}

impl Crowd {
    pub(super) fn fits(&self, fingerprint: u64) -> bool {
        (fingerprint ^ self.pattern) & self.mask == 0
    }
}

/// Four tables over fingerprints that have the bits of `common` in common.
pub(super) struct Level {
    pub(super) blocks: Blocks,
    pub(super) common: u64,
    pub(super) entries: usize,
    /// Buckets of all tables, by table and key.
    pub(super) spans: Vec<Span>,
    pub(super) groups: Vec<Group>,
    pub(super) crowds: Vec<Crowd>,
}

impl Level {
    pub(super) fn new(common: u64, chosen: u64) -> Self {
        let blocks = Blocks::new(chosen);
        let buckets = TABLES << blocks.bits();
        let (spans, groups) = (vec![Span::default(); buckets], vec![Group::default(); buckets.div_ceil(GROUP)]);
        Self { blocks, common, entries: 0, spans, groups, crowds: Vec::new() }
    }

    #[inline]
    pub(super) fn bucket(&self, table: usize, key: usize) -> usize {
        table << self.blocks.bits() | key
    }

    pub(super) fn is_crowded(&self, bucket: usize) -> bool {
        let len = self.spans[bucket].len as usize;
        len >= MIN_CROWD && len > CROWDED * (self.entries >> self.blocks.bits())
    }

    /// The buckets of a table that a probe of a fingerprint reads.
    #[inline]
    fn near_buckets(&self, table: usize, dense: u64, radius: usize) -> impl Iterator<Item = usize> + use<> {
        let (key, bits) = (self.bucket(table, self.blocks.key(dense, table)), self.blocks.bits());
        let most = self.blocks.bounds(radius)[table].0;
        let flips = if most == Some(1) { bits } else { 0 };
        most.map(|_| key).into_iter().chain((0..flips).map(move |bit| key ^ 1 << bit))
    }

    #[inline]
    pub(super) fn prefetch_spans(&self, table: usize, dense: u64, radius: usize) {
        for bucket in self.near_buckets(table, dense, radius) {
            prefetch(&self.spans, bucket);
            prefetch(&self.groups, bucket / GROUP);
        }
    }

    /// Fetch the first lines of lanes of the buckets that a probe reads; the processor itself fetches what follows.
    #[inline]
    pub(super) fn prefetch_lanes(&self, pool: &HugePool, table: usize, dense: u64, radius: usize) {
        const LINES: usize = 8;
        for bucket in self.near_buckets(table, dense, radius) {
            let Span { start, len } = self.spans[bucket];
            if len > 0 {
                let (lanes, start, end) =
                    (pool.words(self.groups[bucket / GROUP].place), start as usize, (start + len) as usize);
                (start..end).step_by(LINE / 2).take(LINES).for_each(|lane| prefetch(lanes, lane));
                prefetch(lanes, (end - 1).min(start + LINES * LINE / 2));
            }
        }
    }

    /// Fetch where the next entry of a bucket goes.
    #[inline]
    pub(super) fn prefetch_room(&self, pool: &HugePool, bucket: usize) {
        let (Span { start, len }, group) = (self.spans[bucket], self.groups[bucket / GROUP]);
        if group.room > 0 {
            prefetch(pool.words(group.place), (start + len) as usize);
            prefetch(pool.long_words(group.rows_place()), (start + len) as usize);
        }
    }

    /// The rows of a bucket.
    pub(super) fn rows<'a>(&self, pool: &'a HugePool, bucket: usize) -> &'a [u32] {
        let (Span { start, len }, group) = (self.spans[bucket], self.groups[bucket / GROUP]);
        if len == 0 { &[] } else { &pool.long_words(group.rows_place())[start as usize..][..len as usize] }
    }

    /// Call `found` with the rows of a table whose block and lane are near, among them those of farther fingerprints.
    #[inline]
    pub(super) fn suspects(
        &self,
        pool: &HugePool,
        table: usize,
        dense: u64,
        radius: usize,
        work: &mut Work,
        mut found: impl FnMut(u32),
    ) {
        let (lane, most) = (self.blocks.lane(dense, table), self.blocks.bounds(radius)[table].1);
        for bucket in self.near_buckets(table, dense, radius) {
            let Span { start, len } = self.spans[bucket];
            work.buckets += 1;
            work.entries += u64::from(len);
            if len > 0 {
                let group = self.groups[bucket / GROUP];
                let lanes = &pool.words(group.place)[start as usize..];
                let rows = pool.long_words(group.rows_place());
                scan(lanes, len as usize, lane, most, |place| found(rows[start as usize + place]));
            }
        }
    }

    /// Add an entry to all tables; return whether a bucket has just become crowded.
    pub(super) fn insert(&mut self, pool: &mut HugePool, fingerprint: u64, row: u32) -> bool {
        let dense = self.blocks.dense(fingerprint);
        self.entries += 1;
        (0..TABLES).fold(false, |any, table| {
            let bucket = self.bucket(table, self.blocks.key(dense, table));
            any | self.append(pool, bucket, self.blocks.lane(dense, table), row)
        })
    }

    fn append(&mut self, pool: &mut HugePool, bucket: usize, lane: u16, row: u32) -> bool {
        let number = bucket / GROUP;
        let Span { start, len } = self.spans[bucket];
        let is_last = bucket % GROUP == GROUP - 1;
        let end = if is_last { self.groups[number].room } else { self.spans[bucket + 1].start };
        if start + len == end {
            self.make_room(pool, number);
        }
        self.put(pool, bucket, lane, row);
        self.spans[bucket].len.is_power_of_two() && self.is_crowded(bucket)
    }

    /// Put an entry into a bucket that has room for it.
    #[inline]
    fn put(&mut self, pool: &mut HugePool, bucket: usize, lane: u16, row: u32) {
        let (span, group) = (&mut self.spans[bucket], self.groups[bucket / GROUP]);
        let place = (span.start + span.len) as usize;
        pool.words_mut(group.place)[place] = lane;
        pool.long_words_mut(group.rows_place())[place] = row;
        span.len += 1;
    }

    /// Lay out some groups of a table, which are empty, with those of the rows and fingerprints that belong there; each
    /// call of `entries` tells all of them.
    pub(super) fn fill<E: Iterator<Item = (u32, u64)>>(
        &mut self,
        pool: &mut HugePool,
        table: usize,
        groups: Range<usize>,
        entries: impl Fn() -> E,
    ) {
        let buckets = groups.start * GROUP..groups.end * GROUP;
        let bucket_of = |level: &Self, fingerprint| {
            let bucket = level.bucket(table, level.blocks.key(level.blocks.dense(fingerprint), table));
            buckets.contains(&bucket).then_some(bucket)
        };
        for (_, fingerprint) in entries() {
            if let Some(bucket) = bucket_of(self, fingerprint) {
                self.spans[bucket].len += 1;
            }
        }
        for number in groups {
            if self.spans[number * GROUP..][..GROUP].iter().any(|span| span.len > 0) {
                self.lay_out(pool, number, |len| len + len / 16 + len.isqrt() + 1);
                self.spans[number * GROUP..][..GROUP].iter_mut().for_each(|span| span.len = 0);
            }
        }
        for (row, fingerprint) in entries() {
            if let Some(bucket) = bucket_of(self, fingerprint) {
                self.put(pool, bucket, self.blocks.lane(self.blocks.dense(fingerprint), table), row);
            }
        }
    }

    /// Remove all but the first row of each fingerprint from a bucket; return those that were removed.
    pub(super) fn take_twins(
        &mut self,
        pool: &mut HugePool,
        bucket: usize,
        fingerprint: impl Fn(u32) -> u64,
    ) -> Vec<u32> {
        let Span { start, len } = self.spans[bucket];
        let lanes = if len == 0 { &[] } else { &pool.words(self.groups[bucket / GROUP].place)[start as usize..] };
        let mut entries: Vec<(u16, u32)> = lanes.iter().copied().zip(self.rows(pool, bucket).iter().copied()).collect();
        entries.sort_unstable();
        let mut twins = Vec::new();
        for same in entries.chunk_by_mut(|one, next| one.0 == next.0).filter(|same| same.len() > 1) {
            same.sort_unstable_by_key(|&(_, row)| (fingerprint(row), row));
            let equal = same.windows(2).filter(|pair| fingerprint(pair[0].1) == fingerprint(pair[1].1));
            twins.extend(equal.map(|pair| pair[1].1));
        }
        if !twins.is_empty() {
            twins.sort_unstable();
            self.retain(pool, bucket, |row| twins.binary_search(&row).is_err());
        }
        twins
    }

    /// Take over groups of a level of the same blocks, whose pool was absorbed with this shift.
    pub(super) fn take_groups(&mut self, other: &Self, groups: Range<usize>, shift: u32) {
        let buckets = groups.start * GROUP..groups.end * GROUP;
        self.spans[buckets.clone()].copy_from_slice(&other.spans[buckets]);
        for (own, group) in self.groups[groups.clone()].iter_mut().zip(&other.groups[groups]) {
            *own = Group { place: group.place.shifted(shift), ..*group };
        }
    }

    /// Move a group to a piece with more room for each bucket: they fill at random.
    fn make_room(&mut self, pool: &mut HugePool, number: usize) {
        let old = self.groups[number];
        let buckets = number * GROUP..self.spans.len().min((number + 1) * GROUP);
        let (lanes, rows) = if old.room == 0 {
            (Vec::new(), Vec::new())
        } else {
            let room = old.room as usize;
            (pool.words(old.place)[..room].to_vec(), pool.long_words(old.rows_place())[..room].to_vec())
        };
        let from: Vec<Span> = self.spans[buckets.clone()].to_vec();
        self.lay_out(pool, number, |len| len + len / 16 + 2 * len.isqrt() + 2);
        let group = self.groups[number];
        for (to, from) in self.spans[buckets].iter().zip(from) {
            let (to, from, len) = (to.start as usize, from.start as usize, from.len as usize);
            pool.words_mut(group.place)[to..to + len].copy_from_slice(&lanes[from..from + len]);
            pool.long_words_mut(group.rows_place())[to..to + len].copy_from_slice(&rows[from..from + len]);
        }
        pool.give_back(old.place, old.lines());
    }

    /// Take a piece with `room` of each bucket's length for it.
    pub(super) fn lay_out(&mut self, pool: &mut HugePool, number: usize, room: impl Fn(u32) -> u32) {
        let mut group = Group::default();
        for span in self.spans.iter_mut().skip(number * GROUP).take(GROUP) {
            span.start = group.room;
            group.room += room(span.len);
        }
        group.place = pool.take(group.lines());
        self.groups[number] = group;
    }

    /// Where the entry of a row is in a bucket.
    fn position(&self, pool: &HugePool, bucket: usize, row: u32) -> Option<usize> {
        self.rows(pool, bucket).iter().position(|&other| other == row)
    }

    /// Give the entry of a fingerprint another row in all tables, or none.
    pub(super) fn replace(&mut self, pool: &mut HugePool, fingerprint: u64, old: u32, new: Option<u32>) {
        let dense = self.blocks.dense(fingerprint);
        for table in 0..TABLES {
            let bucket = self.bucket(table, self.blocks.key(dense, table));
            self.replace_in(pool, bucket, old, new);
        }
        self.entries -= usize::from(new.is_none());
    }

    pub(super) fn replace_in(&mut self, pool: &mut HugePool, bucket: usize, old: u32, new: Option<u32>) {
        let Some(position) = self.position(pool, bucket, old) else { return };
        let (span, group) = (&mut self.spans[bucket], self.groups[bucket / GROUP]);
        let place = span.start as usize + position;
        let rows = pool.long_words_mut(group.rows_place());
        if let Some(new) = new {
            rows[place] = new;
            return;
        }
        span.len -= 1;
        let last = (span.start + span.len) as usize;
        rows[place] = rows[last];
        let lanes = pool.words_mut(group.place);
        lanes[place] = lanes[last];
    }

    /// Remove the entries of a bucket whose row is not wanted.
    pub(super) fn retain(&mut self, pool: &mut HugePool, bucket: usize, wanted: impl Fn(u32) -> bool) {
        let group = self.groups[bucket / GROUP];
        let (start, end) =
            (self.spans[bucket].start as usize, (self.spans[bucket].start + self.spans[bucket].len) as usize);
        let mut to = start;
        for from in start..end {
            let row = pool.long_words(group.rows_place())[from];
            if wanted(row) {
                pool.long_words_mut(group.rows_place())[to] = row;
                let lanes = pool.words_mut(group.place);
                lanes[to] = lanes[from];
                to += 1;
            }
        }
        self.spans[bucket].len = (to - start) as u32;
    }

    /// Move all groups to another pool, without the room that is not needed any more.
    pub(super) fn compact(&mut self, pool: &mut HugePool, old: &HugePool) {
        for number in 0..self.groups.len() {
            let group = self.groups[number];
            let from: Vec<Span> = self.spans.iter().skip(number * GROUP).take(GROUP).copied().collect();
            if from.iter().all(|span| span.len == 0) {
                self.groups[number] = Group::default();
                self.spans.iter_mut().skip(number * GROUP).take(GROUP).for_each(|span| span.start = 0);
                continue;
            }
            self.lay_out(pool, number, |len| len + len / 16 + len.isqrt() + 1);
            let to = self.groups[number];
            for (place, from) in from.into_iter().enumerate() {
                let target = self.spans[number * GROUP + place].start as usize;
                let (start, len) = (from.start as usize, from.len as usize);
                let (lanes, rows) =
                    (&old.words(group.place)[start..][..len], &old.long_words(group.rows_place())[start..][..len]);
                pool.words_mut(to.place)[target..target + len].copy_from_slice(lanes);
                pool.long_words_mut(to.rows_place())[target..target + len].copy_from_slice(rows);
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.spans.len() * size_of::<Span>() + self.groups.len() * size_of::<Group>()
    }
}

/// Call `found` with the place of each lane that differs from `lane` in at most `most` bits.
#[inline]
fn scan(lanes: &[u16], count: usize, lane: u16, most: u32, found: impl FnMut(usize)) {
    match most {
        0 => scan_for::<0>(lanes, count, lane, found),
        1 => scan_for::<1>(lanes, count, lane, found),
        2 => scan_for::<2>(lanes, count, lane, found),
        3 => scan_for::<3>(lanes, count, lane, found),
        4 => scan_for::<4>(lanes, count, lane, found),
        _ => scan_for::<5>(lanes, count, lane, found),
    }
}

#[inline]
fn scan_for<const MOST: u32>(lanes: &[u16], count: usize, lane: u16, mut found: impl FnMut(usize)) {
    let is_near = |other: u16| (0..MOST).fold(other ^ lane, |bits, _| bits & bits.wrapping_sub(1)) == 0;
    for (number, piece) in lanes[..count.next_multiple_of(WIDE)].chunks_exact(WIDE).enumerate() {
        if piece.iter().fold(false, |any, &other| any | is_near(other)) {
            for (place, &other) in (number * WIDE..count).zip(piece) {
                if is_near(other) {
                    found(place);
                }
            }
        }
    }
}
