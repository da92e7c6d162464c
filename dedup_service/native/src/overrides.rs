//! Overrides: corrections in force. They take precedence over rules and guards.
//!
//! Pages are identified by the hash of their canonical URL, so a correction outlives the visit that it was made for.
//! The latest correction of a pair is in force.

use std::collections::{HashMap, HashSet};

/// All corrections in force.
#[derive(Default)]
pub struct Overrides {
    original_of: HashMap<u64, u64>,
    distinct: HashSet<(u64, u64)>,
}

impl Overrides {
    /// Add a correction: whether the page at `url` is a duplicate of `original`.
    ///
    /// Those that it contradicts are no longer in force. A page has one original.
    pub fn add(&mut self, url: u64, original: u64, duplicate: bool) {
        for (one, other) in [(url, original), (original, url)] {
            if self.original_of.get(&one) == Some(&other) {
                self.original_of.remove(&one);
            }
        }
        if duplicate {
            self.distinct.remove(&pair(url, original));
            self.original_of.insert(url, original);
        } else {
            self.distinct.insert(pair(url, original));
        }
    }

    /// Return the URL hash of the page that corrections call the original of this one.
    pub fn duplicate_of(&self, url: u64) -> Option<u64> {
        self.original_of.get(&url).copied()
    }

    /// Whether a correction says that the two are not duplicates.
    pub fn are_distinct(&self, url: u64, other: u64) -> bool {
        self.any_distinct() && self.distinct.contains(&pair(url, other))
    }

    /// Whether any two pages are called no duplicates of each other.
    pub fn any_distinct(&self) -> bool {
        !self.distinct.is_empty()
    }
}

fn pair(one: u64, other: u64) -> (u64, u64) {
    (one.min(other), one.max(other))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// In force is the latest correction of a pair; a page has one original, the latest.
        #[test]
        fn the_latest_correction_is_in_force(added in prop::collection::vec((0..4u64, 0..4u64, any::<bool>()), 0..30)) {
            let mut overrides = Overrides::default();
            for &(url, original, duplicate) in &added {
                overrides.add(url, original, duplicate);
            }
            let latest = |one, other| {
                added.iter().rposition(|&(url, original, _)| pair(url, original) == pair(one, other))
            };
            for one in 0..4 {
                let called = added.iter().rposition(|&(url, _, duplicate)| duplicate && url == one);
                let original = called.filter(|&at| latest(one, added[at].1) == Some(at)).map(|at| added[at].1);
                prop_assert_eq!(overrides.duplicate_of(one), original);
                for other in 0..4 {
                    let distinct = latest(one, other).is_some_and(|at| !added[at].2);
                    prop_assert_eq!(overrides.are_distinct(one, other), distinct);
                }
            }
        }
    }
}
