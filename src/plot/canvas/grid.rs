//! A grid of cells, each with a picture and two lines of caption.

use std::path::Path;

use super::Point;
use super::lettering::{fitted, text_width};
use crate::Result;
use crate::plot::{Canvas, Colour, TextAnchor};

/// The default width of a cell, and the height of its picture.
pub(in crate::plot) const CELL: f64 = 190.0;
const CAPTION: f64 = 40.0;
pub(in crate::plot) const TEXT: f64 = 12.0;

/// The layout of a sheet's cells.
pub(in crate::plot) struct Grid<'a> {
    pub(in crate::plot) title: &'a str,
    /// Cells in a row; chosen by their number if `None`.
    pub(in crate::plot) columns: Option<usize>,
    pub(in crate::plot) side: f64,
    /// Number of cells.
    pub(in crate::plot) n: usize,
}

impl Grid<'_> {
    fn columns(&self) -> usize {
        let by_number = if self.n <= 4 { self.n.max(1) } else { (1.5 * self.n as f64).sqrt().ceil() as usize };
        self.columns.unwrap_or_else(|| by_number.min(8))
    }

    fn head(&self) -> f64 {
        if self.title.is_empty() { 8.0 } else { 40.0 }
    }

    /// A canvas with the title, and `foot` units below the cells.
    pub(in crate::plot) fn canvas(&self, foot: f64) -> Canvas {
        let width = self.side * self.columns() as f64 + 16.0;
        let rows = self.n.div_ceil(self.columns()) as f64;
        let mut canvas = Canvas::new(width, self.head() + (self.side + CAPTION) * rows + foot);
        let title = fitted(self.title, 18.0, width - 16.0);
        canvas.text((width / 2.0, 20.0), &title, 18.0, Colour::INK, TextAnchor::Middle);
        canvas
    }

    /// Draws the frame of a cell with its caption; returns its top left corner.
    pub(in crate::plot) fn frame(&self, canvas: &mut Canvas, i: usize, caption: &[String; 2]) -> Point {
        let (row, column) = (i / self.columns(), i % self.columns());
        let (side, height) = (self.side, self.side + CAPTION);
        let (left, top) = (8.0 + side * column as f64, self.head() + height * row as f64);
        let (right, bottom) = (left + side, top + height);
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        canvas.line(corners.to_vec(), Colour::FAINT, 1.0);
        for (line, text) in caption.iter().enumerate() {
            let at = (left + side / 2.0, top + side + 8.0 + 16.0 * line as f64);
            let colour = if line == 0 { Colour::INK } else { Colour::GREY };
            draw_fitted(canvas, at, text, side - 10.0, colour);
        }
        (left, top)
    }
}

/// Draws a text, made smaller and then cut until it fits.
fn draw_fitted(canvas: &mut Canvas, at: Point, text: &str, width: f64, colour: Colour) {
    let size = (TEXT * width / text_width(text, TEXT).max(1.0)).clamp(9.0, TEXT);
    canvas.text(at, &fitted(text, size, width), size, colour, TextAnchor::Middle);
}

/// A grid of pictures, each with two lines of caption.
///
/// ```
/// use gfn::plot::{Canvas, Colour, PictureSheet};
/// # let folder = std::env::temp_dir().join("gfn-doc-pictures");
/// # std::fs::create_dir_all(&folder).unwrap();
/// let mut dot = Canvas::new(100.0, 100.0);
/// dot.disc((50.0, 50.0), 20.0, Colour::INK);
/// PictureSheet::new("dots", 100.0).cell(dot, ["one", "score 1.00"]).write(folder.join("dots.svg"))?;
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PictureSheet {
    title: String,
    columns: Option<usize>,
    side: f64,
    cells: Vec<(Canvas, [String; 2])>,
}

impl PictureSheet {
    /// A sheet without cells, for pictures of `side` by `side` units (100 to 1000). An empty title takes no space.
    pub fn new(title: impl Into<String>, side: f64) -> Self {
        Self { title: title.into(), columns: None, side: side.clamp(100.0, 1000.0), cells: Vec::new() }
    }

    /// Sets the number of cells in a row (default: by their number, at most 8).
    #[must_use]
    pub fn columns(mut self, columns: usize) -> Self {
        self.columns = Some(columns.max(1));
        self
    }

    /// Adds a picture with its caption. It is centred in its cell, and isn't clipped if it is larger.
    #[must_use]
    pub fn cell<S: Into<String>>(mut self, picture: Canvas, caption: [S; 2]) -> Self {
        self.cells.push((picture, caption.map(Into::into)));
        self
    }

    /// Writes the sheet as SVG or PNG (two pixels per unit), by the path's extension, replacing the file in one step.
    ///
    /// # Errors
    /// [`Error::Draw`](crate::Error::Draw) for another extension or too many cells; [`Error::Io`](crate::Error::Io) if
    /// the file can't be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        self.canvas().write(path)
    }

    /// The sheet as the text of an SVG file.
    ///
    /// # Errors
    /// [`Error::Draw`](crate::Error::Draw) for too many cells.
    pub fn to_svg(&self) -> Result<String> {
        self.canvas().to_svg()
    }

    fn canvas(&self) -> Canvas {
        let grid = Grid { title: &self.title, columns: self.columns, side: self.side, n: self.cells.len() };
        let mut canvas = grid.canvas(8.0);
        for (i, (picture, caption)) in self.cells.iter().enumerate() {
            let (left, top) = grid.frame(&mut canvas, i, caption);
            let room = |length: f64| (self.side - length) / 2.0;
            canvas.place(picture, (left + room(picture.width), top + room(picture.height)));
        }
        canvas
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_lie_in_the_middle_of_their_cells() {
        let folder = crate::io::replace::tests::folder("pictures");
        let mut dot = Canvas::new(60.0, 20.0);
        dot.disc((30.0, 10.0), 5.0, Colour::INK);
        let sheet = PictureSheet::new("", 100.0).columns(2).cell(dot.clone(), ["a", ""]).cell(dot, ["b", "c < d"]);
        sheet.write(folder.join("a.svg")).unwrap();
        let svg = std::fs::read_to_string(folder.join("a.svg")).unwrap();
        // The middles are at 8 + 50 and 8 + 150, 8 + 50 from the top.
        assert!(svg.contains("cx=\"58\" cy=\"58\"") && svg.contains("cx=\"158\" cy=\"58\""), "{svg}");
        assert!(svg.contains("c &lt; d") && svg.contains("width=\"216\" height=\"156\""), "{svg}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
