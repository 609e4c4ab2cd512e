//! Lines between the nodes of a drawn graph.

use crate::Canvas;
use crate::canvas::{Point, palette};

pub(crate) fn distance(p: Point, q: Point) -> f64 {
    (p.0 - q.0).hypot(p.1 - q.1)
}

/// The line of an edge in a drawing.
pub(crate) struct EdgeLine {
    pub(crate) from: Point,
    pub(crate) to: Point,
    /// The distance by which the line is moved to the left, as seen from `from`. The shift separates the line
    /// from the line of the opposite edge.
    pub(crate) shift: f64,
}

impl EdgeLine {
    /// Returns the point on the line at the distance `way` from its start.
    fn at(&self, way: f64) -> Point {
        let length = distance(self.from, self.to).max(1e-9);
        let along = ((self.to.0 - self.from.0) / length, (self.to.1 - self.from.1) / length);
        (
            self.from.0 + way * along.0 + self.shift * along.1,
            self.from.1 + way * along.1 - self.shift * along.0,
        )
    }

    /// Draws the edge, with an arrow head if `directed`. `radius` is the radius of its nodes, which are drawn
    /// later and cover the ends of the line.
    pub(crate) fn draw(&self, canvas: &mut Canvas, radius: f64, class: usize, width: f64, directed: bool) {
        let (colour, dash) = palette::edge(class);
        let length = distance(self.from, self.to);
        let rim = radius + 1.5;
        if !directed {
            canvas.dashed_line(vec![self.at(0.0), self.at(length)], colour, width, dash);
            return;
        }
        // The length of an arrow head is at most half of the visible part of the edge.
        let head = (0.75 * radius).clamp(4.5, 8.0).min(0.5 * (length - 2.0 * rim)).max(2.0);
        let tip = length - (rim * rim - self.shift * self.shift).max(0.0).sqrt();
        let wide = 0.42 * head;
        let left = Self { shift: self.shift + wide, ..*self };
        let right = Self { shift: self.shift - wide, ..*self };
        canvas.area(vec![self.at(tip), left.at(tip - head), right.at(tip - head)], colour);
        canvas.dashed_line(vec![self.at(0.0), self.at(tip - 0.8 * head)], colour, width, dash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_between_the_same_nodes_lie_apart() {
        let p = (0.0, 0.0);
        let q = (100.0, 0.0);
        let there = EdgeLine { from: p, to: q, shift: 5.0 };
        let back = EdgeLine { from: q, to: p, shift: 5.0 };
        assert_eq!((there.at(50.0), back.at(50.0)), ((50.0, -5.0), (50.0, 5.0)));
    }
}
