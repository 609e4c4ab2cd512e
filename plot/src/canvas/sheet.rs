//! Sheets of pictures. A sheet is a grid of cells, and each cell has a picture and two lines of caption.

use std::path::Path;

use gfn::Result;

use super::{cut_to_width, text_width};
use crate::{Canvas, Colour, TextAnchor};

/// The default width of a cell in units of the canvas. The same number is the default height of the picture
/// in the cell.
pub(crate) const CELL: f64 = 190.0;
/// The height of the two lines of caption, in units of the canvas.
const CAPTION: f64 = 40.0;
/// The largest font size of captions, and of texts in drawings of graphs.
pub(crate) const TEXT: f64 = 12.0;

/// Draws a title at the top of a picture, and returns the height of the space for the title.
pub(crate) fn draw_title(canvas: &mut Canvas, title: &str) -> f64 {
    let title = cut_to_width(title, 18.0, canvas.width - 16.0);
    canvas.text((canvas.width / 2.0, 20.0), &title, 18.0, Colour::INK, TextAnchor::Middle);
    if title.is_empty() { 8.0 } else { 40.0 }
}

/// A grid of pictures, each with two lines of caption.
///
/// ```
/// use gfn_plot::{Canvas, Colour, PictureSheet};
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
    /// Creates a sheet without cells. Each picture gets `side` by `side` units; `side` is clamped to the
    /// range from 100 to 1000. An empty title takes no space.
    pub fn new(title: impl Into<String>, side: f64) -> Self {
        Self { title: title.into(), columns: None, side: side.clamp(100.0, 1000.0), cells: Vec::new() }
    }

    /// Sets the number of cells in a row. The default depends on the number of cells, and is at most 8.
    #[must_use]
    pub fn columns(mut self, columns: usize) -> Self {
        self.columns = Some(columns.max(1));
        self
    }

    /// Adds a cell with a picture and its caption. The picture is centred in its cell. A picture larger than
    /// the cell isn't clipped.
    #[must_use]
    pub fn cell<S: Into<String>>(mut self, picture: Canvas, caption: [S; 2]) -> Self {
        self.cells.push((picture, caption.map(Into::into)));
        self
    }

    /// Writes the sheet as SVG or PNG. The extension of the path selects the format (see [`Canvas::write`]).
    ///
    /// # Errors
    /// [`Error::Draw`](gfn::Error::Draw) for another extension and for too many cells;
    /// [`Error::Io`](gfn::Error::Io) if the file can't be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        self.canvas().write(path)
    }

    /// Returns the sheet as the text of an SVG file.
    ///
    /// # Errors
    /// [`Error::Draw`](gfn::Error::Draw) for too many cells.
    pub fn to_svg(&self) -> Result<String> {
        self.canvas().to_svg()
    }

    fn canvas(&self) -> Canvas {
        let n = self.cells.len();
        let by_number = if n <= 4 { n.max(1) } else { (1.5 * n as f64).sqrt().ceil() as usize };
        let columns = self.columns.unwrap_or_else(|| by_number.min(8));
        let mut canvas = Canvas::new(self.side * columns as f64 + 16.0, 0.0);
        let head = draw_title(&mut canvas, &self.title);
        canvas.height = head + (self.side + CAPTION) * n.div_ceil(columns) as f64 + 8.0;
        for (i, (picture, caption)) in self.cells.iter().enumerate() {
            let left = 8.0 + self.side * (i % columns) as f64;
            let top = head + (self.side + CAPTION) * (i / columns) as f64;
            let right = left + self.side;
            let bottom = top + self.side + CAPTION;
            canvas.line(
                vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top)],
                Colour::FAINT,
                1.0,
            );
            for (text, (colour, down)) in caption.iter().zip([(Colour::INK, 8.0), (Colour::GREY, 24.0)]) {
                // A line of the caption that is wider than the cell gets a smaller font. If it is still too
                // wide, it is cut.
                let room = self.side - 10.0;
                let size = (TEXT * room / text_width(text, TEXT).max(1.0)).clamp(9.0, TEXT);
                let at = (left + self.side / 2.0, top + self.side + down);
                canvas.text(at, &cut_to_width(text, size, room), size, colour, TextAnchor::Middle);
            }
            let margin = |length: f64| (self.side - length) / 2.0;
            canvas.place(picture, (left + margin(picture.width), top + margin(picture.height)));
        }
        canvas
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_lie_in_the_middle_of_their_cells() {
        let mut dot = Canvas::new(60.0, 20.0);
        dot.disc((30.0, 10.0), 5.0, Colour::INK);
        let sheet =
            PictureSheet::new("", 100.0).columns(2).cell(dot.clone(), ["a", ""]).cell(dot, ["b", "c < d"]);
        let svg = sheet.to_svg().unwrap();
        // The first cell begins at (8, 8), and the second cell 100 units further to the right. Each disc must
        // be in the middle of the 100 x 100 units that a cell has for its picture.
        assert!(svg.contains("cx=\"58\" cy=\"58\"") && svg.contains("cx=\"158\" cy=\"58\""), "{svg}");
        assert!(svg.contains("c &lt; d") && svg.contains("width=\"216\" height=\"156\""), "{svg}");
    }
}
