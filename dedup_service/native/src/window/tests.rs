//! The window against a list of all pages that were ever kept, of which none is dropped.

use proptest::prelude::*;

use super::*;
use crate::memory::mix64;

/// What happens to the window.
#[derive(Clone, Debug)]
enum Step {
    /// A batch: of each page what it is like, and whether it is kept, live or not.
    Batch(Vec<(Kind, Option<bool>)>),
    /// The live entry with this number among those that are not settled is removed.
    Remove(usize),
    /// Entries up to so many ordinals before the latest are settled.
    Settle(u64),
    /// The same leave.
    Leave(u64),
    /// The settled entry with this number is forgotten.
    Forget(usize),
}

/// What a page is like: few values, so that they are equal and near often.
#[derive(Clone, Debug)]
struct Kind {
    sketch: u64,
    shingles: u32,
    has_keys: bool,
    words: u64,
    hash: u64,
    claim: Option<u64>,
    flags: u8,
}

fn kinds() -> impl Strategy<Value = Kind> {
    let values = (0..3u64, 0..2u32, any::<bool>(), 0..40u64, 1..9u64, prop::option::of(1..9u64), any::<u8>());
    values.prop_map(|(sketch, shingles, has_keys, words, hash, claim, flags)| {
        let flags = flags & !flags::SETTLED;
        Kind { sketch, shingles, has_keys, words, hash, claim, flags }
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let batch = prop::collection::vec((kinds(), prop::option::of(prop::bool::weighted(0.9))), 0..40);
    let step = prop_oneof![
        3 => batch.prop_map(Step::Batch),
        2 => any::<usize>().prop_map(Step::Remove),
        2 => (0..150u64).prop_map(Step::Settle),
        2 => (0..150u64).prop_map(Step::Leave),
        1 => any::<usize>().prop_map(Step::Forget),
    ];
    prop::collection::vec(step, 0..30)
}

/// All pages that were ever kept, by their places, and those of the batch.
#[derive(Default)]
struct Model {
    pages: Vec<(Young, Kind)>,
    announced: usize,
    ordinal: u64,
    settled: usize,
    left: i64,
    start: usize,
}

impl Model {
    fn kept(&self) -> usize {
        self.pages.len() - self.announced
    }

    fn has_left(&self, place: usize) -> bool {
        place < self.settled && self.pages[place].0.ordinal() <= self.left
    }

    /// Places of the live entries that are not settled.
    fn young(&self) -> Vec<usize> {
        (self.settled..self.pages.len()).filter(|&place| self.pages[place].0.is_live).collect()
    }

    /// Places before a page of the batch, of the entries that are not settled, for which something holds of both.
    fn before(&self, page: usize, holds: impl Fn(&(Young, Kind), &(Young, Kind)) -> bool) -> Vec<usize> {
        (self.settled..page).filter(|&place| holds(&self.pages[page], &self.pages[place])).collect()
    }

    fn young_of(&mut self, kind: &Kind) -> Young {
        self.ordinal += 1;
        let (words, hash) = (mix64(kind.words / 10) ^ (kind.words % 10), kind.hash);
        let row = Row {
            sequence: 2 * self.ordinal as i64,
            words,
            body: !words,
            body_hash: hash,
            text_hash: hash / 2,
            url_hash: hash << 40,
            ordinal: self.ordinal,
            flags: kind.flags,
            ..Row::default()
        };
        let keys = if kind.has_keys { vec![1; 4] } else { Vec::new() };
        Young::new(row, vec![7; 3].into(), keys.into(), kind.shingles, Box::default())
    }
}

/// Return the sketch with a number; those of different numbers differ in half of their bits.
fn sketch_of(number: u64) -> Sketch {
    std::array::from_fn(|byte| mix64(number << 8 | byte as u64) as u8)
}

fn seen(entry: &Young) -> (i64, u8, usize, Vec<u8>, Option<u32>) {
    (entry.row.sequence, entry.row.flags, entry.evidence.len(), entry.keys.to_vec(), entry.settled_row)
}

/// Everything that can be asked for is what the model says.
fn assert_equal(window: &Window, model: &Model) {
    let young = model.young();
    let entries: Vec<_> = young.iter().map(|&place| seen(&model.pages[place].0)).collect();
    assert_eq!(window.iter().map(seen).collect::<Vec<_>>(), entries);
    assert_eq!(window.len(), entries.len());
    assert_eq!(window.earliest().map(seen), entries.first().cloned());
    for sequence in 0..2 * model.ordinal as i64 + 3 {
        let expected = entries.iter().find(|entry| entry.0 == sequence).cloned();
        assert_eq!(window.get(sequence).map(seen), expected);
    }
    for hash in 1..9u64 {
        let expected = young.iter().find(|&&place| model.pages[place].0.row.url_hash == hash << 40);
        assert_eq!(window.visit(hash << 40).map(seen), expected.map(|&place| seen(&model.pages[place].0)));
    }
    for (place, (page, _)) in model.pages.iter().enumerate() {
        let live = page.is_live.then(|| seen(page));
        let at = live.clone().filter(|_| !model.has_left(place));
        assert_eq!(window.at(place).map(seen), at);
        if place >= model.start {
            assert_eq!(window.live(place).map(seen), live);
        }
    }
    for ordinal in [0, model.ordinal / 2, model.ordinal] {
        let last = |place: &usize| model.pages[*place].0.row.ordinal <= ordinal;
        let expected = (model.settled..model.kept()).take_while(last).map(|place| {
            let (page, kind) = &model.pages[place];
            let sketch = sketch_of(kind.sketch);
            let word = |at: usize| u64::from_le_bytes(sketch[at..at + 8].try_into().unwrap());
            (seen(page), if page.is_live { [word(0), word(8)] } else { [0, 0] })
        });
        let unsettled = window.unsettled(ordinal as i64).map(|(page, sieve)| (seen(page), sieve));
        assert_eq!(unsettled.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}

/// What a batch has in common with the window is what all pairs say.
fn assert_batch_equal(window: &Window, model: &Model, by_keys: bool) {
    let search = Search { by_keys, most_bits_apart: Some(0), words_radius: Some(2), body_radius: None };
    let claims: Vec<_> =
        model.pages[model.kept()..].iter().map(|(_, kind)| kind.claim.map(|hash| hash << 40)).collect();
    let (matches, equal) = (window.compare(&search), window.equal(&claims));
    assert_eq!((matches.len(), equal.len(), window.announced()), (model.announced, model.announced, model.announced));
    for (page, (matches, equal)) in (model.kept()..).zip(matches.iter().zip(&equal)) {
        let mut expected = Matches::default();
        let (one, kind) = &model.pages[page];
        for (place, (other, others)) in model.pages.iter().enumerate().take(page).skip(model.start) {
            let shingles = by_keys && kind.has_keys && kind.shingles > 0 && others.shingles > 0;
            let by_sieve = shingles && kind.sketch == others.sketch;
            let indexed = |page: &Young| page.has(flags::INDEXED | flags::WORDS);
            let distance = (one.row.words ^ other.row.words).count_ones();
            let by_distance = indexed(one) && indexed(other) && distance <= 2;
            expected.passed += usize::from(by_sieve);
            if by_sieve || by_distance {
                expected.found.push(Found { place, by_sieve, by_distance });
            }
        }
        assert_eq!(*matches, expected);
        let both = |flag: u8, one: &Young, other: &Young| one.has(flag) && other.has(flag);
        let expected = EqualPlaces {
            urls: model.before(page, |one, other| one.1.hash == other.1.hash),
            claims: model.before(page, |one, other| one.1.claim == Some(other.1.hash)),
            texts: model.before(page, |(one, ours), (other, theirs)| {
                both(flags::TEXT_HASH, one, other) && ours.hash / 2 == theirs.hash / 2
            }),
            bodies: model.before(page, |(one, ours), (other, theirs)| {
                both(flags::BODY_DECIDES, one, other) && ours.hash == theirs.hash
            }),
        };
        assert_eq!(*equal, expected);
    }
}

/// Do a step with both.
fn take(step: Step, window: &mut Window, model: &mut Model, row: &mut u32) {
    match step {
        Step::Batch(pages) => {
            while model.start < model.kept() && model.has_left(model.start) {
                model.start += 1;
            }
            let batch: Vec<Young> = pages.iter().map(|(kind, _)| model.young_of(kind)).collect();
            window.announce(batch.iter().cloned().zip(pages.iter().map(|(kind, _)| sketch_of(kind.sketch))));
            model.announced = pages.len();
            model.pages.extend(batch.into_iter().zip(pages.iter().map(|(kind, _)| kind.clone())));
            let first = model.kept();
            for (number, kept) in pages.iter().enumerate().filter_map(|(number, page)| Some((number, page.1?))) {
                if number == pages.len() / 2 {
                    assert_batch_equal(window, model, true);
                }
                window.keep(number, kept);
                model.pages[first + number].0.is_live = kept;
            }
            assert_batch_equal(window, model, pages.len() % 2 == 0);
            assert_equal(window, model);
            window.finish();
            let batch: Vec<_> = model.pages.drain(first..).zip(pages).collect();
            model.pages.extend(batch.into_iter().filter(|(_, page)| page.1.is_some()).map(|(page, _)| page));
            model.announced = 0;
        }
        Step::Remove(number) => {
            let young = model.young();
            let Some(&place) = young.get(number % young.len().max(1)) else { return };
            let page = &mut model.pages[place].0;
            (page.is_live, page.evidence) = (false, Box::default());
            page.row.flags &= !flags::BODY_DECIDES;
            assert!(window.remove(page.row.sequence));
            assert!(!window.remove(page.row.sequence));
        }
        Step::Settle(before) => {
            let ordinal = model.ordinal as i64 - before as i64;
            let due = window.backlog(ordinal);
            let paths: Vec<Box<[u8]>> = (0..due).map(|number| vec![number as u8].into()).collect();
            window.settle(*row, paths.clone());
            for (path, number) in paths.into_iter().zip(*row..) {
                let page = &mut model.pages[model.settled].0;
                (page.keys, page.settled_row) = (path, Some(number));
                page.row.flags |= flags::SETTLED;
                model.settled += 1;
            }
            *row += due as u32;
        }
        Step::Leave(before) => {
            let ordinal = model.ordinal as i64 - before as i64;
            window.leave(ordinal);
            model.left = model.left.max(ordinal);
        }
        Step::Forget(number) => {
            let place = number % model.settled.max(1);
            if place < model.settled {
                window.forget(model.pages[place].0.ordinal());
                model.pages[place].0.is_live &= model.has_left(place);
            }
        }
    }
}

proptest! {
    /// After any calls the window says what a list of all pages says.
    #[test]
    fn says_what_a_list_of_all_pages_says(steps in steps()) {
        let (mut window, mut model, mut row) = (Window::default(), Model::default(), 0);
        for step in steps {
            take(step, &mut window, &mut model, &mut row);
            assert_equal(&window, &model);
        }
    }
}

/// A batch of 300 copies on 300 copies: 135,000 pairs, all of them found; what has left takes no memory.
#[test]
fn crowds_are_found_and_leave() {
    let (mut window, mut model) = (Window::default(), Model::default());
    let kind = Kind { sketch: 1, shingles: 9, has_keys: true, words: 5, hash: 1, claim: None, flags: u8::MAX };
    let search = Search { by_keys: true, most_bits_apart: Some(512), words_radius: Some(0), body_radius: None };
    for batch in 0..20 {
        let pages: Vec<_> = (0..300).map(|_| (model.young_of(&kind), sketch_of(1))).collect();
        window.announce(pages);
        if batch == 1 {
            for (page, matches) in window.compare(&search).iter().enumerate() {
                assert_eq!((matches.passed, matches.found.len()), (300 + page, 300 + page));
            }
        }
        (0..300).for_each(|page| window.keep(page, true));
        window.finish();
        let ordinal = model.ordinal as i64 - 300;
        let due = window.backlog(ordinal);
        window.settle(0, (0..due).map(|_| Box::default()));
        window.leave(ordinal);
    }
    assert_eq!(window.len(), 300);
    assert!(window.entries.len() <= 600 && window.tiles.len() <= 11);
}
