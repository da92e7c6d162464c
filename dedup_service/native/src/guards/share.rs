//! The share of suspicious pages among the last thousand, against the usual share.
//!
//! The last thousand pages are a ring of marks. The usual share is learned from whole thousands that have left the
//! ring: the mean of all of them, and from the twentieth on an exponentially weighted mean. A thousand with a quarter
//! of all pages more than usual suspicious is not learned: a fault does not become usual by lasting, and a surge ends
//! when the share returns. All arithmetic is in integers, so the result is the same on every machine.

/// Pages in the ring.
pub const RECENT: usize = 1000;
/// Thousands over which the usual share adapts.
const LEARNED: i64 = 20;
const SCALE: i64 = 1 << 16;
/// Suspicious pages more than usual, above which a thousand is not learned.
const MAX_EXCESS: i64 = RECENT as i64 / 4;

/// The marks so far.
///
/// Invariant: `marked` is how many marks of the ring are set; `usual` is at most all pages.
#[derive(Clone, Debug)]
pub struct AnomalyShare {
    decided: u64,
    recent: [bool; RECENT],
    marked: i64,
    before: Option<i64>,
    learned: i64,
    usual: i64,
}

/// The values of an `AnomalyShare`, as a state has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareState {
    /// Pages.
    pub decided: u64,
    /// Marks of the last pages, 1 or 0, `RECENT` of them; the next one goes to `decided` % `RECENT`.
    pub recent: Vec<u8>,
    /// Suspicious pages in the latest whole thousand, which is learned when the next one is whole; -1 before there is
    /// one.
    pub before: i64,
    /// Thousands learned, up to 20.
    pub learned: i64,
    /// Suspicious pages in a thousand, in 1/2¹⁶.
    pub usual: i64,
}

impl Default for AnomalyShare {
    fn default() -> Self {
        Self { decided: 0, recent: [false; RECENT], marked: 0, before: None, learned: 0, usual: 0 }
    }
}

impl AnomalyShare {
    /// Return the share with a state; none if no share has such a state.
    pub fn from_state(state: &ShareState) -> Option<Self> {
        let most = RECENT as i64;
        let valid = state.recent.len() == RECENT
            && state.recent.iter().all(|mark| *mark <= 1)
            && (-1..=most).contains(&state.before)
            && (0..=LEARNED).contains(&state.learned)
            && (0..=most * SCALE).contains(&state.usual);
        let mut recent = [false; RECENT];
        recent.iter_mut().zip(&state.recent).for_each(|(mark, &stored)| *mark = stored == 1);
        valid.then(|| Self {
            decided: state.decided,
            recent,
            marked: marked(&recent),
            before: (state.before >= 0).then_some(state.before),
            learned: state.learned,
            usual: state.usual,
        })
    }

    /// Return the state.
    pub fn state(&self) -> ShareState {
        let recent = self.recent.iter().map(|mark| u8::from(*mark)).collect();
        let (before, learned, usual) = (self.before.unwrap_or(-1), self.learned, self.usual);
        ShareState { decided: self.decided, recent, before, learned, usual }
    }

    /// Return the suspicious pages of a hundred: recently, and usually.
    pub fn percents(&self) -> (u64, u64) {
        let pages = RECENT as i64;
        ((self.marked * 100 / pages) as u64, (self.usual * 100 / (pages * SCALE)) as u64)
    }

    /// Count one more page.
    pub fn mark(&mut self, suspicious: bool) {
        let place = (self.decided % RECENT as u64) as usize;
        self.marked += i64::from(suspicious) - i64::from(self.recent[place]);
        self.recent[place] = suspicious;
        self.decided = self.decided.wrapping_add(1);
        if place + 1 == RECENT {
            self.learn();
        }
    }

    /// Whether the share is more than `percent` points above the usual one, if that was learned.
    pub fn is_above(&self, percent: u8) -> bool {
        let points = i64::from(percent) * RECENT as i64 * SCALE / 100;
        self.learned > 0 && self.marked * SCALE > self.usual + points
    }

    /// Learn from the whole thousand before this one, which is left for the next time.
    fn learn(&mut self) {
        let Some(suspicious) = self.before.replace(self.marked) else { return };
        if self.learned == 0 || suspicious * SCALE <= self.usual + MAX_EXCESS * SCALE {
            self.learned = LEARNED.min(self.learned + 1);
            self.usual += (suspicious * SCALE - self.usual).div_euclid(self.learned);
        }
    }
}

fn marked(marks: &[bool]) -> i64 {
    marks.iter().filter(|mark| **mark).count() as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs of marks: all pages suspicious (1), every second (2), …, none (0).
    fn marks() -> impl Strategy<Value = Vec<bool>> {
        let runs = prop::collection::vec((1..2500usize, prop::sample::select(vec![0, 1, 2, 3, 7, 20])), 1..6);
        runs.prop_map(|runs| {
            let mark = |every: usize, at: usize| every > 0 && at % every == 0;
            runs.into_iter().flat_map(|(length, every)| (0..length).map(move |at| mark(every, at))).collect()
        })
    }

    /// The usual share by the definition.
    fn usual_of(marks: &[bool]) -> Option<i64> {
        let sums: Vec<i64> = marks.chunks_exact(RECENT).map(|part| marked(part) << 16).collect();
        let (mut usual, mut learned) = (0, 0);
        for sum in &sums[..sums.len().saturating_sub(1)] {
            if learned == 0 || *sum <= usual + (250 << 16) {
                learned += 1;
                usual += (sum - usual).div_euclid(learned.min(20));
            }
        }
        (learned > 0).then_some(usual)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        /// Shares are of the last thousand marks, and the mean of the thousands before them.
        #[test]
        fn shares_are_those_of_the_lists(marks in marks(), percent in 0..=100u8) {
            let mut share = AnomalyShare::default();
            for mark in &marks {
                share.mark(*mark);
            }
            let recent = marked(&marks[marks.len().saturating_sub(RECENT)..]);
            let usual = usual_of(&marks);
            let is_above = usual.is_some_and(|usual| recent * 65536 > usual + i64::from(percent) * 655_360);
            prop_assert_eq!(share.is_above(percent), is_above);
            prop_assert_eq!(share.percents(), ((recent / 10) as u64, (usual.unwrap_or(0) / 655_360) as u64));
        }

        /// A restored share goes on like the one that it was made from.
        #[test]
        fn a_restored_share_goes_on(marks in marks(), at in any::<prop::sample::Index>()) {
            let (mut whole, mut restored) = (AnomalyShare::default(), AnomalyShare::default());
            for (number, mark) in marks.iter().enumerate() {
                if number == at.index(marks.len()) {
                    restored = AnomalyShare::from_state(&restored.state()).unwrap();
                }
                whole.mark(*mark);
                restored.mark(*mark);
            }
            prop_assert_eq!(restored.state(), whole.state());
            prop_assert_eq!(restored.percents(), whole.percents());
        }
    }

    /// A surge lasts until the share returns, and does not become usual.
    #[test]
    fn a_surge_does_not_become_usual() {
        let mut share = AnomalyShare::default();
        (0..3000).for_each(|_| share.mark(false));
        (0..50_000).for_each(|_| share.mark(true));
        assert_eq!((share.percents(), share.is_above(40)), ((100, 0), true));
        (0..601).for_each(|_| share.mark(false));
        assert!(!share.is_above(40));
    }

    /// A rise is slow if each thousand is less than a quarter above the usual share.
    #[test]
    fn a_share_that_rises_slowly_becomes_usual() {
        let mut share = AnomalyShare::default();
        for percent in (0..100).step_by(2) {
            (0..5000).for_each(|at| share.mark(at % 100 < percent));
        }
        assert!(!share.is_above(25));
    }

    /// Values that no share has are refused.
    #[test]
    fn other_values_are_no_state() {
        let state = AnomalyShare::default().state();
        let changed: [fn(&mut ShareState); 5] = [
            |state| state.recent.push(0),
            |state| state.recent[9] = 2,
            |state| state.before = 1001,
            |state| state.learned = -1,
            |state| state.usual = (1000 << 16) + 1,
        ];
        for change in changed {
            let mut other = state.clone();
            change(&mut other);
            assert!(AnomalyShare::from_state(&other).is_none());
        }
    }
}
