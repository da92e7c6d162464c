//! What is known of characters: the tables of `tables/characters.bin`, which `make_tables.py` writes.
//!
//! They are part of the crate and are used where they are, so a start costs nothing and processes share them.

use std::sync::LazyLock;

/// Releases that the tables are from, with those of Chinese script and of character references: part of a space.
pub const VERSION: &str = include_str!("../tables/version.txt");

/// Code points below this one are of the first plane.
pub const PLANE: u32 = 0x1_0000;
const BLOCK_BITS: u32 = 8;

const SLOW: u32 = 0xFFFF;
const CODE_BITS: u32 = 16;
const LIST_SHIFT: u32 = 18;

/// In marks: white space.
pub const IS_SPACE: u8 = 1;
/// In marks: another character may be its form in simplified Chinese.
pub const MAY_BE_TRADITIONAL: u8 = 2;

const LETTER: u8 = 1;
const ALPHANUMERIC: u8 = 2;
const NON_STARTER: u8 = 4;
const SCRIPT_SHIFT: u8 = 3;

/// What folding makes of a character.
#[derive(Clone, Copy, Debug)]
pub enum FoldedForm {
    /// One character, a code point with its marks.
    One(u32, u8),
    /// None or several, each as [`with_marks`] reads it.
    Several(&'static [u32]),
    /// That depends on its neighbours, or says less than the character.
    Unknown,
}

/// Return a code point of a folded text and its marks.
#[inline]
pub fn with_marks(folded: u32) -> (u32, u8) {
    (folded & SLOW, (folded >> CODE_BITS) as u8)
}

/// The script of a letter, as far as it decides who cuts a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Script {
    /// No letter, or one above the first plane that is not Han.
    None,
    /// Latin.
    Latin,
    /// Han.
    Han,
    /// The letters of kana, without their marks.
    Kana,
    /// Any other.
    Other,
}

/// The tables.
pub struct Characters {
    folded: &'static [u32],
    lists: &'static [u32],
    marks: ByBlock,
    traits: ByBlock,
    exact_kinds: ByBlock,
    word_kinds: ByBlock,
    word_steps: &'static [u8],
    exact_plain: Mapping,
    variants: Mapping,
    case_folding: Mapping,
}

static CHARACTERS: LazyLock<Characters> = LazyLock::new(Characters::read);

/// Return the tables.
pub fn characters() -> &'static Characters {
    &CHARACTERS
}

/// Return whether a code point above the first plane counts as a letter: not an emoji, symbol or tag.
#[inline]
pub fn is_letter_above(code: u32) -> bool {
    !(0x1_F000..0x2_0000).contains(&code) && code < 0xE_0000
}

/// Return whether a code point is an emoji or the like above the first plane, which folding leaves as it is.
#[inline]
pub fn is_pictograph(code: u32) -> bool {
    (0x1_F300..0x1_FB00).contains(&code)
}

impl Characters {
    fn read() -> Self {
        let mut arrays = Arrays(&DATA.0);
        Self {
            folded: arrays.next(),
            lists: arrays.next(),
            marks: ByBlock::read(&mut arrays),
            traits: ByBlock::read(&mut arrays),
            exact_kinds: ByBlock::read(&mut arrays),
            word_kinds: ByBlock::read(&mut arrays),
            word_steps: arrays.next(),
            exact_plain: Mapping::read(&mut arrays),
            variants: Mapping::read(&mut arrays),
            case_folding: Mapping::read(&mut arrays),
        }
    }

    /// Return the folded form of a character, but for Chinese script.
    #[inline]
    pub fn folded(&self, code: u32) -> FoldedForm {
        match self.folded.get(code as usize) {
            Some(&folded) if folded & SLOW != SLOW => {
                let (code, marks) = with_marks(folded);
                FoldedForm::One(code, marks)
            }
            Some(&folded) if folded >> LIST_SHIFT > 0 => {
                let start = (folded >> LIST_SHIFT) as usize;
                FoldedForm::Several(&self.lists[start + 1..][..self.lists[start] as usize])
            }
            None if is_pictograph(code) => FoldedForm::One(code, 0),
            _ => FoldedForm::Unknown,
        }
    }

    /// Return the marks of a folded character.
    #[inline]
    pub fn marks(&self, code: u32) -> u8 {
        self.marks.get(code)
    }

    /// Return whether a character counts for the `body` channel.
    #[inline]
    pub fn is_letter(&self, code: u32) -> bool {
        self.traits.get(code) & LETTER != 0
    }

    /// Return whether a character is a letter or of a number in any script.
    #[inline]
    pub fn is_alphanumeric(&self, code: u32) -> bool {
        self.traits.get(code) & ALPHANUMERIC != 0
    }

    /// Return whether a character is a mark that combines with the one before, so that a run of them is sorted.
    #[inline]
    pub fn is_non_starter(&self, character: char) -> bool {
        self.traits.get(character.into()) & NON_STARTER != 0
    }

    /// Return the script of a character.
    #[inline]
    pub fn script(&self, code: u32) -> Script {
        match self.traits.get(code) >> SCRIPT_SHIFT {
            0 => Script::None,
            1 => Script::Latin,
            2 => Script::Han,
            3 => Script::Kana,
            _ => Script::Other,
        }
    }

    /// Return the kind of a character for its exact form, with the bit of one for which another is written.
    #[inline]
    pub fn exact_kind(&self, code: u32) -> u8 {
        self.exact_kinds.get(code)
    }

    /// Return what the exact form has for a character.
    pub fn exact_plain(&self, code: u32) -> u32 {
        self.exact_plain.get(code).and_then(|plain| plain.first().copied()).unwrap_or(code)
    }

    /// Return the kind of a character for word boundaries, with the bit of scripts without spaces.
    #[inline]
    pub fn word_kind(&self, code: u32) -> u8 {
        self.word_kinds.get(code)
    }

    /// Return the state after a character of a kind, and the verdict on a boundary before it, by the state before.
    #[inline]
    pub fn word_step(&self, state: u8, kind: u8) -> u8 {
        self.word_steps[usize::from(state & 31) << 5 | usize::from(kind & 31)]
    }

    /// Return the plain form of a variant, nothing for one to remove; None for what is no variant.
    pub fn variant(&self, character: char) -> Option<impl Iterator<Item = char>> {
        self.variants.get(character.into()).map(text_of)
    }

    /// Return what full case folding makes of a character; None if it leaves it.
    pub fn case_folded(&self, character: char) -> Option<impl Iterator<Item = char>> {
        self.case_folding.get(character.into()).map(text_of)
    }
}

fn text_of(points: &'static [u32]) -> impl Iterator<Item = char> {
    points.iter().filter_map(|&point| char::from_u32(point))
}

/// A value for each code point; blocks of 256 with the same values are there once.
struct ByBlock {
    blocks: &'static [u16],
    values: &'static [u8],
}

impl ByBlock {
    fn read(arrays: &mut Arrays) -> Self {
        Self { blocks: arrays.next(), values: arrays.next() }
    }

    /// Return the value of a code point; 0 for what is none.
    #[inline]
    fn get(&self, code: u32) -> u8 {
        let Some(&block) = self.blocks.get((code >> BLOCK_BITS) as usize) else { return 0 };
        let place = usize::from(block) << BLOCK_BITS | (code as usize & ((1 << BLOCK_BITS) - 1));
        self.values.get(place).copied().unwrap_or(0)
    }
}

/// From code points, ascending, to none or several.
struct Mapping {
    codes: &'static [u32],
    ends: &'static [u32],
    parts: &'static [u32],
}

impl Mapping {
    fn read(arrays: &mut Arrays) -> Self {
        Self { codes: arrays.next(), ends: arrays.next(), parts: arrays.next() }
    }

    fn get(&self, code: u32) -> Option<&'static [u32]> {
        let place = self.codes.binary_search(&code).ok()?;
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        Some(&self.parts[start as usize..self.ends[place] as usize])
    }
}

#[repr(align(8))]
struct Aligned<T: ?Sized>(T);

static DATA: &Aligned<[u8]> = &Aligned(*include_bytes!("../tables/characters.bin"));

#[cfg(target_endian = "big")]
compile_error!("the tables are little-endian");

/// Arrays, each behind its length in bytes.
struct Arrays(&'static [u8]);

impl Arrays {
    fn next<T: bytemuck::AnyBitPattern>(&mut self) -> &'static [T] {
        let (length, rest) = self.0.split_first_chunk().expect("the tables are as the crate has them");
        let (array, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        self.0 = rest;
        bytemuck::cast_slice(array)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All arrays are read, and each code point has a value in each table, as also what is no code point has.
    #[test]
    fn tables_are_whole() {
        let characters = characters();
        for code in (0..0x11_0000).chain([0x11_0000, u32::MAX]) {
            characters.folded(code);
            let script = characters.script(code);
            assert!(script == Script::None || characters.is_letter(code), "{code:x}");
            assert_eq!((PLANE..0x11_0000).contains(&code) && is_letter_above(code), {
                code >= PLANE && characters.is_letter(code)
            });
            characters.word_step(characters.word_kind(code), characters.exact_kind(code));
        }
        assert_eq!(
            characters.case_folding.parts.len(),
            characters.case_folding.ends.last().map_or(0, |&end| end as usize)
        );
        let (major, minor, update) = unicode_normalization::UNICODE_VERSION;
        assert!(VERSION.starts_with(&format!("Unicode {major}.{minor}.{update}, ")), "{VERSION}");
    }
}
