//! A double-array trie: from the words of a dictionary, as codes of letters, to nodes.
//!
//! A node is a 64-bit word, so that a step to a child reads one cache line:
//!
//! ```text
//! bits 0-23: base, where its children begin | 24-39: code of its last letter | 40-55: value
//! ```
//!
//! The child of node s by the letter with code c is node base(s) + c, if that node has the code c. Nodes of the first
//! level are at the place of their code. Node 0 is nobody's. A base belongs to one parent, so the code alone says whose
//! child a node is. Source: Aoe, "An Efficient Digital Search Algorithm by Using a Double-Array Structure", IEEE TSE
//! 15(9), 1989.

use crate::memory::prefetch;

/// The code of what is no letter.
pub(super) const NO_LETTER: u16 = 0;
/// The largest value of a word.
pub(super) const MAX_VALUE: usize = 0xFFFF;

const BASE: u64 = 0xFF_FFFF;
const CODE_SHIFT: u32 = 24;
const VALUE_SHIFT: u32 = 40;
const NO_CODE: u64 = 0xFFFF;
/// Places tried before the search for a family goes on from where it ended: earlier gaps are too small for its like.
const PATIENCE: usize = 40;
/// Sizes of families that are searched from places of their own; larger ones share the last.
const FAMILIES: usize = 64;

/// A node: where its children begin, its last letter and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node(u64);

impl Node {
    /// Return where the child by a letter is, if there is one.
    #[inline]
    pub(super) fn child_place(self, code: u16) -> usize {
        (self.0 & BASE) as usize + usize::from(code)
    }

    /// Return whether the letter with a code led to this node.
    #[inline]
    pub(super) fn is_reached_by(self, code: u16) -> bool {
        (self.0 >> CODE_SHIFT) as u16 == code
    }

    /// Return the value of the word that ends here; 0 without one.
    #[inline]
    pub(super) fn value(self) -> u16 {
        (self.0 >> VALUE_SHIFT) as u16
    }
}

/// The nodes of a dictionary, as [`nodes_of`] makes them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trie<'a> {
    pub(super) nodes: &'a [u64],
}

impl Trie<'_> {
    /// Return the node at a place: of the first level, that is the code of its letter. Nobody is beyond the end.
    #[inline]
    pub(super) fn node(self, place: usize) -> Node {
        Node(self.nodes.get(place).copied().unwrap_or(NO_CODE << CODE_SHIFT | BASE))
    }

    /// Ask memory for the node at a place, which is read later.
    #[inline]
    pub(super) fn prefetch(self, place: usize) {
        prefetch(self.nodes, place);
    }

    /// Return the child of a node by a letter.
    #[inline]
    pub(super) fn child(self, node: Node, code: u16) -> Option<Node> {
        let child = self.node(node.child_place(code));
        (code != NO_LETTER && child.is_reached_by(code)).then_some(child)
    }

    /// Return the value of a word; 0 without one.
    pub(super) fn value(self, codes: &[u16]) -> u16 {
        let Some((&first, rest)) = codes.split_first() else { return 0 };
        rest.iter().try_fold(self.node(first.into()), |node, &code| self.child(node, code)).map_or(0, Node::value)
    }
}

/// Return the nodes of words, sorted and distinct, each with a value, 0 for one that is not to be found.
///
/// `code_of`: the code of a letter, 1 to `last_code`, by which no two are equal; all letters of all words have one. None if
/// there are more nodes than addresses: some ten million.
pub(super) fn nodes_of(words: &[(&str, u16)], code_of: impl Fn(char) -> u16, last_code: u16) -> Option<Vec<u64>> {
    let tree = Tree::of(words, code_of);
    let least = tree.codes.len() * 5 / 4 + 3 * usize::from(last_code) + 1024;
    let mut rooms = (0..).map(|doublings| least << doublings).take_while(|&room| room < 2 * BASE as usize);
    rooms.find_map(|room| tree.placed(last_code.into(), room)).filter(|nodes| nodes.len() <= BASE as usize)
}

/// The tree of words: nodes by number, the root first, the children of a node one after the other.
struct Tree {
    codes: Vec<u16>,
    values: Vec<u16>,
    /// The first child of each node, and how many there are.
    children: Vec<(u32, u16)>,
}

impl Tree {
    fn of(words: &[(&str, u16)], code_of: impl Fn(char) -> u16) -> Self {
        let mut tree = Self { codes: vec![0], values: vec![0], children: vec![(0, 0)] };
        // What is left of each word, with the node that its first letters led to; words of one node are neighbours.
        let mut level: Vec<(u32, &str, u16)> = words.iter().map(|&(word, value)| (0, word, value)).collect();
        loop {
            level.retain(|(_, rest, _)| !rest.is_empty());
            if level.is_empty() {
                return tree;
            }
            let mut last = None;
            for (node, rest, value) in &mut level {
                let mut letters = rest.chars();
                let branch = (*node, letters.next());
                *rest = letters.as_str();
                if last != Some(branch) {
                    last = Some(branch);
                    tree.add_child(*node as usize, branch.1.map_or(NO_LETTER, &code_of));
                }
                *node = tree.codes.len() as u32 - 1;
                if rest.is_empty() {
                    tree.values[*node as usize] = *value;
                }
            }
        }
    }

    fn add_child(&mut self, parent: usize, code: u16) {
        if self.children[parent].1 == 0 {
            self.children[parent].0 = self.codes.len() as u32;
        }
        self.children[parent].1 += 1;
        self.codes.push(code);
        self.values.push(0);
        self.children.push((0, 0));
    }

    fn codes_of_children(&self, node: usize) -> &[u16] {
        let (first, count) = self.children[node];
        &self.codes[first as usize..][..count.into()]
    }

    /// Return the nodes at their places; None if these are more than `room`.
    fn placed(&self, last_code: usize, room: usize) -> Option<Vec<u64>> {
        let mut order: Vec<u32> =
            (1..self.codes.len() as u32).filter(|&node| self.children[node as usize].1 > 0).collect();
        order.sort_by_key(|&node| std::cmp::Reverse(self.children[node as usize].1));
        let mut free = FreePlaces::new(room, last_code);
        let mut bases = vec![0u32; self.codes.len()]; // of the root, whose children are at the places of their codes
        for node in order {
            bases[node as usize] = free.take(self.codes_of_children(node as usize))? as u32;
        }
        // What has no children leads to where no node has a code: behind all of them.
        let used = free.used;
        let mut nodes = vec![NO_CODE << CODE_SHIFT | used as u64; used + last_code + 1];
        for (parent, &base) in bases.iter().enumerate() {
            let first = self.children[parent].0 as usize;
            for (child, &code) in (first..).zip(self.codes_of_children(parent)) {
                let children = if self.children[child].1 > 0 { bases[child] as usize } else { used };
                let code_here = if parent == 0 { NO_CODE } else { code.into() };
                nodes[base as usize + usize::from(code)] =
                    children as u64 | code_here << CODE_SHIFT | u64::from(self.values[child]) << VALUE_SHIFT;
            }
        }
        Some(nodes)
    }
}

/// Places that no node has taken: a list, in which each knows its neighbours.
struct FreePlaces {
    following: Vec<u32>,
    before: Vec<u32>,
    is_taken: Vec<bool>,
    is_base: Vec<bool>,
    /// Where the search for a family of so many begins.
    begins: [usize; FAMILIES],
    head: usize,
    used: usize,
    end: usize,
}

impl FreePlaces {
    const NONE: u32 = u32::MAX;

    fn new(room: usize, last_code: usize) -> Self {
        let head = last_code + 1; // places of the first level are not free
        let mut before: Vec<u32> = (0..=room as u32).map(|place| place.wrapping_sub(1)).collect();
        before[head] = Self::NONE;
        let mut is_taken = vec![false; room + 1];
        is_taken[..head].fill(true);
        Self {
            following: (1..room as u32 + 2).collect(),
            before,
            is_taken,
            is_base: vec![false; room + 1],
            begins: [0; FAMILIES],
            head,
            used: head,
            end: room - last_code - 1,
        }
    }

    /// Take the places of a family, and return its base; None if there are none.
    fn take(&mut self, codes: &[u16]) -> Option<usize> {
        let least = usize::from(*codes.iter().min()?);
        let kind = codes.len().min(FAMILIES - 1);
        let mut at = if codes.len() > 1 && self.begins[kind] > 0 { self.begins[kind] } else { self.head };
        while at < self.end && self.is_taken[at] {
            at += 1;
        }
        let mut tries = 0;
        let fits =
            |base: usize| !self.is_base[base] && codes.iter().all(|&code| !self.is_taken[base + usize::from(code)]);
        while at < self.end && !(at > least && fits(at - least)) {
            tries += 1;
            at = self.following[at] as usize;
        }
        if at >= self.end {
            return None;
        }
        if codes.len() > 1 && tries > PATIENCE {
            self.begins[kind] = at;
        }
        let base = at - least;
        self.is_base[base] = true;
        for &code in codes {
            self.take_place(base + usize::from(code));
        }
        Some(base)
    }

    fn take_place(&mut self, place: usize) {
        self.is_taken[place] = true;
        let (before, following) = (self.before[place], self.following[place]);
        match before {
            Self::NONE => self.head = following as usize,
            before => self.following[before as usize] = following,
        }
        self.before[following as usize] = before;
        self.used = self.used.max(place + 1);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn code_of(letter: char) -> u16 {
        u16::try_from(u32::from(letter) - u32::from('a')).unwrap() * 37 % 101 + 1
    }

    fn codes(word: &str) -> Vec<u16> {
        word.chars().map(code_of).collect()
    }

    proptest! {
        /// A trie says of each word what a map says.
        #[test]
        fn a_trie_has_the_words_of_a_map(words in prop::collection::btree_map("[a-z]{1,6}", any::<u16>(), 0..300), others in prop::collection::vec("[a-z]{0,7}", 0..50)) {
            let sorted: Vec<_> = words.iter().map(|(word, &value)| (word.as_str(), value)).collect();
            let nodes = nodes_of(&sorted, code_of, 101).unwrap();
            let trie = Trie { nodes: &nodes };
            let prefixes = words.keys().map(|word| word[1..].to_owned());
            for word in words.keys().cloned().chain(others).chain(prefixes) {
                prop_assert_eq!(trie.value(&codes(&word)), words.get(&word).copied().unwrap_or(0), "{}", word);
            }
            prop_assert_eq!(trie.value(&[1, NO_LETTER]), 0);
        }
    }

    /// Many words with one beginning need more room than is expected; it is found.
    #[test]
    fn a_crowded_trie_gets_more_room() {
        let words: BTreeMap<String, u16> = (0..2000u32)
            .map(|number| {
                (format!("{}{}", "a".repeat((number % 50) as usize), char::from(b'b' + (number % 25) as u8)), 7)
            })
            .collect();
        let sorted: Vec<_> = words.iter().map(|(word, &value)| (word.as_str(), value)).collect();
        let nodes = nodes_of(&sorted, code_of, 101).unwrap();
        assert!(sorted.iter().all(|(word, value)| Trie { nodes: &nodes }.value(&codes(word)) == *value));
    }
}
