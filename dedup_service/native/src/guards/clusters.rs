//! Size of each cluster of duplicates: estimated pages, hosts, other titles and texts of a kept page's copies.
//!
//! Each cluster takes 80 bytes: four sketches, the sequence of its kept page, and when it grew. Their number is
//! bounded: beyond the bound the quarter that grew least recently is forgotten at once. A cluster that collapses grows
//! all the time and is never among them.
//!
//! Invariant: the same copies give the same clusters, from the beginning or from the bytes of `pack` in between.

use std::collections::HashMap;

use super::distinct::{DistinctSketch, SKETCH_BYTES};
use crate::error::{Result, TableError};

/// A cluster is forgotten once 100,000 others have grown: after a million pages or so.
pub const MAX_CLUSTERS: usize = 1 << 17;
/// Bytes of a copy in a journal.
pub const COPY_BYTES: usize = 24;
const SKETCHES: usize = 4;
/// Bytes of a packed cluster: int64, the sequence of its kept page, and its sketches.
const CLUSTER_BYTES: usize = 8 + SKETCHES * SKETCH_BYTES;

/// A page that matched the kept page at sequence `original`.
///
/// The rest are the low 32 bits of hashes, which is more than a sketch uses. `title` and `text` are 0 if they are the
/// kept page's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Sequence of the kept page.
    pub original: i64,
    /// Of the page's URL.
    pub url: u32,
    /// Of its host.
    pub host: u32,
    /// Of its title.
    pub title: u32,
    /// Of its text.
    pub text: u32,
}

impl Copy {
    /// Return the copy as the journal stores it, little-endian.
    pub fn pack(&self) -> [u8; COPY_BYTES] {
        let mut packed = [0; COPY_BYTES];
        packed[..8].copy_from_slice(&self.original.to_le_bytes());
        for (place, value) in [self.url, self.host, self.title, self.text].into_iter().enumerate() {
            packed[8 + 4 * place..12 + 4 * place].copy_from_slice(&value.to_le_bytes());
        }
        packed
    }

    /// Return the copy that `pack` wrote.
    pub fn unpack(packed: &[u8; COPY_BYTES]) -> Self {
        let value = |at: usize| packed[at..at + 4].iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        let original = i64::from(value(4)) << 32 | i64::from(value(0));
        Self { original, url: value(8), host: value(12), title: value(16), text: value(20) }
    }
}

/// Estimated numbers of different pages, hosts, other titles and other texts among a kept page's copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterSizes {
    /// Different URLs.
    pub pages: u64,
    /// Different hosts.
    pub hosts: u64,
    /// Different titles that are not the kept page's.
    pub titles: u64,
    /// Different texts that are not the kept page's.
    pub texts: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cluster {
    sketches: [DistinctSketch; SKETCHES],
    grown: u64,
}

/// Clusters by the sequence of their kept page.
///
/// Invariant: no two have grown at the same time; `growths` is later than any.
#[derive(Clone, Debug)]
pub struct DuplicateClusters {
    clusters: HashMap<i64, Cluster>,
    growths: u64,
    max_clusters: usize,
}

impl Default for DuplicateClusters {
    fn default() -> Self {
        Self::new(MAX_CLUSTERS)
    }
}

impl DuplicateClusters {
    /// Return no clusters, of which so many are kept.
    pub fn new(max_clusters: usize) -> Self {
        Self { clusters: HashMap::new(), growths: 0, max_clusters }
    }

    /// Return the clusters that `pack` wrote.
    ///
    /// # Errors
    /// A state error if the bytes are none.
    pub fn from_packed(packed: &[u8], max_clusters: usize) -> Result<Self> {
        if packed.len() % CLUSTER_BYTES != 0 {
            let size = packed.len();
            let hint = "restore from the log or another snapshot";
            return Err(TableError::State(format!("{size} bytes are no clusters of duplicates: {hint}")));
        }
        let mut clusters = Self::new(max_clusters);
        for row in packed.chunks_exact(CLUSTER_BYTES) {
            let mut words = row.chunks_exact(8);
            let original = words.next().and_then(<[_]>::first_chunk).copied().map_or(0, i64::from_le_bytes);
            let cluster = clusters.grow(original);
            for (sketch, bytes) in cluster.sketches.iter_mut().zip(row[8..].chunks_exact(SKETCH_BYTES)) {
                sketch.0.copy_from_slice(bytes);
            }
        }
        Ok(clusters)
    }

    /// Return all clusters as bytes, those that grew least recently first.
    pub fn pack(&self) -> Vec<u8> {
        self.pack_after(0)
    }

    /// Return the same of a log in which so many records come before them.
    pub fn pack_after(&self, sequences: i64) -> Vec<u8> {
        let mut ordered: Vec<_> = self.clusters.iter().collect();
        ordered.sort_unstable_by_key(|(_, cluster)| cluster.grown);
        let mut packed = Vec::with_capacity(CLUSTER_BYTES * ordered.len());
        for (original, cluster) in ordered {
            packed.extend_from_slice(&original.wrapping_add(sequences).to_le_bytes());
            cluster.sketches.iter().for_each(|sketch| packed.extend_from_slice(&sketch.0));
        }
        packed
    }

    /// Add a copy to its cluster and return the new sizes.
    pub fn add(&mut self, copy: Copy) -> ClusterSizes {
        let [pages, hosts, titles, texts] = &mut self.grow(copy.original).sketches;
        pages.see(copy.url);
        hosts.see(copy.host);
        for (sketch, other) in [(&mut *titles, copy.title), (&mut *texts, copy.text)] {
            if other != 0 {
                sketch.see(other);
            }
        }
        let [pages, hosts, titles, texts] = [pages, hosts, titles, texts].map(|sketch| sketch.estimate());
        self.forget_stale();
        ClusterSizes { pages, hosts, titles, texts }
    }

    /// Forget the cluster of a kept page, if it has one.
    pub fn drop(&mut self, original: i64) {
        self.clusters.remove(&original);
    }

    /// Return the cluster of a kept page, which grows now.
    fn grow(&mut self, original: i64) -> &mut Cluster {
        self.growths += 1;
        let cluster = self.clusters.entry(original).or_default();
        cluster.grown = self.growths;
        cluster
    }

    fn forget_stale(&mut self) {
        if self.clusters.len() > self.max_clusters {
            let mut growths: Vec<u64> = self.clusters.values().map(|cluster| cluster.grown).collect();
            let (_, latest, _) = growths.select_nth_unstable((self.max_clusters / 4).saturating_sub(1));
            let latest = *latest;
            self.clusters.retain(|_, cluster| cluster.grown > latest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::memory::mix64;

    /// A copy of a kept page by small numbers; of title and text 0 is the kept page's.
    fn copy_of((original, url, host, title, text): (i64, u32, u32, u32, u32)) -> Copy {
        let hashed = |value: u32| if value == 0 { 0 } else { mix64(u64::from(value)) as u32 };
        Copy { original, url: hashed(url), host: hashed(host), title: hashed(title), text: hashed(text) }
    }

    fn copies() -> impl Strategy<Value = Vec<(i64, u32, u32, u32, u32)>> {
        prop::collection::vec((1..6i64, 1..41u32, 1..41u32, 0..41u32, 0..41u32), 0..120)
    }

    proptest! {
        /// After each copy the estimates are those of the sets of pages, hosts, other titles and other texts.
        #[test]
        fn sizes_are_those_of_the_sets(copies in copies()) {
            let mut clusters = DuplicateClusters::default();
            let mut seen = Vec::new();
            for copy in copies.into_iter().map(copy_of) {
                let sizes = clusters.add(copy);
                seen.push(copy);
                let estimate = |field: fn(&Copy) -> u32| {
                    let cluster = seen.iter().filter(|other| other.original == copy.original);
                    let mut sketch = DistinctSketch::default();
                    let values: BTreeSet<u32> = cluster.map(field).filter(|value| *value > 0).collect();
                    for value in values {
                        sketch.see(value);
                    }
                    sketch.estimate()
                };
                let expected = ClusterSizes {
                    pages: estimate(|copy| copy.url),
                    hosts: estimate(|copy| copy.host),
                    titles: estimate(|copy| copy.title),
                    texts: estimate(|copy| copy.text),
                };
                prop_assert_eq!(sizes, expected);
            }
        }

        /// Packed clusters continue as before, also in the order in which they are forgotten: that of a plain list.
        #[test]
        fn packed_clusters_continue_as_before(copies in copies(), cut in 0..120usize, max_clusters in 2..5usize) {
            let mut clusters = DuplicateClusters::new(max_clusters);
            let mut order = Vec::new();
            for (number, copy) in copies.into_iter().map(copy_of).enumerate() {
                if number == cut {
                    clusters = DuplicateClusters::from_packed(&clusters.pack(), max_clusters).unwrap();
                }
                clusters.add(copy);
                order.retain(|original| *original != copy.original);
                order.push(copy.original);
                if order.len() > max_clusters {
                    order.drain(..(max_clusters / 4).max(1));
                }
                let packed = clusters.pack();
                let original = |row: &[u8]| i64::from_le_bytes(row[..8].try_into().unwrap());
                let originals: Vec<i64> = packed.chunks(CLUSTER_BYTES).map(original).collect();
                prop_assert_eq!(&originals, &order);
            }
        }

        /// A copy survives the journal.
        #[test]
        fn a_copy_survives_the_journal(original in any::<i64>(), values in any::<[u32; 4]>()) {
            let [url, host, title, text] = values;
            let copy = Copy { original, url, host, title, text };
            prop_assert_eq!(Copy::unpack(&copy.pack()), copy);
        }

        /// Any sketches are clusters, or refused if there is half a cluster.
        #[test]
        fn made_up_clusters_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            match DuplicateClusters::from_packed(&bytes, 2) {
                Ok(mut clusters) => {
                    clusters.add(Copy { original: 0, url: 1, host: 2, title: 3, text: 4 });
                }
                Err(_) => prop_assert!(bytes.len() % CLUSTER_BYTES != 0),
            }
        }
    }

    /// A quarter is forgotten at once; a cluster that grows stays, however old it is.
    #[test]
    fn the_least_recently_grown_are_forgotten() {
        let mut clusters = DuplicateClusters::new(8);
        let mut sizes = ClusterSizes::default();
        for (number, original) in (0..8).chain([0, 8]).enumerate() {
            sizes = clusters.add(copy_of((original, number as u32 + 1, 1, 0, 0)));
        }
        assert_eq!((clusters.clusters.len(), sizes.pages), (7, 1));
        assert_eq!(clusters.add(copy_of((0, 77, 1, 0, 0))).pages, 3);
        assert_eq!(clusters.add(copy_of((1, 77, 1, 0, 0))).pages, 1);
        clusters.drop(1);
        clusters.drop(99);
        assert_eq!(clusters.clusters.len(), 7);
    }

    /// Sequences are those of a longer log, and nothing else changes.
    #[test]
    fn sequences_move_with_the_log() {
        let mut clusters = DuplicateClusters::default();
        clusters.add(copy_of((7, 1, 2, 3, 4)));
        let (packed, moved) = (clusters.pack(), clusters.pack_after(100));
        assert_eq!((&packed[8..], 107i64.to_le_bytes().as_slice()), (&moved[8..], &moved[..8]));
    }
}
