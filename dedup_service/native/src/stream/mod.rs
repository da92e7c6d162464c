//! A page as a thin stream: every token in its order, in few bits; and what two streams say of two pages.

pub mod compare;
pub mod grams;
pub mod packed;
pub mod score;
pub mod tokens;

#[cfg(test)]
mod tests;
