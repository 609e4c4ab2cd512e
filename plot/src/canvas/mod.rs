//! Pictures, which are stored as lists of shapes.

mod legend;
mod lettering;
pub(crate) mod palette;
mod sheet;
mod write;

pub(crate) use legend::{LegendEntry, draw_legend};
pub(crate) use lettering::{cut_to_width, text_width};
pub use sheet::PictureSheet;
pub(crate) use sheet::{CELL, TEXT, draw_title};

/// A point of a canvas, in units from the top left corner: how far the point lies to the right of this
/// corner, and how far below it.
pub(crate) type Point = (f64, f64);

/// A colour without transparency. The fields are its red, green and blue components.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    /// The colour of the background of pictures.
    pub const WHITE: Self = Self(255, 255, 255);
    /// The colour of lines and of most texts.
    pub const INK: Self = Self(34, 34, 34);
    /// The colour of the grid and frame of charts.
    pub const FAINT: Self = Self(224, 224, 224);
    /// The colour of less important texts.
    pub const GREY: Self = Self(110, 110, 110);

    /// Returns the colour, dark or white, in which a text on a background of this colour is easier to read.
    pub(crate) fn text_on(self) -> Self {
        let luminance = 0.299 * f64::from(self.0) + 0.587 * f64::from(self.1) + 0.114 * f64::from(self.2);
        if luminance > 140.0 { Self::INK } else { Self::WHITE }
    }
}

/// The part of a text that is placed at the text's position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextAnchor {
    /// The left end of the text is at the position.
    Left,
    /// The middle of the text is at the position.
    Middle,
    /// The right end of the text is at the position.
    Right,
}

/// A shape on a canvas.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// A line through points. `dash` is the length of a dash, or `None` for a solid line.
    Line { points: Vec<Point>, colour: Colour, width: f64, dash: Option<f64> },
    /// A filled polygon.
    Area { points: Vec<Point>, colour: Colour },
    /// A filled circle.
    Disc { centre: Point, radius: f64, colour: Colour },
    /// A text that is vertically centred at `at`. If `turned`, the text runs from bottom to top.
    Text { at: Point, text: String, size: f64, colour: Colour, anchor: TextAnchor, turned: bool },
}

/// A picture on a white background. A picture consists of lines, areas, discs and texts, and is written as
/// SVG or PNG. Later shapes cover earlier shapes.
///
/// The coordinates of points are units to the right of and below the top left corner. A unit is a pixel at
/// ordinary resolution.
///
/// ```
/// use gfn_plot::{TextAnchor, Canvas, Colour};
/// # let folder = std::env::temp_dir().join("gfn-doc-canvas");
/// # std::fs::create_dir_all(&folder).unwrap();
/// let mut canvas = Canvas::new(120.0, 40.0);
/// canvas.line(vec![(10.0, 30.0), (60.0, 30.0), (110.0, 10.0)], Colour::INK, 1.5);
/// canvas.text((60.0, 12.0), "a kink", 12.0, Colour::GREY, TextAnchor::Middle);
/// canvas.write(folder.join("kink.svg"))?;
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Canvas {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) shapes: Vec<Shape>,
}

impl Canvas {
    /// Creates an empty picture of this width and height.
    #[must_use]
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, shapes: Vec::new() }
    }

    /// Returns the width of a text in DejaVu Sans, in units of the canvas. Verdana has about the same widths.
    /// `size` is the height of an em.
    #[must_use]
    pub fn text_width(text: &str, size: f64) -> f64 {
        text_width(text, size)
    }

    /// Adds a solid line through points.
    pub fn line(&mut self, points: Vec<Point>, colour: Colour, width: f64) {
        self.dashed_line(points, colour, width, None);
    }

    pub(crate) fn dashed_line(&mut self, points: Vec<Point>, colour: Colour, width: f64, dash: Option<f64>) {
        self.shapes.push(Shape::Line { points, colour, width, dash });
    }

    /// Adds a filled polygon with these corners.
    pub fn area(&mut self, points: Vec<Point>, colour: Colour) {
        self.shapes.push(Shape::Area { points, colour });
    }

    /// Adds a filled circle.
    pub fn disc(&mut self, centre: Point, radius: f64, colour: Colour) {
        self.shapes.push(Shape::Disc { centre, radius, colour });
    }

    /// Adds a text. The capital letters of the text are vertically centred at `at`, and `size` is the height
    /// of an em.
    pub fn text(&mut self, at: Point, text: &str, size: f64, colour: Colour, anchor: TextAnchor) {
        self.shapes.push(Shape::Text { at, text: text.to_owned(), size, colour, anchor, turned: false });
    }

    /// Adds a text that runs from bottom to top.
    pub(crate) fn turned_text(&mut self, at: Point, text: &str, size: f64, anchor: TextAnchor) {
        self.shapes.push(Shape::Text {
            at,
            text: text.to_owned(),
            size,
            colour: Colour::INK,
            anchor,
            turned: true,
        });
    }

    /// Adds another picture with its top left corner at `corner`.
    pub fn place(&mut self, other: &Self, corner: Point) {
        let to = |at: &mut Point| *at = (at.0 + corner.0, at.1 + corner.1);
        self.shapes.extend(other.shapes.iter().cloned().map(|mut shape| {
            match &mut shape {
                Shape::Line { points, .. } | Shape::Area { points, .. } => points.iter_mut().for_each(to),
                Shape::Disc { centre: at, .. } | Shape::Text { at, .. } => to(at),
            }
            shape
        }));
    }
}
