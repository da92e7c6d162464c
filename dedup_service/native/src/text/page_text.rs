//! The title and body of a page, folded, without a headline and repost markers at the edges of the body.

use super::fold::fold_all;
use super::repost_marks::between_repost_marks;
use crate::characters::characters;

/// Code points of a body, without a headline that repeats the title and without repost markers, then of the title.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodyAndTitle {
    points: Vec<u32>,
    capitals: Vec<u32>,
    body: usize,
}

/// A page folded, and folded without loss where that is another text.
#[derive(Clone, Debug, Default)]
pub struct PageText {
    /// The folded page.
    pub folded: BodyAndTitle,
    exact: Option<BodyAndTitle>,
}

impl PageText {
    /// Fold a page.
    pub fn of(title: &str, body: &str) -> Self {
        let [title, body] = fold_all([title, body]);
        let exact = title.exact.zip(body.exact);
        let exact = exact.map(|(title, body)| BodyAndTitle::bare((&title, &[]), (body, Vec::new())));
        let folded = BodyAndTitle::bare((&title.points, &title.capitals), (body.points, body.capitals));
        Self { folded, exact }
    }

    /// Return the text that the exact form is made of.
    pub fn exact(&self) -> &BodyAndTitle {
        self.exact.as_ref().unwrap_or(&self.folded)
    }
}

impl BodyAndTitle {
    /// Both texts with the places of their capitals.
    fn bare((title, title_capitals): (&[u32], &[u32]), (mut points, mut capitals): (Vec<u32>, Vec<u32>)) -> Self {
        let start = headline_end(title, &points);
        let within = between_repost_marks(&points[start..]);
        let within = start + within.start..start + within.end;
        points.truncate(within.end);
        points.drain(..within.start);
        let body = points.len();
        points.extend_from_slice(title);
        capitals.retain(|&at| within.contains(&(at as usize)));
        for at in &mut capitals {
            *at -= within.start as u32;
        }
        capitals.extend(title_capitals.iter().map(|at| at + body as u32));
        Self { points, capitals, body }
    }

    /// Return the code points of the body, then of the title.
    pub fn points(&self) -> &[u32] {
        &self.points
    }

    /// Return the code points of the body.
    pub fn body(&self) -> &[u32] {
        &self.points[..self.body]
    }

    /// Return the code points of the title.
    pub fn title(&self) -> &[u32] {
        &self.points[self.body..]
    }

    /// Return where in [`Self::points`] a letter was a capital, ascending.
    pub fn capitals(&self) -> &[u32] {
        &self.capitals
    }

    /// Return the letters, digits and written marks of the body.
    pub fn letters(&self) -> Vec<u32> {
        let characters = characters();
        self.body().iter().copied().filter(|&code| characters.is_letter(code)).collect()
    }
}

/// Return where a body begins after a first line that repeats the title or the beginning of it; 0 without one.
///
/// Extraction often leaves the headline at the top of the text, where an edited headline would move the `body` channel.
fn headline_end(title: &[u32], body: &[u32]) -> usize {
    let Some(line) = body.iter().take(2 * title.len() + 1).position(|&code| code == u32::from('\n')) else {
        return 0;
    };
    let (mut headline, mut of_title) = (alphanumeric(&body[..line]).peekable(), alphanumeric(title));
    let is_repeated = headline.peek().is_some() && headline.all(|code| of_title.next() == Some(code));
    if is_repeated && line + 1 < body.len() { line + 1 } else { 0 }
}

fn alphanumeric(text: &[u32]) -> impl Iterator<Item = u32> {
    let characters = characters();
    text.iter().copied().filter(|&code| characters.is_alphanumeric(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body_of(title: &str, body: &str) -> String {
        PageText::of(title, body).folded.body().iter().filter_map(|&code| char::from_u32(code)).collect()
    }

    #[test]
    fn a_headline_that_repeats_the_title_is_no_part_of_the_body() {
        assert_eq!(body_of("Bridge opens - The News", "BRIDGE opens!\nIt opened today."), "it opened today.");
        assert_eq!(body_of("Bridge opens", "Bridge opened\nIt opened today."), "bridge opened\nit opened today.");
        assert_eq!(body_of("Bridge opens", "Bridge opens\n"), "bridge opens");
        assert_eq!(body_of("", "a\nb"), "a\nb");
    }

    #[test]
    fn a_page_has_its_body_before_its_title_and_one_exact_text() {
        let page = PageText::of("Té", "转发: 5² 米");
        assert_eq!(page.folded.points(), "52 米té".chars().map(u32::from).collect::<Vec<_>>());
        assert_eq!((page.folded.title().len(), page.folded.letters().len()), (2, 3));
        assert_eq!(page.exact().body(), "5^2 米".chars().map(u32::from).collect::<Vec<_>>());
    }
}
