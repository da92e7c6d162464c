//! jieba's segmentation: the words of `jieba.cut(text)`, to the last rounding, since sums are made in the same order.
//!
//! 1. Letters (Chinese ones, and ASCII letters, digits and `+#&._%-`) are looked up in the dictionary, from each place
//!    on. All else is a piece of its own, `\r\n` together.
//! 2. The path with the highest product of word probabilities is found from right to left; of equal ones the longer
//!    word.
//! 3. Neighbouring words of one letter are joined and cut again, unless they are a word together: Chinese letters by the
//!    hidden Markov model, numbers and Latin words by jieba's pattern for them.
//!
//! Words of one to three letters are looked up at all places first, in passes without branches: a look-up waits for
//! memory, and many can wait together.
//!
//! Source: <https://github.com/fxsjy/jieba> (`Tokenizer.cut`, `finalseg.cut`)

use super::Segment;
use super::jieba_model::{ALONE, FIRST, JiebaArrays, LAST, MIDDLE, is_han};
use super::trie::NO_LETTER;

/// Letters of the words that are looked up at all places at once.
const AHEAD: usize = 3;

/// Cuts texts. It is kept for many of them, whose arrays then need no new memory.
#[derive(Default)]
pub struct JiebaCutter {
    codes: Vec<u16>,
    starts: Vec<Start>,
    sums: Vec<f64>,
    lengths: Vec<u32>,
}

/// What the dictionary has from one place of a text on.
#[derive(Clone, Copy, Default)]
struct Start {
    /// Log probabilities of the words of one, two and three letters.
    logs: [f64; AHEAD],
    /// The place of the node of so many letters as were looked up; 0, nobody's, without one.
    place: u32,
}

impl JiebaCutter {
    /// Append the words of a text and the pieces between them.
    pub fn cut(&mut self, model: JiebaArrays, points: &[u32], segments: &mut Vec<Segment>) {
        self.codes.clear();
        self.codes.extend(points.iter().map(|&point| model.code(point)));
        self.codes.resize(points.len() + AHEAD, NO_LETTER);
        self.look_up(model, points.len());
        self.find_best_path(model);
        Text { model, points, codes: &self.codes, lengths: &self.lengths }.cut(segments);
    }

    /// Find the words of up to three letters that begin at each of so many places.
    ///
    /// Each pass asks for the nodes that the next one reads, which so wait for memory together.
    fn look_up(&mut self, model: JiebaArrays, size: usize) {
        let trie = model.trie;
        self.starts.clear();
        self.starts.extend(self.codes[..=size].windows(2).map(|letters| {
            let node = trie.node(letters[0].into());
            let place = node.child_place(letters[1]);
            trie.prefetch(place);
            Start { logs: [model.word_log(node.value()), 0.0, 0.0], place: place as u32 }
        }));
        for letter in 1..AHEAD {
            for (start, letters) in self.starts.iter_mut().zip(self.codes[letter..].windows(2)) {
                let node = trie.node(start.place as usize);
                let is_reached = node.is_reached_by(letters[0]);
                start.logs[letter] = model.word_log(if is_reached { node.value() } else { 0 });
                let place = node.child_place(letters[1]);
                trie.prefetch(place);
                let next = if letter + 1 < AHEAD { place as u32 } else { start.place };
                start.place = if is_reached { next } else { 0 };
            }
        }
    }

    /// Find how long the word is that the best path takes from each place on.
    fn find_best_path(&mut self, model: JiebaArrays) {
        let trie = model.trie;
        let Self { codes, starts, sums, lengths } = self;
        sums.clear();
        sums.resize(starts.len() + AHEAD, 0.0);
        lengths.clear();
        lengths.resize(starts.len(), 0);
        let [mut first, mut second, mut third] = [0.0; AHEAD]; // sums at the next three places
        for (at, start) in starts.iter().enumerate().rev() {
            let (mut best, mut length) = (start.logs[0] + first, 1);
            for (number, sum) in [(2, start.logs[1] + second), (3, start.logs[2] + third)] {
                length = if sum >= best { number } else { length };
                best = if sum >= best { sum } else { best };
            }
            if start.place != 0 {
                let mut end = at + AHEAD;
                let mut node = trie.child(trie.node(start.place as usize), codes[end]);
                while let Some(longer) = node {
                    end += 1;
                    let sum = model.word_log(longer.value()) + sums[end];
                    if sum >= best {
                        (best, length) = (sum, (end - at) as u32);
                    }
                    node = trie.child(longer, codes[end]);
                }
            }
            if best == f64::NEG_INFINITY {
                (best, length) = (model.unknown + first, 1);
            }
            if codes[at] == NO_LETTER {
                best = 0.0; // each run of letters is a path of its own
            }
            (sums[at], lengths[at]) = (best, length);
            (first, second, third) = (best, first, second);
        }
    }
}

/// A text with its best path.
struct Text<'a> {
    model: JiebaArrays<'a>,
    points: &'a [u32],
    /// `NO_LETTER` for what is none, and for AHEAD places behind the end.
    codes: &'a [u16],
    /// Of the word that the path takes from each place on.
    lengths: &'a [u32],
}

impl Text<'_> {
    /// Append the words along the path; runs of single letters are cut again.
    fn cut(&self, segments: &mut Vec<Segment>) {
        let lengths = self.lengths;
        let mut at = 0;
        while at < self.points.len() {
            let start = at;
            if self.codes[at] == NO_LETTER {
                let is_pair = self.points[at..].starts_with(&[u32::from('\r'), u32::from('\n')]);
                at += if is_pair { 2 } else { 1 };
                segments.push(start..at);
                continue;
            }
            if lengths[at] > 1 {
                at += lengths[at] as usize;
                segments.push(start..at);
                continue;
            }
            while at < self.points.len() && self.codes[at] != NO_LETTER && lengths[at] == 1 {
                at += 1;
            }
            if at - start > 1 && self.model.trie.value(&self.codes[start..at]) == 0 {
                self.cut_singles(start, at, segments);
            } else {
                segments.extend((start..at).map(|letter| letter..letter + 1));
            }
        }
    }

    /// Cut a run of single letters into Chinese ones, numbers or Latin words, and what is between those.
    fn cut_singles(&self, begin: usize, end: usize, segments: &mut Vec<Segment>) {
        let run = &self.points[..end];
        let end_of = |start: usize, belongs: fn(u32) -> bool| {
            run[start..].iter().position(|&point| !belongs(point)).map_or(end, |length| start + length)
        };
        let mut at = begin;
        while at < end {
            let start = at;
            if is_han(run[at]) {
                at = end_of(at, is_han);
                self.cut_unknown(start, at, segments);
                continue;
            }
            at = if is_alphanumeric(run[at]) {
                end_of_number(run, at)
            } else {
                end_of(at, |point| !is_alphanumeric(point) && !is_han(point))
            };
            segments.push(start..at);
        }
    }

    /// Cut Chinese letters by the hidden Markov model, with Viterbi's algorithm.
    ///
    /// Before B come E and S, before E come B and M, before M come B and M, before S come E and S.
    fn cut_unknown(&self, begin: usize, end: usize, segments: &mut Vec<Segment>) {
        const BEFORE: [[usize; 2]; 4] = [[LAST, ALONE], [FIRST, MIDDLE], [FIRST, MIDDLE], [LAST, ALONE]];
        let JiebaArrays { start, transitions, .. } = self.model;
        let mut logs = [0.0; 4];
        let of_first = self.model.emissions(self.codes[begin]);
        for state in 0..4 {
            logs[state] = start[state] + of_first[state];
        }
        // Of each letter but the first, and each state: the state before it.
        let mut path: Vec<[u8; 4]> = Vec::with_capacity(end - begin);
        for &code in &self.codes[begin + 1..end] {
            let of_letter = self.model.emissions(code);
            let mut step = [0; 4];
            let mut next = [0.0; 4];
            for state in 0..4 {
                let [one, other] = BEFORE[state];
                let by = |before: usize| logs[before] + transitions[before][state] + of_letter[state];
                let (by_one, by_other) = (by(one), by(other));
                step[state] = if by_other >= by_one { other } else { one } as u8;
                next[state] = if by_other >= by_one { by_other } else { by_one };
            }
            path.push(step);
            logs = next;
        }
        let mut state = if logs[ALONE] >= logs[LAST] { ALONE } else { LAST };
        let number = segments.len();
        let mut word_end = end;
        for (at, step) in (begin + 1..end).zip(&path).rev() {
            state = usize::from(step[state]);
            if matches!(state, LAST | ALONE) {
                segments.push(at..word_end);
                word_end = at;
            }
        }
        segments.push(begin..word_end);
        segments[number..].reverse();
    }
}

/// Return whether a code point is an ASCII letter or digit.
fn is_alphanumeric(point: u32) -> bool {
    u8::try_from(point).is_ok_and(|byte| byte.is_ascii_alphanumeric())
}

/// Return where jieba's pattern `[a-zA-Z0-9]+(?:\.\d+)?%?` ends, which begins at a place.
fn end_of_number(points: &[u32], at: usize) -> usize {
    let is = |at: usize, belongs: &dyn Fn(u8) -> bool| {
        points.get(at).and_then(|&point| u8::try_from(point).ok()).is_some_and(belongs)
    };
    let end_of = |start: usize, belongs: &dyn Fn(u8) -> bool| {
        (start..=points.len()).find(|&at| !is(at, belongs)).unwrap_or(start)
    };
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let mut end = end_of(at, &|byte| byte.is_ascii_alphanumeric());
    if is(end, &|byte| byte == b'.') && is(end + 1, &is_digit) {
        end = end_of(end + 1, &is_digit);
    }
    if is(end, &|byte| byte == b'%') { end + 1 } else { end }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::jieba_model::JiebaModel;
    use super::super::jieba_model::tests::small_jieba;
    use super::super::model_file::tests::Folder;
    use super::*;

    fn cut(model: &JiebaModel, text: &str) -> Vec<String> {
        let points: Vec<u32> = text.chars().map(u32::from).collect();
        let mut segments = Vec::new();
        JiebaCutter::default().cut(model.arrays(), &points, &mut segments);
        let text_of = |segment: Segment| points[segment].iter().filter_map(|&code| char::from_u32(code)).collect();
        segments.into_iter().map(text_of).collect()
    }

    fn model(folder: &Folder) -> JiebaModel {
        small_jieba(&folder.0);
        JiebaModel::open(&folder.0, None, &[]).unwrap()
    }

    #[test]
    fn words_numbers_and_unknown_words_are_cut() {
        let model = model(&Folder::new("jieba-cut"));
        assert_eq!(cut(&model, "大桥今天通车"), ["大桥", "今天", "通车"]);
        assert_eq!(
            cut(&model, "张三 c++ 3.5% x_y\r\n。"),
            ["张三", " ", "c++", " ", "3.5%", " ", "x", "_", "y", "\r\n", "。"]
        );
        assert_eq!(cut(&model, "一二三四大天"), ["一二三四", "大", "天"]);
    }

    proptest! {
        /// The pieces of any text are the text, also by a cutter that has cut another.
        #[test]
        fn pieces_are_the_text(points in prop::collection::vec(prop_oneof![prop::sample::select("大桥今天通车张一二三四c+.3%\r\n ".chars().map(u32::from).collect::<Vec<_>>()), any::<u32>()], 0..60)) {
            let model = model(&Folder::new("jieba-pieces"));
            let mut cutter = JiebaCutter::default();
            let (mut segments, mut again) = (Vec::new(), Vec::new());
            cutter.cut(model.arrays(), &points, &mut segments);
            cutter.cut(model.arrays(), &points[points.len() / 2..], &mut Vec::new());
            cutter.cut(model.arrays(), &points, &mut again);
            prop_assert_eq!(&segments, &again);
            let mut end = 0;
            for segment in segments {
                prop_assert!(segment.start == end && segment.end > end);
                end = segment.end;
            }
            prop_assert_eq!(end, points.len());
        }
    }
}
