//! The curves of a drawn graph's edges.

use crate::canvas::{Point, palette};
use crate::{Canvas, Colour};

/// Points of a bent edge.
const STEPS: usize = 64;

pub(crate) fn distance(p: Point, q: Point) -> f64 {
    (p.0 - q.0).hypot(p.1 - q.1)
}

/// An edge between two drawn nodes: a quadratic Bezier curve.
pub(crate) struct EdgeLine {
    pub(crate) from: Point,
    pub(crate) to: Point,
    /// The distance of its middle to the left of the straight line, as seen from `from`: away from the opposite edge.
    pub(crate) bend: f64,
}

impl EdgeLine {
    /// The point at a share of its way.
    fn at(&self, t: f64) -> Point {
        let (p, q) = (self.from, self.to);
        let along = (q.0 - p.0, q.1 - p.1);
        let out = 4.0 * t * (1.0 - t) * self.bend / distance(p, q).max(1e-9);
        (p.0 + t * along.0 + out * along.1, p.1 + t * along.1 - out * along.0)
    }

    /// Draws it between nodes of this radius, with an arrow head if it is `directed`.
    pub(crate) fn draw(&self, canvas: &mut Canvas, radius: f64, class: usize, width: f64, directed: bool) {
        let (colour, dash) = palette::edge(class);
        let steps: Vec<Point> = (0..=STEPS).map(|k| self.at(k as f64 / STEPS as f64)).collect();
        let rim = radius + 1.5;
        let outside = |cut: f64| move |p: &&Point| distance(**p, self.to) >= cut;
        // An arrow head takes at most half of the visible edge.
        let head = (0.75 * radius).clamp(4.5, 8.0).min(0.5 * (distance(self.from, self.to) - 2.0 * rim)).max(2.0);
        let cut = if directed { rim + 0.8 * head } else { 0.5 * radius };
        let points: Vec<Point> = steps.iter().filter(outside(cut)).copied().collect();
        if let (true, Some(&base)) = (directed, points.last()) {
            // The tip is on the rim, in the direction of the curve's end.
            let (dx, dy) = (self.to.0 - base.0, self.to.1 - base.1);
            let length = dx.hypot(dy).max(1e-9);
            let (dx, dy) = (dx / length, dy / length);
            let tip = (self.to.0 - rim * dx, self.to.1 - rim * dy);
            draw_head(canvas, tip, (dx, dy), head, colour);
        }
        let points = if self.bend == 0.0 {
            [points.first(), points.last()].into_iter().flatten().copied().collect()
        } else {
            points
        };
        canvas.dashed_line(points, colour, width, dash);
    }
}

/// Draws an arrow head of this length with its tip in a direction of length 1.
fn draw_head(canvas: &mut Canvas, tip: Point, along: Point, length: f64, colour: Colour) {
    let (back, wide) = ((tip.0 - length * along.0, tip.1 - length * along.1), 0.42 * length);
    let corner = |side: f64| (back.0 - side * wide * along.1, back.1 + side * wide * along.0);
    canvas.area(vec![tip, corner(1.0), corner(-1.0)], colour);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_between_the_same_nodes_bend_apart() {
        let (p, q) = ((0.0, 0.0), (100.0, 0.0));
        let there = EdgeLine { from: p, to: q, bend: 10.0 };
        let back = EdgeLine { from: q, to: p, bend: 10.0 };
        assert_eq!((there.at(0.5), back.at(0.5)), ((50.0, -10.0), (50.0, 10.0)));
        assert_eq!((there.at(0.0), there.at(1.0)), (p, q));
    }
}
