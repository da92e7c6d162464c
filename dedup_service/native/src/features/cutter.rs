//! A folded text cut into words and the pieces between them, by the segmenter of its script.
//!
//! Chinese text is cut as jieba does, all other text at Unicode word boundaries, or by ICU's dictionaries where a space
//! says so and the text has a script without spaces. ICU is a library of the caller's.

use std::ops::Range;

use crate::error::{Result, TableError};
use crate::segmentation::jieba::JiebaCutter;
use crate::segmentation::scripts::{Language, is_chinese};
use crate::segmentation::{Segment, Segmenter, cut_in_parts, word_boundaries};

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
    segmenter: Segmenter,
    icu: Option<IcuWords>,
}

impl Cutter {
    /// Return a cutter. icu: cuts scripts without spaces; without it, they are cut into pairs of characters.
    pub fn new(segmenter: Segmenter, icu: Option<IcuWords>) -> Self {
        Self { segmenter, icu }
    }

    /// Append the segments of `text[range]` as places in `text`; return whether it was cut as Chinese.
    ///
    /// language: what the page states.
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
        let (start, first, points) = (range.start, segments.len(), &text[range]);
        let is_chinese = is_chinese(points, language);
        match &self.icu {
            _ if is_chinese => self.segmenter.cut_chinese(points, jieba, segments),
            None => Segmenter::cut_at_boundaries(points, segments),
            Some(icu) => {
                let mut done = Ok(());
                cut_in_parts(points, segments, |part, segments| {
                    if !part.iter().any(|code| is_for_icu(*code)) {
                        word_boundaries::cut(part, segments);
                    } else if done.is_ok() {
                        done = cut_by_icu(icu, part, segments);
                    }
                });
                done?;
            }
        }
        for segment in &mut segments[first..] {
            *segment = segment.start + start..segment.end + start;
        }
        Ok(is_chinese)
    }
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
