//! The curves of a drawn graph's edges.

use crate::plot::Canvas;
use crate::plot::canvas::{Point, Shape, palette};
use crate::plot::graph::layout;

/// The distance by which the middle of an edge is bent to the left of the straight line: away from the opposite edge,
/// or around a node in the way.
pub(in crate::plot) fn bend(places: &[Point], (a, b): (usize, usize), radius: f64, two_ways: bool) -> f64 {
    let (p, q) = (places[a], places[b]);
    if two_ways {
        let length = (p.0 - q.0).hypot(p.1 - q.1);
        return (0.1 * length).clamp(0.45 * radius, 0.9 * radius + 4.0);
    }
    let others = places.iter().enumerate().filter(|&(c, _)| c != a && c != b);
    let gaps = others.map(|(_, &place)| (layout::gap(place, p, q), layout::side(p, q, place)));
    match gaps.min_by(|g, h| g.0.total_cmp(&h.0)) {
        Some((gap, side)) if gap < radius + 3.0 => (radius + 7.0 - gap).copysign(side),
        _ => 0.0,
    }
}

/// The curve of an edge: a quadratic Bezier curve.
pub(in crate::plot) struct EdgeLine {
    points: Vec<Point>,
}

impl EdgeLine {
    /// A curve from `p` to `q`, with its middle `bend` to the left of the straight line as seen from `p`.
    pub(in crate::plot) fn new(p: Point, q: Point, bend: f64) -> Self {
        if bend == 0.0 {
            return Self { points: vec![p, q] };
        }
        let (dx, dy) = (q.0 - p.0, q.1 - p.1);
        let length = dx.hypot(dy).max(1e-9);
        // The curve's middle is half as far out as its control point.
        let control =
            (f64::midpoint(p.0, q.0) + 2.0 * bend * dy / length, f64::midpoint(p.1, q.1) - 2.0 * bend * dx / length);
        let at = |t: f64| {
            let (u, v, w) = ((1.0 - t) * (1.0 - t), 2.0 * t * (1.0 - t), t * t);
            (u * p.0 + v * control.0 + w * q.0, u * p.1 + v * control.1 + w * q.1)
        };
        let points = (0..=32).map(|i| at(f64::from(i) / 32.0)).collect();
        Self { points }
    }

    pub(in crate::plot) fn draw(&self, canvas: &mut Canvas, radius: f64, class: usize, width: f64, directed: bool) {
        let colour = palette::edge(class);
        let (&[p, ..], &[.., q]) = (self.points.as_slice(), self.points.as_slice()) else {
            return;
        };
        let length = (p.0 - q.0).hypot(p.1 - q.1);
        let rim = radius + 1.5;
        // An arrow head takes at most half of the visible edge.
        let head = (0.75 * radius).clamp(4.5, 8.0).min(0.5 * (length - 2.0 * rim)).max(2.0);
        let cut = if directed { rim + head * 0.8 } else { radius * 0.5 };
        let points = self.beyond(p, radius * 0.5, q, cut);
        if directed && let Some(&base) = points.last() {
            let tip = self.beyond(p, radius * 0.5, q, rim).last().copied().unwrap_or(base);
            let (dx, dy) = (tip.0 - base.0, tip.1 - base.1);
            let along = dx.hypot(dy).max(1e-9);
            let (dx, dy) = (dx / along, dy / along);
            let (back, wide) = ((tip.0 - head * dx, tip.1 - head * dy), 0.42 * head);
            let corners = [tip, (back.0 - wide * dy, back.1 + wide * dx), (back.0 + wide * dy, back.1 - wide * dx)];
            canvas.push(Shape::Area { points: corners.to_vec(), colour });
        }
        canvas.push(Shape::Line { points, colour, width, dash: dash(class) });
    }

    /// The part of the line that is further than `from` from `p` and further than `to` from `q`.
    fn beyond(&self, p: Point, from: f64, q: Point, to: f64) -> Vec<Point> {
        let inside =
            |point: Point| (point.0 - p.0).hypot(point.1 - p.1) < from || (point.0 - q.0).hypot(point.1 - q.1) < to;
        let fine = self.points.windows(2).flat_map(|pair| {
            let steps = if self.points.len() == 2 { 400 } else { 16 };
            (0..=steps).map(move |i| {
                let t = f64::from(i) / f64::from(steps);
                let along = |a: f64, b: f64| a + t * (b - a);
                (along(pair[0].0, pair[1].0), along(pair[0].1, pair[1].1))
            })
        });
        let kept: Vec<Point> = fine.filter(|&point| !inside(point)).collect();
        match kept.as_slice() {
            [first, .., last] if self.points.len() == 2 => vec![*first, *last],
            _ => kept.into_iter().step_by(4).collect(),
        }
    }
}

/// The dash pattern of an edge class: in turn solid, long dashes, short dashes.
pub(in crate::plot) fn dash(class: usize) -> Option<f64> {
    [None, Some(6.0), Some(2.5)][class % 3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_between_the_same_nodes_bend_apart() {
        let places = [(0.0, 0.0), (100.0, 0.0), (50.0, 1.0)];
        let there = EdgeLine::new(places[0], places[1], bend(&places[..2], (0, 1), 10.0, true));
        let back = EdgeLine::new(places[1], places[0], bend(&places[..2], (1, 0), 10.0, true));
        assert!((there.points[16].1 - back.points[16].1).abs() > 15.0);
        // An edge that passes a node bends around it, on the side where it already is.
        let around = EdgeLine::new(places[0], places[1], bend(&places, (0, 1), 10.0, false));
        let middle = around.points[16];
        assert!(middle.1 < 1.0 - 10.0, "{middle:?}");
        assert_eq!(bend(&places[..2], (0, 1), 10.0, false), 0.0);
    }
}
