//! Text → words and the pieces between them, by the segmenter of its script.

pub mod jieba;
pub mod jieba_model;
mod model_file;
pub mod scripts;
mod trie;
pub mod word_boundaries;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use jieba::JiebaCutter;
use jieba_model::JiebaModel;
use scripts::Language;

use crate::error::Result;

/// Characters of a text that are cut at once.
const PART: usize = 1 << 18;

/// A word, or a piece between two: a place in the text. Pairs of characters overlap.
pub type Segment = Range<usize>;

/// Gives each text to the segmenter of its script. It does not change, so threads and clones share it.
#[derive(Clone)]
pub struct Segmenter {
    chinese: Arc<JiebaModel>,
}

impl Segmenter {
    /// Open the dictionary of the jieba in a folder, with a user's words; see [`JiebaModel::open`].
    ///
    /// # Errors
    /// As there.
    pub fn open(jieba: &Path, cache: Option<&Path>, user_words: &[String]) -> Result<Self> {
        Ok(Self { chinese: Arc::new(JiebaModel::open(jieba, cache, user_words)?) })
    }

    /// Append the segments of a folded text. language: what the page states.
    pub fn cut(&self, points: &[u32], language: Language, cutter: &mut JiebaCutter, segments: &mut Vec<Segment>) {
        if scripts::is_chinese(points, language) {
            self.cut_chinese(points, cutter, segments);
        } else {
            Self::cut_at_boundaries(points, segments);
        }
    }

    /// Append the segments of a text as jieba cuts it.
    pub fn cut_chinese(&self, points: &[u32], cutter: &mut JiebaCutter, segments: &mut Vec<Segment>) {
        cut_in_parts(points, segments, |part, segments| cutter.cut(self.chinese.arrays(), part, segments));
    }

    /// Append the segments of a text between Unicode word boundaries.
    pub fn cut_at_boundaries(points: &[u32], segments: &mut Vec<Segment>) {
        cut_in_parts(points, segments, word_boundaries::cut);
    }
}

/// Append the segments of a long text part by part: a part ends after a line, or after a word if a line is longer.
pub(crate) fn cut_in_parts(
    points: &[u32],
    segments: &mut Vec<Segment>,
    mut cut: impl FnMut(&[u32], &mut Vec<Segment>),
) {
    let mut start = 0;
    while start < points.len() {
        let mut end = points.len().min(start + PART);
        if end < points.len() {
            let last = |space: char| points[start + 1..end].iter().rposition(|&code| code == u32::from(space));
            end = last('\n').or_else(|| last(' ')).map_or(end, |place| start + place + 2);
        }
        let first = segments.len();
        cut(&points[start..end], segments);
        for segment in &mut segments[first..] {
            *segment = segment.start + start..segment.end + start;
        }
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A long text is cut after its last line that fits, or else after its last word, or else anywhere.
    #[test]
    fn parts_end_after_a_line_or_a_word() {
        for (text, ends) in [
            (
                format!("{}\n{} {}", "a".repeat(9), "b".repeat(PART - 20), "c".repeat(100)),
                vec![10, PART - 9, PART + 91],
            ),
            (format!("{} {}", "b".repeat(9), "c".repeat(PART)), vec![10, PART + 10]),
            ("c".repeat(PART + 1), vec![PART, PART + 1]),
        ] {
            let points: Vec<u32> = text.chars().map(u32::from).collect();
            let mut segments = Vec::new();
            cut_in_parts(&points, &mut segments, |part, segments| segments.push(0..part.len()));
            assert_eq!(segments.iter().map(|segment| segment.end).collect::<Vec<_>>(), ends);
            assert_eq!(segments.iter().map(ExactSizeIterator::len).sum::<usize>(), points.len());
        }
    }
}
