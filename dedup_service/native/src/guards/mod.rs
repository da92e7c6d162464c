//! The state that guards look at, and what they say of the next match.
//!
//! Facets, print views and mirrors have the text and the title of the kept page, or the text under one other title. A
//! frame has its text under many titles. A template has many texts under one title. A consent wall and an error page
//! have one text and one title, as a mirror and a facet have them: only their number tells. So a copy is suspicious if
//!
//! - its title is another one, and not the first other title among the kept page's copies;
//! - its text is another one, and more than `CROWDED_TEXTS` texts are;
//! - it is one of more than `CROWDED_HOSTS` hosts, or `CROWDED_PAGES` addresses.
//!
//! Invariant: state and answers are a function of the copies in their order. They are the same from the beginning, from
//! `state` at any place, or from copies that a journal stored. Thresholds change answers, never the state.

mod clusters;
mod distinct;
mod share;

use xxhash_rust::xxh3::xxh3_64;

pub use clusters::{COPY_BYTES, ClusterSizes, Copy, DuplicateClusters, MAX_CLUSTERS};
pub use share::{AnomalyShare, RECENT, ShareState};

use crate::error::{Result, TableError};

/// Copies of one kept page, and different texts among them, above which a copy with another text is suspicious.
///
/// In 16,936 pages of a crawl no cluster has more than three copies, which with the kept page are four pages.
const CROWDED_TEXTS: u64 = 16;
/// Addresses of copies above which each further copy is suspicious, whatever its title and text.
///
/// A quarter more than the thousand addresses that must be accepted. Of clusters of that size a tenth is estimated
/// above the bound, and a surge needs two copies in five.
const CROWDED_PAGES: u64 = 1250;
/// The same of hosts: a quarter more than the hundred that must be accepted.
const CROWDED_HOSTS: u64 = 125;
/// Bounds on the copies of one kept page, and on suspicious copies overall; 0 switches a bound off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guards {
    /// Different URLs whose pages match one kept page.
    pub max_pages: u64,
    /// Different hosts of these pages.
    pub max_hosts: u64,
    /// Different titles of these pages that share little with the kept page's title.
    pub max_titles: u64,
    /// How many of a hundred recent pages, more than usual, may be suspicious copies.
    pub surge_percent: u64,
}

/// Why a guard refuses a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objection {
    /// Pages under about so many other titles match the kept page: more than the limit.
    Titles(u64, u64),
    /// Pages of about so many hosts match the kept page: more than the limit.
    Hosts(u64, u64),
    /// About so many pages match the kept page: more than the limit.
    Pages(u64, u64),
    /// So many of a hundred recent pages are suspicious copies, and so many usually.
    Surge(u64, u64),
}

/// Follows what guards look at.
#[derive(Clone, Debug, Default)]
pub struct GuardTracker {
    clusters: DuplicateClusters,
    share: AnomalyShare,
    sizes: ClusterSizes,
    is_suspicious: bool,
}

/// The state of a `GuardTracker`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardState {
    /// See `DuplicateClusters::pack`.
    pub groups: Vec<u8>,
    /// How many pages are suspicious.
    pub share: ShareState,
}

impl Guards {
    /// Whether any bound is switched on.
    pub fn any(&self) -> bool {
        *self != Self { max_pages: 0, max_hosts: 0, max_titles: 0, surge_percent: 0 }
    }
}

impl GuardTracker {
    /// Return one that continues from a state.
    ///
    /// # Errors
    /// A state error if it is none.
    pub fn from_state(state: &GuardState) -> Result<Self> {
        let refused =
            || TableError::State("the guards' state is none: restore from the log or another snapshot".into());
        Ok(Self {
            clusters: DuplicateClusters::from_packed(&state.groups, MAX_CLUSTERS)?,
            share: AnomalyShare::from_state(&state.share).ok_or_else(refused)?,
            ..Self::default()
        })
    }

    /// Return the state, for a snapshot.
    pub fn state(&self) -> GuardState {
        GuardState { groups: self.clusters.pack(), share: self.share.state() }
    }

    /// Record one more decided page; no copy if it matched nothing.
    pub fn follow(&mut self, copy: Option<Copy>) {
        self.is_suspicious = false;
        if let Some(copy) = copy {
            self.sizes = self.clusters.add(copy);
            self.is_suspicious = is_suspicious(copy, self.sizes);
        }
        self.share.mark(self.is_suspicious);
    }

    /// Drop the cluster of the kept page at `sequence`, whose entry was removed.
    pub fn forget(&mut self, sequence: i64) {
        self.clusters.drop(sequence);
    }

    /// Return why a guard refuses the copy followed last; none if all accept it.
    pub fn objection(&self, guards: &Guards) -> Option<Objection> {
        let ClusterSizes { pages, hosts, titles, .. } = self.sizes;
        let is_above = |size: u64, limit: u64| limit > 0 && size > limit;
        if is_above(titles, guards.max_titles) {
            Some(Objection::Titles(titles, guards.max_titles))
        } else if is_above(hosts, guards.max_hosts) {
            Some(Objection::Hosts(hosts, guards.max_hosts))
        } else if is_above(pages, guards.max_pages) {
            Some(Objection::Pages(pages, guards.max_pages))
        } else if guards.surge_percent > 0
            && self.is_suspicious
            && self.share.is_above(u8::try_from(guards.surge_percent).unwrap_or(u8::MAX))
        {
            let (recently, usually) = self.share.percents();
            Some(Objection::Surge(recently, usually))
        } else {
            None
        }
    }
}

/// Whether a copy is suspicious in a cluster that has these sizes with it.
fn is_suspicious(copy: Copy, sizes: ClusterSizes) -> bool {
    // Pages, too: one address that is fetched often may have another text each time.
    copy.title != 0 && sizes.titles > 1
        || copy.text != 0 && sizes.texts.min(sizes.pages) > CROWDED_TEXTS
        || sizes.hosts > CROWDED_HOSTS
        || sizes.pages > CROWDED_PAGES
}

/// Return what a `Copy` has of a title that is not the kept page's. terms: uint16, little-endian.
pub fn title_of(terms: &[u8]) -> u32 {
    xxh3_64(terms) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARDS: Guards = Guards { max_pages: 40, max_hosts: 20, max_titles: 10, surge_percent: 40 };

    fn copy(number: u32) -> Copy {
        let hash = |seed: u64| crate::memory::mix64(seed << 32 | u64::from(number)) as u32;
        Copy { original: 1, url: hash(1), host: hash(2), title: hash(3), text: hash(4) }
    }

    /// Follow so many copies; return the first objection.
    fn first_objection(guards: &Guards, copies: impl Iterator<Item = Copy>) -> Option<Objection> {
        let mut tracker = GuardTracker::default();
        copies.into_iter().find_map(|copy| {
            tracker.follow(Some(copy));
            tracker.objection(guards)
        })
    }

    /// Each bound speaks for itself, and 0 switches it off.
    #[test]
    fn bounds_are_named() {
        let all = || (0..60).map(copy);
        let without = |max_hosts, max_titles| Guards { max_hosts, max_titles, ..GUARDS };
        assert_eq!(first_objection(&GUARDS, all()), Some(Objection::Titles(11, 10)));
        assert_eq!(first_objection(&without(20, 0), all()), Some(Objection::Hosts(22, 20)));
        assert!(matches!(first_objection(&without(0, 0), all()), Some(Objection::Pages(41.., 40))));
        assert_eq!(first_objection(&Guards::default(), all()), None);
        assert_eq!(first_objection(&GUARDS, all().map(|one| Copy { host: 1, title: 0, url: 2, ..one })), None);
    }

    /// After thousands of ordinary pages, copies under many titles are a surge, until the next page is none.
    #[test]
    fn a_surge_is_refused() {
        let guards = Guards { surge_percent: 40, ..Guards::default() };
        let mut tracker = GuardTracker::default();
        (0..3000).for_each(|_| tracker.follow(None));
        let refused = (0..1000).find_map(|number| {
            tracker.follow(Some(copy(number)));
            tracker.objection(&guards)
        });
        assert_eq!(refused, Some(Objection::Surge(40, 0)));
        let restored = GuardTracker::from_state(&tracker.state()).unwrap();
        assert_eq!(restored.state(), tracker.state());
        tracker.follow(None);
        assert_eq!(tracker.objection(&guards), None);
    }

    /// Once its entry is gone, a page's copies count from the beginning.
    #[test]
    fn what_is_removed_is_forgotten() {
        let mut tracker = GuardTracker::default();
        (0..60).for_each(|number| tracker.follow(Some(copy(number))));
        tracker.forget(1);
        tracker.follow(Some(copy(60)));
        assert_eq!(tracker.objection(&GUARDS), None);
    }
}
