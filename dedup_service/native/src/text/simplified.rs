//! From traditional to simplified Chinese, as `OpenCC`'s conversion `t2s`, and from words of Taiwan and Hong Kong to those
//! of the mainland (`make_tables.py` says which).
//!
//! At each place the longest word of its list of words is replaced, else the character. What describes a character by
//! its parts, `⿰木木`, stays as it is.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What begins with one character.
#[derive(Default)]
struct Forms {
    /// What the character alone becomes; itself if it is not in the list.
    alone: Option<Vec<u32>>,
    /// Words and what they become, the longest first.
    words: Vec<(Vec<u32>, Vec<u32>)>,
}

static FORMS: LazyLock<HashMap<u32, Forms>> = LazyLock::new(|| {
    let mut forms = HashMap::<u32, Forms>::new();
    let points = |text: &str| text.chars().map(u32::from).collect::<Vec<_>>();
    let lines = include_str!("../../tables/simplified.txt").lines();
    for (traditional, simplified) in lines.filter_map(|line| line.split_once('\t')) {
        match points(traditional)[..] {
            [character] => forms.entry(character).or_default().alone = Some(points(simplified)),
            [first, ..] => forms.entry(first).or_default().words.push((points(traditional), points(simplified))),
            [] => {}
        }
    }
    for of_character in forms.values_mut() {
        of_character.words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
    }
    forms
});

/// Return a folded text in simplified Chinese.
pub fn simplified(points: &[u32]) -> Vec<u32> {
    let described = ends_of_descriptions(points);
    let mut written = Vec::with_capacity(points.len());
    let mut at = 0;
    while let Some(&first) = points.get(at) {
        let rest = &points[at..];
        if let Some(end) = described.get(at).copied().filter(|_| parts_of(first) > 0).flatten() {
            written.extend(&points[at..end]);
            at = end;
            continue;
        }
        let forms = FORMS.get(&first);
        if let Some((word, simplified)) =
            forms.and_then(|forms| forms.words.iter().find(|(word, _)| rest.starts_with(word)))
        {
            written.extend(simplified);
            at += word.len();
            continue;
        }
        match forms.and_then(|forms| forms.alone.as_ref()) {
            Some(simplified) => written.extend(simplified),
            None => written.push(first),
        }
        at += 1;
    }
    written
}

/// Return how many parts an ideographic description character says a character has; 0 for any other.
fn parts_of(code: u32) -> usize {
    match code {
        0x2FF2 | 0x2FF3 => 3,
        0x2FF0..=0x2FFB => 2,
        _ => 0,
    }
}

/// Return where the description that begins at each place ends; None if the text ends before. Nothing without any.
fn ends_of_descriptions(points: &[u32]) -> Vec<Option<usize>> {
    if points.iter().all(|&code| parts_of(code) == 0) {
        return Vec::new();
    }
    let mut ends = vec![None; points.len()];
    for (at, &code) in points.iter().enumerate().rev() {
        let next = |end: usize| ends.get(end).copied().flatten();
        ends[at] = (0..parts_of(code)).try_fold(at + 1, |end, _| next(end));
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_before_characters_and_descriptions_stay() {
        for (traditional, plain) in [
            ("憑藉慰藉", "凭借慰藉"),
            ("軟體動物與軟體", "软体动物与软件"),
            ("尼日利亞的程序", "尼日利亚的程序"),
            ("⿰漢⿱漢漢漢", "⿰漢⿱漢漢汉"),
            ("⿲漢漢 漢", "⿲漢漢 汉"),
            ("⿰⿰漢漢", "⿰⿰漢漢"),
            ("漢⿰漢", "汉⿰汉"),
        ] {
            let points: Vec<u32> = traditional.chars().map(u32::from).collect();
            let text: String = simplified(&points).into_iter().filter_map(char::from_u32).collect();
            assert_eq!(text, plain);
        }
    }
}
