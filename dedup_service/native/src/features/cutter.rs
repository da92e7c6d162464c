//! A folded text cut into words and the pieces between them, by the segmenter of its script.
//!
//! Chinese text is cut as jieba does, all other text at Unicode word boundaries, or by ICU's dictionaries where a space
//! says so and the text has a script without spaces. ICU is a library of the caller's.

use std::ops::Range;

use crate::error::{Result, TableError};
use crate::segmentation::jieba::JiebaCutter;
use crate::segmentation::jieba_model::JiebaModel;
use crate::segmentation::scripts::{Language, is_chinese};
use crate::segmentation::{Segment, word_boundaries};

/// Characters of a text that are cut at once.
const PART: usize = 1 << 18;

/// Scripts that ICU has dictionaries for: Thai and Lao, Burmese, Khmer, kana, Han.
const ICU_SCRIPTS: [Range<u32>; 8] = [
    0x0E00..0x0F00,
    0x1000..0x10A0,
    0x1780..0x1800,
    0x3041..0x3097,
    0x30A1..0x30FB,
    0x3400..0x4DC0,
    0x4E00..0xA000,
    0x2_0000..0x4_0000,
];

/// Returns how many characters each word of a text has, and each piece between two; together, all of them.
pub type IcuWords = Box<dyn Fn(&str) -> Result<Vec<usize>> + Send + Sync>;

/// Gives each text to the segmenter of its script. It does not change, so threads share it.
pub struct Cutter {
    chinese: JiebaModel,
    icu: Option<IcuWords>,
}

impl Cutter {
    /// Return a cutter. icu: cuts scripts without spaces; without it, they are cut into pairs of characters.
    pub fn new(chinese: JiebaModel, icu: Option<IcuWords>) -> Self {
        Self { chinese, icu }
    }

    /// Append the segments of `text[range]` as places in `text`; return whether it was cut as Chinese.
    ///
    /// language: what the page states. A long text is cut in parts, which end after a line, or after a word if the line
    /// is longer than a part.
    ///
    /// # Errors
    /// An internal error if ICU's words are not those of the text, or what it fails with.
    pub fn cut(
        &self,
        text: &[u32],
        range: Range<usize>,
        language: Language,
        jieba: &mut JiebaCutter,
        segments: &mut Vec<Segment>,
    ) -> Result<bool> {
        let is_chinese = is_chinese(&text[range.clone()], language);
        let mut rest = range;
        while !rest.is_empty() {
            let part = rest.start..rest.start + end_of_part(&text[rest.clone()]);
            let (points, first) = (&text[part.clone()], segments.len());
            match &self.icu {
                _ if is_chinese => jieba.cut(&self.chinese, points, segments),
                Some(icu) if points.iter().any(|code| is_for_icu(*code)) => cut_by_icu(icu, points, segments)?,
                _ => word_boundaries::cut(points, segments),
            }
            for segment in &mut segments[first..] {
                *segment = segment.start + part.start..segment.end + part.start;
            }
            rest.start = part.end;
        }
        Ok(is_chinese)
    }
}

/// Return where the first part of a text ends.
fn end_of_part(text: &[u32]) -> usize {
    if text.len() <= PART {
        return text.len();
    }
    let last = |space: char| text[1..PART].iter().rposition(|&code| code == u32::from(space));
    last('\n').or_else(|| last(' ')).map_or(PART, |place| place + 2)
}

fn is_for_icu(code: u32) -> bool {
    code >= ICU_SCRIPTS[0].start && ICU_SCRIPTS.iter().any(|script| script.contains(&code))
}

fn cut_by_icu(icu: &IcuWords, points: &[u32], segments: &mut Vec<Segment>) -> Result<()> {
    let text: String = points.iter().filter_map(|&code| char::from_u32(code)).collect();
    let mut at = 0;
    for length in icu(&text)? {
        segments.push(at..at.saturating_add(length).min(points.len()));
        at = at.saturating_add(length);
    }
    if at == points.len() {
        return Ok(());
    }
    let message = format!("ICU's words of a text have {at} characters, and the text has {}", points.len());
    Err(TableError::Internal(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_after_a_line_or_else_a_word() {
        let text = |places: &[(usize, char)]| {
            let mut text = vec![u32::from('x'); PART + 10];
            places.iter().for_each(|&(place, space)| text[place] = space.into());
            text
        };
        let cases = [
            (&[(5, '\n'), (100, ' ')][..], 6),
            (&[(100, ' ')], 101),
            (&[(0, '\n'), (PART, '\n')], PART),
            (&[(PART - 1, ' ')], PART),
        ];
        for (places, end) in cases {
            assert_eq!(end_of_part(&text(places)), end, "{places:?}");
        }
        assert_eq!(end_of_part(&[]), 0);
    }
}
