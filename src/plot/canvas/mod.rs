//! A picture as a list of shapes.

mod grid;
mod lettering;
pub(in crate::plot) mod palette;
mod render;

pub use grid::PictureSheet;
pub(in crate::plot) use grid::{CELL, Grid, TEXT};
pub(in crate::plot) use lettering::{fitted, text_width};

/// A point of a canvas: units to the right of and down from the top left corner. A unit is a pixel at ordinary
/// resolution.
pub(in crate::plot) type Point = (f64, f64);

/// A colour without transparency: red, green and blue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    /// Background.
    pub const WHITE: Self = Self(255, 255, 255);
    /// Colour of lines and texts.
    pub const INK: Self = Self(34, 34, 34);
    /// Colour of things in the background, such as grids.
    pub const FAINT: Self = Self(224, 224, 224);
    /// Colour of secondary texts.
    pub const GREY: Self = Self(110, 110, 110);

    /// Black or white, whichever is easier to read on this colour.
    pub(in crate::plot) fn text_on(self) -> Self {
        let luminance = 0.299 * f64::from(self.0) + 0.587 * f64::from(self.1) + 0.114 * f64::from(self.2);
        if luminance > 140.0 { Self::INK } else { Self::WHITE }
    }
}

/// The position of a text's anchor point along the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextAnchor {
    /// At its start.
    Left,
    /// In its middle.
    Middle,
    /// At its end.
    Right,
}

/// One shape on a canvas; later ones cover earlier ones.
#[derive(Clone, Debug)]
pub(in crate::plot) enum Shape {
    /// A line through points, dashed if `dash` gives the length of a dash.
    Line { points: Vec<Point>, colour: Colour, width: f64, dash: Option<f64> },
    /// A filled area.
    Area { points: Vec<Point>, colour: Colour },
    /// A filled circle.
    Disc { centre: Point, radius: f64, colour: Colour },
    /// A text with its middle line through `at`; turned ones are read from the bottom to the top.
    Text { at: Point, text: String, size: f64, colour: Colour, anchor: TextAnchor, turned: bool },
}

impl Shape {
    /// Whether all its numbers are finite.
    pub(in crate::plot) fn is_finite(&self) -> bool {
        let (points, sizes) = match self {
            Self::Line { points, width, dash, .. } => (&points[..], [*width, dash.unwrap_or(0.0)]),
            Self::Area { points, .. } => (&points[..], [0.0; 2]),
            Self::Disc { centre, radius, .. } => (std::slice::from_ref(centre), [*radius, 0.0]),
            Self::Text { at, size, .. } => (std::slice::from_ref(at), [*size, 0.0]),
        };
        points.iter().flat_map(|p| [p.0, p.1]).chain(sizes).all(f64::is_finite)
    }
}

/// A picture on a white background: lines, areas, discs and texts, written as SVG or PNG. Later shapes cover earlier
/// ones.
///
/// Points are units to the right of and down from the top left corner. A unit is a pixel at ordinary resolution.
///
/// ```
/// use gfn::plot::{TextAnchor, Canvas, Colour};
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
    pub(in crate::plot) width: f64,
    pub(in crate::plot) height: f64,
    pub(in crate::plot) shapes: Vec<Shape>,
}

impl Canvas {
    /// An empty picture.
    #[must_use]
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, shapes: Vec::new() }
    }

    /// Its width.
    #[must_use]
    pub fn width(&self) -> f64 {
        self.width
    }

    /// Its height.
    #[must_use]
    pub fn height(&self) -> f64 {
        self.height
    }

    /// The width of a text in the embedded font; `size` is the height of an em.
    #[must_use]
    pub fn text_width(text: &str, size: f64) -> f64 {
        text_width(text, size)
    }

    pub(in crate::plot) fn push(&mut self, shape: Shape) {
        self.shapes.push(shape);
    }

    /// Adds a line through points.
    pub fn line(&mut self, points: Vec<Point>, colour: Colour, width: f64) {
        self.push(Shape::Line { points, colour, width, dash: None });
    }

    /// Adds a filled polygon.
    pub fn area(&mut self, points: Vec<Point>, colour: Colour) {
        self.push(Shape::Area { points, colour });
    }

    /// Adds a text that is read from the bottom to the top.
    pub(in crate::plot) fn turned_text(&mut self, at: Point, text: &str, size: f64, anchor: TextAnchor) {
        self.push(Shape::Text { at, text: text.to_owned(), size, colour: Colour::INK, anchor, turned: true });
    }

    /// Adds another picture with its top left corner at `at`.
    pub fn place(&mut self, other: &Self, (left, top): Point) {
        let to = |(x, y): Point| (x + left, y + top);
        self.shapes.extend(other.shapes.iter().cloned().map(|mut shape| {
            match &mut shape {
                Shape::Line { points, .. } | Shape::Area { points, .. } => points.iter_mut().for_each(|p| *p = to(*p)),
                Shape::Disc { centre: at, .. } | Shape::Text { at, .. } => *at = to(*at),
            }
            shape
        }));
    }

    /// Adds a filled circle.
    pub fn disc(&mut self, centre: Point, radius: f64, colour: Colour) {
        self.push(Shape::Disc { centre, radius, colour });
    }

    /// Adds a text whose capitals are centred on the height of `at`; `size` is the height of an em.
    pub fn text(&mut self, at: Point, text: &str, size: f64, colour: Colour, anchor: TextAnchor) {
        self.push(Shape::Text { at, text: text.to_owned(), size, colour, anchor, turned: false });
    }
}
