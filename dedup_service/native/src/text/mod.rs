//! From the title and text of a page to folded code points, n-grams and the exact form.

pub mod crowded_tags;
pub mod exact_form;
pub mod fold;
pub mod ngrams;
pub mod page_text;
mod references;
pub mod repost_marks;
pub mod simplified;

pub use page_text::PageText;
