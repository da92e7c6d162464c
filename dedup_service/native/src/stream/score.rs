//! The score of two pages: what each quantity adds to the logit of their being one text, and the sum.
//!
//! Each quantity adds ramps: from one knot to the next, as many points as the card says. No ramp has points below 0 and
//! each quantity has one direction, so the score is monotone in all of them.
//!
//! Source: Hastie, Tibshirani, "Generalized additive models", 1986 (the form); docs/adr/0038 (the points, fitted on
//! pairs that people labelled).

use super::compare::Quantities;

/// What a quantity adds.
#[derive(Clone, Debug)]
#[allow(clippy::struct_field_names)] // the points of a quantity are called so everywhere
pub struct Points {
    /// Name of the quantity.
    pub name: &'static str,
    /// The quantity, and the letters of the shorter page.
    of: fn(&Quantities, f64) -> f64,
    /// Whether more of it says that the pages differ.
    is_against: bool,
    knots: &'static [f64],
    points: &'static [f64],
}

/// What pages have before any quantity is looked at.
pub const BIAS: f64 = -3.680;

/// The quantities and their points.
pub const CARD: [Points; 9] = [
    Points {
        name: "held of the longer page",
        of: |of, _| of.held_longer,
        is_against: false,
        knots: &[0.3, 0.5, 0.65, 0.8],
        points: &[1.821, 1.258, 1.747],
    },
    Points {
        name: "held of the shorter page",
        of: |of, _| of.held_shorter,
        is_against: false,
        knots: &[0.4, 0.6, 0.75, 0.85, 0.93, 1.0],
        points: &[1.006, 0.562, 0.0, 0.665, 0.887],
    },
    Points {
        name: "letters of the shorter page",
        of: |_, letters| letters,
        is_against: false,
        knots: &[80.0, 160.0, 350.0, 800.0, 2000.0],
        points: &[0.089, 0.683, 0.29, 0.349],
    },
    Points {
        name: "places that differ",
        of: |of, _| of.hunks,
        is_against: true,
        knots: &[0.0, 0.5, 1.5],
        points: &[0.771, 0.841],
    },
    Points {
        name: "facts swapped",
        of: |of, _| of.swapped,
        is_against: true,
        knots: &[0.1, 0.3, 0.7, 1.5, 3.0],
        points: &[0.382, 0.813, 0.315, 1.919],
    },
    Points {
        name: "numbers swapped",
        of: |of, _| of.swapped_numbers,
        is_against: true,
        knots: &[0.0, 0.03, 0.1, 0.25],
        points: &[1.366, 0.0, 0.061],
    },
    Points {
        name: "facts missing",
        of: |of, _| of.missing_facts,
        is_against: true,
        knots: &[0.05, 0.15, 0.3, 0.6],
        points: &[0.621, 0.036, 0.517],
    },
    Points {
        name: "facts where the pages differ",
        of: |of, _| of.facts_in_hunks,
        is_against: true,
        knots: &[0.5, 0.8],
        points: &[0.757],
    },
    Points {
        name: "title where the pages differ",
        of: |of, _| of.title_in_hunks,
        is_against: true,
        knots: &[0.0, 0.2, 0.5, 1.0],
        points: &[0.457, 1.186, 2.159],
    },
];

impl Points {
    /// Return the quantity of two pages, and the points that it has. letters: of the shorter page, 15 of an alphabet
    /// counted as 8.
    pub fn of(&self, pages: &Quantities, letters: f64) -> (f64, f64) {
        let value = (self.of)(pages, letters);
        let ramp = |from: f64, to: f64| ((value - from) / (to - from)).clamp(0.0, 1.0);
        let ramps = self.knots.windows(2).map(|ends| ramp(ends[0], ends[1]));
        let sum: f64 = ramps.zip(self.points).map(|(ramp, points)| ramp * points).sum();
        (value, if self.is_against { -sum } else { sum })
    }
}

/// Return the score of two pages: above 0, more such pairs are copies than not.
pub fn score_of(pages: &Quantities, letters: f64) -> f64 {
    BIAS + CARD.iter().map(|points| points.of(pages, letters).1).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use proptest::array::uniform9;
    use proptest::prelude::*;

    use super::*;

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

    fn score((pages, letters): (Quantities, f64)) -> f64 {
        score_of(&pages, letters)
    }

    #[test]
    fn a_card_has_points_between_ascending_knots_and_none_below_0() {
        for points in &CARD {
            assert_eq!(points.knots.len(), points.points.len() + 1, "{}", points.name);
            assert!(points.knots.is_sorted_by(|one, other| one < other), "{}", points.name);
            assert!(points.points.iter().all(|&points| points >= 0.0), "{}", points.name);
        }
    }

    proptest! {
        /// A score goes up with what pages share, and down with what differs, whatever the other quantities are.
        #[test]
        fn a_score_is_monotone_in_each_quantity(of in uniform9(0.0..1.0), place in 0..9_usize, other in 0.0..1.0) {
            let mut changed = of;
            changed[place] = other;
            let (less, more) = if other < of[place] { (changed, of) } else { (of, changed) };
            let gain = score(pages(more)) - score(pages(less));
            let is_monotone = if CARD[place].is_against { gain <= 1e-12 } else { gain >= -1e-12 };
            prop_assert!(is_monotone, "{}", gain);
        }

        /// Each line has its quantity, and all of its points beyond the last knot.
        #[test]
        #[allow(clippy::float_cmp)] // the same values, in other places
        fn a_score_is_the_sum_of_its_lines(of in uniform9(0.0..1.0)) {
            let (quantities, letters) = pages(of);
            let lines = CARD.map(|points| points.of(&quantities, letters));
            let sum = lines.iter().fold(BIAS, |sum, (_, points)| sum + points);
            prop_assert!((score((quantities, letters)) - sum).abs() < 1e-9);
            let ranges = [1.0, 1.0, 3000.0, 9.0, 9.0, 1.0, 1.0, 1.0, 1.0];
            prop_assert_eq!(lines.map(|(value, _)| value), std::array::from_fn(|place| ranges[place] * of[place]));
            for (points, (value, found)) in CARD.iter().zip(lines) {
                let all: f64 = points.points.iter().sum();
                prop_assert!(found.abs() <= all + 1e-12 && (found == 0.0 || (found < 0.0) == points.is_against));
                prop_assert!(value > points.knots[0] || found == 0.0);
                prop_assert!(value < *points.knots.last().unwrap() || (found.abs() - all).abs() < 1e-12);
            }
        }
    }
}
