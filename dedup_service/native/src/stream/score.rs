//! The score of two pages: what each quantity adds to the logit of their being one text, and the sum.
//!
//! Each quantity adds ramps: from one knot to the next, as many points as the card of the rule says. All ramps of a
//! quantity have one direction, so the score is monotone in all of them.
//!
//! Source: Hastie, Tibshirani, "Generalized additive models", 1986 (the form); docs/adr/0038 (the points, fitted on
//! pairs that people labelled).

use super::compare::Quantities;
use crate::error::{Result, TableError};

/// A quantity of two pages; letters: of the shorter page, 15 of an alphabet counted as 8.
type Quantity = fn(&Quantities, f64) -> f64;

/// The quantities by name. Which direction each has, and the points that it has by default: `core/evidence/card.py`.
const QUANTITIES: [(&str, Quantity); 9] = [
    ("held of the longer page", |of, _| of.held_longer),
    ("held of the shorter page", |of, _| of.held_shorter),
    ("letters of the shorter page", |_, letters| letters),
    ("places that differ", |of, _| of.hunks),
    ("facts swapped", |of, _| of.swapped),
    ("numbers swapped", |of, _| of.swapped_numbers),
    ("facts missing", |of, _| of.missing_facts),
    ("facts where the pages differ", |of, _| of.facts_in_hunks),
    ("title where the pages differ", |of, _| of.title_in_hunks),
];

/// What a quantity adds.
#[derive(Clone, Debug)]
struct Ramps {
    name: &'static str,
    of: Quantity,
    knots: Vec<f64>,
    points: Vec<f64>,
}

/// What each quantity adds to the score; the default is no card, by which every score is 0.
#[derive(Clone, Debug, Default)]
pub struct Card {
    bias: f64,
    ramps: Vec<Ramps>,
}

impl Card {
    /// Return the card. bias: what pages have before any quantity is looked at. quantities: names, knots, and the points
    /// between each knot and the next, below 0 if they say that the pages differ.
    ///
    /// # Errors
    /// `Configuration`: there is no quantity of that name.
    pub fn new(bias: f64, quantities: Vec<(String, Vec<f64>, Vec<f64>)>) -> Result<Self> {
        let ramps = quantities.into_iter().map(|(name, knots, points)| {
            let known = QUANTITIES.into_iter().find(|(known, _)| *known == name);
            let unknown = || TableError::Configuration(format!("the score has no quantity {name:?}"));
            let (name, of) = known.ok_or_else(unknown)?;
            Ok(Ramps { name, of, knots, points })
        });
        Ok(Self { bias, ramps: ramps.collect::<Result<_>>()? })
    }

    /// Return each quantity of two pages by its name, and the points that it has.
    pub fn lines(&self, pages: &Quantities, letters: f64) -> impl Iterator<Item = (&'static str, f64, f64)> {
        self.ramps.iter().map(move |ramps| {
            let value = (ramps.of)(pages, letters);
            let ramp = |from: f64, to: f64| ((value - from) / (to - from)).clamp(0.0, 1.0);
            let shares = ramps.knots.windows(2).map(|ends| ramp(ends[0], ends[1]));
            (ramps.name, value, shares.zip(&ramps.points).map(|(share, points)| share * points).sum())
        })
    }

    /// Return the score of two pages: above 0, more such pairs are copies than not.
    pub fn score(&self, pages: &Quantities, letters: f64) -> f64 {
        self.bias + self.lines(pages, letters).map(|(_, _, points)| points).sum::<f64>()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::array::uniform9;
    use proptest::prelude::*;

    use super::*;

    const AGAINST: [bool; 9] = [false, false, false, true, true, true, true, true, true];
    const RANGES: [f64; 9] = [1.0, 1.0, 3000.0, 9.0, 9.0, 1.0, 1.0, 1.0, 1.0];

    /// A card of two ramps for each quantity, of so many points.
    pub(crate) fn card(bias: f64, points: [(f64, f64); 9]) -> Card {
        let quantities = QUANTITIES.iter().zip(points).enumerate().map(|(at, ((name, _), (first, second)))| {
            let sign = if AGAINST[at] { -1.0 } else { 1.0 };
            let knots = [0.1, 0.4, 0.9].map(|knot| knot * RANGES[at]);
            ((*name).to_owned(), knots.to_vec(), vec![sign * first, sign * second])
        });
        Card::new(bias, quantities.collect()).unwrap()
    }

    fn pages(of: [f64; 9]) -> (Quantities, f64) {
        let [held_longer, held_shorter, letters, hunks, swapped, swapped_numbers, missing_facts, facts, title] = of;
        let pages = Quantities {
            held_longer,
            held_shorter,
            hunks: 9.0 * hunks,
            swapped: 9.0 * swapped,
            swapped_numbers,
            missing_facts,
            facts_in_hunks: facts,
            title_in_hunks: title,
            ..Quantities::default()
        };
        (pages, 3000.0 * letters)
    }

    #[test]
    fn a_card_of_an_unknown_quantity_is_refused() {
        let found = Card::new(0.0, vec![("luck".to_owned(), vec![0.0, 1.0], vec![1.0])]);
        assert!(matches!(found, Err(TableError::Configuration(message)) if message.contains("luck")));
        assert!(Card::default().score(&Quantities::default(), 0.0).abs() < 1e-12);
    }

    proptest! {
        /// A score goes up with what pages share, and down with what differs, whatever the other quantities are.
        #[test]
        fn a_score_is_monotone_in_each_quantity(
            of in uniform9(0.0..1.0),
            points in uniform9((0.0..5.0, 0.0..5.0)),
            place in 0..9_usize,
            other in 0.0..1.0,
        ) {
            let card = card(-3.0, points);
            let score = |(pages, letters): (Quantities, f64)| card.score(&pages, letters);
            let mut changed = of;
            changed[place] = other;
            let (less, more) = if other < of[place] { (changed, of) } else { (of, changed) };
            let gain = score(pages(more)) - score(pages(less));
            let is_monotone = if AGAINST[place] { gain <= 1e-12 } else { gain >= -1e-12 };
            prop_assert!(is_monotone, "{}", gain);
        }

        /// Each line has its quantity, and all of its points beyond the last knot.
        #[test]
        #[allow(clippy::float_cmp)] // the same values, in other places
        fn a_score_is_the_sum_of_its_lines(of in uniform9(0.0..1.0), points in uniform9((0.0..5.0, 0.0..5.0))) {
            let (quantities, letters) = pages(of);
            let card = card(-3.0, points);
            let lines: Vec<_> = card.lines(&quantities, letters).collect();
            let sum = lines.iter().fold(-3.0, |sum, (_, _, points)| sum + points);
            prop_assert!((card.score(&quantities, letters) - sum).abs() < 1e-9);
            for (at, (_, value, found)) in lines.into_iter().enumerate() {
                prop_assert_eq!(value, RANGES[at] * of[at]);
                let all = points[at].0 + points[at].1;
                prop_assert!(found.abs() <= all + 1e-12 && (found == 0.0 || (found < 0.0) == AGAINST[at]));
                prop_assert!(of[at] > 0.1 || found == 0.0);
                prop_assert!(of[at] < 0.9 || (found.abs() - all).abs() < 1e-12);
            }
        }
    }
}
