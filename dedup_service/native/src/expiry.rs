//! Expiry: which entries leave by count and by age, decided by the log alone.
//!
//! Time is what time records of the log say, in whole minutes since 1970; no reader looks at its clock. It only
//! advances: a record with an earlier minute, or the same, has no effect. A page came at the latest time that the log
//! had before it; pages before the first time record came with that record.
//!
//! Entries leave in the order of the log, earliest first, so everything that expired is described by one sequence
//! (`up_to`): no entry up to it is live, and none comes back. An entry is beyond the bounds of `Keep` if
//!
//! - there are more live entries than `max_pages`, and it is the earliest, or
//! - its page came more than `max_age_minutes` before the latest time of the log.
//!
//! Before a page is decided, `MAX_BEFORE_PAGE` entries that are beyond the bounds leave at most, and one more after it.
//! So a backlog, after bounds were lowered or a long silence, is spread over the pages that follow, and the verdicts
//! are a function of the log however it is cut into batches.

use crate::error::{Result, TableError};

/// Entries that expire before one page, at most: 0.3 ms of work.
pub const MAX_BEFORE_PAGE: usize = 8;

/// Bounds on the entries that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Live entries; none is no bound.
    pub max_pages: Option<u64>,
    /// How much earlier than the latest time a page may have come; none is no bound.
    pub max_age_minutes: Option<i64>,
}

impl Keep {
    /// Whether there is any bound.
    pub fn any(&self) -> bool {
        self.max_pages.is_some() || self.max_age_minutes.is_some()
    }
}

/// Why an entry expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryReason {
    /// There were more entries than are kept.
    Count,
    /// Its page was too old.
    Age,
}

/// A time of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogTime {
    /// Minutes since 1970.
    pub minute: i64,
    /// The sequence after which it is the latest time.
    pub sequence: i64,
}

/// The state of expiry at one place of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiryState {
    /// Sequence of the last entry that expired, -1 before any.
    pub up_to: i64,
    /// int64[n, 2], little-endian: minute and sequence of each time, as far as live entries need them.
    pub times: Vec<u8>,
    /// Entries that expired so far by their number.
    pub by_count: u64,
    /// The same by their age.
    pub by_age: u64,
}

impl Default for ExpiryState {
    fn default() -> Self {
        Self { up_to: -1, times: Vec::new(), by_count: 0, by_age: 0 }
    }
}

/// Says which entry leaves next; its owner removes it.
///
/// Invariant: pages up to `aged_up_to` are too old for `keep`; it is -1 if none is.
pub struct Expiry {
    keep: Keep,
    times: Vec<LogTime>,
    up_to: i64,
    aged_up_to: i64,
    by_count: u64,
    by_age: u64,
}

impl Expiry {
    /// Return one that continues from a state, with these bounds.
    ///
    /// # Errors
    /// A state error if the bytes are no times.
    pub fn new(keep: Keep, state: &ExpiryState) -> Result<Self> {
        if state.times.len() % size_of::<LogTime>() != 0 {
            let (size, hint) = (state.times.len(), "restore from the log or another snapshot");
            return Err(TableError::State(format!("{size} bytes are no times of a log: {hint}")));
        }
        let value = |bytes: &[u8]| bytes.first_chunk().copied().map_or(0, i64::from_le_bytes);
        let time = |bytes: &[u8]| LogTime { minute: value(bytes), sequence: value(&bytes[8..]) };
        let times = state.times.chunks_exact(size_of::<LogTime>()).map(time).collect();
        let (by_count, by_age) = (state.by_count, state.by_age);
        let mut expiry = Self { keep, times, up_to: state.up_to, aged_up_to: -1, by_count, by_age };
        expiry.find_aged();
        Ok(expiry)
    }

    /// Return the state.
    pub fn state(&self) -> ExpiryState {
        let words = self.times.iter().flat_map(|time| [time.minute, time.sequence]);
        let times = words.flat_map(i64::to_le_bytes).collect();
        ExpiryState { up_to: self.up_to, times, by_count: self.by_count, by_age: self.by_age }
    }

    /// Return the bounds in force.
    pub fn keep(&self) -> Keep {
        self.keep
    }

    /// Replace the bounds in force.
    pub fn set_keep(&mut self, keep: Keep) {
        self.keep = keep;
        self.find_aged();
    }

    /// Return the sequence of the last entry that expired, -1 before any.
    pub fn up_to(&self) -> i64 {
        self.up_to
    }

    /// Say that all entries up to a sequence expired, although their number is not known.
    pub fn set_up_to(&mut self, sequence: i64) {
        self.up_to = sequence;
    }

    /// Return the latest time of the log, in minutes since 1970; none before any.
    pub fn minute(&self) -> Option<i64> {
        self.times.last().map(|time| time.minute)
    }

    /// Return how many entries expired for a reason.
    pub fn expired(&self, reason: ExpiryReason) -> u64 {
        match reason {
            ExpiryReason::Count => self.by_count,
            ExpiryReason::Age => self.by_age,
        }
    }

    /// Set the latest time for pages after `sequence`; false, and no effect, unless it is later than any before.
    pub fn advance(&mut self, sequence: i64, minute: i64) -> bool {
        if self.minute().is_some_and(|latest| minute <= latest) {
            return false;
        }
        let next = self.times.iter().skip(1); // a time ends before the first live entry if the next one begins there
        let unused = next.take_while(|time| time.sequence <= self.up_to).count();
        self.times.drain(..unused);
        self.times.push(LogTime { minute, sequence });
        self.find_aged();
        true
    }

    /// Return why the earliest entry leaves, none if it stays.
    ///
    /// entries: live ones, 1 or more. first: sequence of the earliest.
    pub fn reason(&self, entries: usize, first: i64) -> Option<ExpiryReason> {
        if self.keep.max_pages.is_some_and(|most| entries as u64 > most) {
            return Some(ExpiryReason::Count);
        }
        (first <= self.aged_up_to).then_some(ExpiryReason::Age)
    }

    /// Count the entry at `sequence`, which left for `reason`.
    pub fn count(&mut self, sequence: i64, reason: ExpiryReason) {
        self.up_to = sequence;
        match reason {
            ExpiryReason::Count => self.by_count = self.by_count.wrapping_add(1),
            ExpiryReason::Age => self.by_age = self.by_age.wrapping_add(1),
        }
    }

    /// Find the sequence up to which pages came too long ago.
    fn find_aged(&mut self) {
        self.aged_up_to = -1;
        let (Some(age), Some(latest)) = (self.keep.max_age_minutes, self.minute()) else { return };
        let oldest = latest.saturating_sub(age);
        let first_young = self.times.partition_point(|time| time.minute < oldest);
        if first_young > 0 {
            self.aged_up_to = self.times.get(first_young).map_or(-1, |time| time.sequence);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn expiry(keep: Keep) -> Expiry {
        Expiry::new(keep, &ExpiryState::default()).unwrap()
    }

    fn aged(max_age_minutes: i64) -> Keep {
        Keep { max_pages: None, max_age_minutes: Some(max_age_minutes) }
    }

    proptest! {
        /// With a time before every page, an entry leaves exactly if its time is more than the age before the latest,
        /// and a state at any place continues alike.
        #[test]
        fn the_age_is_that_of_the_definition(minutes in prop::collection::vec(0..200i64, 1..20), age in 1..60i64) {
            let mut expiry = expiry(aged(age));
            let mut came: Vec<i64> = Vec::new();
            for (place, &minute) in minutes.iter().enumerate() {
                let latest = came.last().map_or(minute, |last| minute.max(*last));
                let is_later = came.last().is_none_or(|last| minute > *last);
                prop_assert_eq!(expiry.advance(2 * place as i64, minute), is_later);
                came.push(latest);
                for (place, time) in came.iter().enumerate() {
                    let sequence = 2 * place as i64 + 1;
                    let leaves = sequence > expiry.up_to() && latest - time > age;
                    prop_assert_eq!(sequence > expiry.up_to() && expiry.reason(1, sequence).is_some(), leaves);
                    if leaves && place % 3 == 0 {
                        expiry.count(sequence, ExpiryReason::Age);
                    }
                }
                let keep = expiry.keep();
                expiry = Expiry::new(keep, &expiry.state()).unwrap();
            }
        }

        /// Any times are a state, or refused if there is half a time.
        #[test]
        fn made_up_times_do_no_harm(times in prop::collection::vec(any::<u8>(), 0..100), age in any::<i64>()) {
            let state = ExpiryState { times: times.clone(), ..ExpiryState::default() };
            match Expiry::new(aged(age), &state) {
                Ok(mut expiry) => {
                    expiry.advance(i64::MAX, i64::MAX);
                    expiry.reason(1, i64::MIN);
                }
                Err(_) => prop_assert!(times.len() % 16 != 0),
            }
        }
    }

    /// One too many lets the earliest leave, whatever its age.
    #[test]
    fn the_number_of_entries_is_bounded() {
        let mut expiry = expiry(Keep { max_pages: Some(2), max_age_minutes: None });
        assert_eq!((expiry.reason(2, 7), expiry.reason(3, 7)), (None, Some(ExpiryReason::Count)));
        expiry.count(7, ExpiryReason::Count);
        assert_eq!((expiry.up_to(), expiry.expired(ExpiryReason::Count), expiry.minute()), (7, 1, None));
        expiry.set_keep(Keep::default());
        assert_eq!(expiry.reason(3, 8), None);
    }

    /// A log of years with a bound of an hour remembers the times of an hour.
    #[test]
    fn times_are_kept_as_long_as_entries_need_them() {
        let mut expiry = expiry(aged(60));
        for minute in 0..10_000 {
            expiry.advance(minute, minute);
            while let Some(reason) = expiry.reason(1, expiry.up_to() + 1) {
                expiry.count(expiry.up_to() + 1, reason);
            }
        }
        assert!(expiry.state().times.len() <= 16 * 64);
    }
}
