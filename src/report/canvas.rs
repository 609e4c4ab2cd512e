//! A picture as a list of shapes.

/// A point of a canvas: to the right and down from the top left corner, in units of a pixel at ordinary resolution.
pub(super) type Point = (f64, f64);

/// A colour without transparency.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    pub(super) const WHITE: Self = Self(255, 255, 255);
    pub(super) const INK: Self = Self(34, 34, 34);
    pub(super) const FAINT: Self = Self(224, 224, 224);
    pub(super) const GREY: Self = Self(110, 110, 110);

    /// Black or white, whichever is easier to read on this colour.
    pub(super) fn text_on(self) -> Self {
        let luminance = 0.299 * f64::from(self.0) + 0.587 * f64::from(self.1) + 0.114 * f64::from(self.2);
        if luminance > 140.0 { Self::INK } else { Self::WHITE }
    }
}

/// Where a text's anchor point lies, seen along the text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Anchor {
    Left,
    Middle,
    Right,
}

/// One thing on a canvas; later ones cover earlier ones.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// A line through points, dashed if `dash` gives the length of a dash.
    Line { points: Vec<Point>, colour: Colour, width: f64, dash: Option<f64> },
    /// A filled area.
    Area { points: Vec<Point>, colour: Colour },
    /// A filled circle.
    Disc { centre: Point, radius: f64, colour: Colour },
    /// A text whose middle line passes through `at`; turned ones are read from the bottom to the top.
    Text { at: Point, text: String, size: f64, colour: Colour, anchor: Anchor, turned: bool },
}

/// A picture in the making.
#[derive(Clone, Debug)]
pub(super) struct Canvas {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) shapes: Vec<Shape>,
}

impl Canvas {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, shapes: Vec::new() }
    }

    pub(super) fn push(&mut self, shape: Shape) {
        self.shapes.push(shape);
    }

    pub(super) fn line(&mut self, points: Vec<Point>, colour: Colour, width: f64) {
        self.push(Shape::Line { points, colour, width, dash: None });
    }

    pub(super) fn disc(&mut self, centre: Point, radius: f64, colour: Colour) {
        self.push(Shape::Disc { centre, radius, colour });
    }

    pub(super) fn text(&mut self, at: Point, text: &str, size: f64, colour: Colour, anchor: Anchor) {
        self.push(Shape::Text { at, text: text.to_owned(), size, colour, anchor, turned: false });
    }
}

/// A line cut into dashes with gaps of two thirds of their length.
pub(super) fn dashes(points: &[Point], length: f64) -> Vec<Vec<Point>> {
    let gap = length * 2.0 / 3.0;
    let mut pieces = Vec::new();
    let mut piece: Vec<Point> = points.first().copied().into_iter().collect();
    let (mut drawing, mut left) = (true, length);
    for pair in points.windows(2) {
        let (mut from, to) = (pair[0], pair[1]);
        loop {
            let (dx, dy) = (to.0 - from.0, to.1 - from.1);
            let distance = dx.hypot(dy);
            if distance <= left {
                left -= distance;
                if drawing {
                    piece.push(to);
                }
                break;
            }
            from = (from.0 + dx * left / distance, from.1 + dy * left / distance);
            if drawing {
                piece.push(from);
                pieces.push(std::mem::take(&mut piece));
            } else {
                piece.push(from);
            }
            drawing = !drawing;
            left = if drawing { length } else { gap };
        }
    }
    if piece.len() > 1 {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_cover_three_fifths_of_the_way_around_corners() {
        let points = [(0.0, 0.0), (30.0, 0.0), (30.0, 20.0)];
        let pieces = dashes(&points, 6.0);
        let length =
            |piece: &Vec<Point>| -> f64 { piece.windows(2).map(|w| (w[1].0 - w[0].0).hypot(w[1].1 - w[0].1)).sum() };
        assert_eq!(pieces.len(), 5);
        assert!(pieces.iter().all(|piece| (length(piece) - 6.0).abs() < 1e-9), "{pieces:?}");
    }
}
