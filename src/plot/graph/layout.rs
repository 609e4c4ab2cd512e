//! Layouts: the positions of a drawn graph's nodes.

use crate::Rng;
use crate::graph::GraphState;
use crate::plot::canvas::Point;

/// The layout of a drawn graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Layout {
    /// On a circle, clockwise from the top in the order of labels, so that a node is at the same place in every cell.
    Circle,
    /// Distances in the picture follow distances in the graph (stress majorisation; Gansner, Koren and North 2004); the
    /// best of several starts. It is meant for small graphs (up to about 30 nodes) and is deterministic.
    #[default]
    Force,
}

/// Positions of the nodes within the square from -1 to 1, around the origin.
pub(in crate::plot) fn places(layout: Layout, graph: &GraphState) -> Vec<Point> {
    match layout {
        Layout::Circle => circle(graph.n_nodes()),
        Layout::Force => force(graph),
    }
}

fn circle(n: usize) -> Vec<Point> {
    if n == 1 {
        return vec![(0.0, 0.0)];
    }
    let turn = std::f64::consts::TAU / n as f64;
    (0..n).map(|k| (turn * k as f64).sin_cos()).map(|(sin, cos)| (sin, -cos)).collect()
}

fn force(graph: &GraphState) -> Vec<Point> {
    let n = graph.n_nodes();
    if n < 3 {
        // Two nodes are placed side by side, and not at opposite ends.
        return circle(n).into_iter().map(|(x, y)| (0.5 * y, 0.5 * x)).collect();
    }
    let distances = distances(graph);
    let edges: Vec<_> = graph.edges().map(|(a, b)| (a as usize, b as usize)).collect();
    let starts = if n <= 30 { 16 } else { 1 };
    let mut rng = Rng::seeded(1);
    let mut best: Option<(f64, Vec<Point>)> = None;
    for start in 0..starts {
        let mut places = circle(n);
        if start > 0 {
            for i in (1..n).rev() {
                places.swap(i, rng.below(i + 1));
            }
        }
        for place in &mut places {
            // Away from the symmetric position, which can be a stationary point that no step leaves.
            *place = (place.0 + 0.05 * rng.normal(), place.1 + 0.05 * rng.normal());
        }
        for _ in 0..150 {
            majorise(&mut places, &distances);
        }
        let cost = cost(&places, &distances, &edges);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, places));
        }
    }
    let places = best.map(|(_, places)| places).unwrap_or_default();
    centred(&turned(places))
}

/// Numbers of edges between nodes, in either direction. Nodes that aren't connected are a little further apart than the
/// width of a small component: components are separate, but don't make each other small.
fn distances(graph: &GraphState) -> Vec<Vec<f64>> {
    let n = graph.n_nodes();
    let joined = |a: usize, b: usize| graph.has_edge(a as u32, b as u32) || graph.has_edge(b as u32, a as u32);
    let apart = 1.2 + 0.8 * (n as f64).sqrt() / 2.0;
    let mut out = vec![vec![apart; n]; n];
    for (a, row) in out.iter_mut().enumerate() {
        let mut seen = vec![false; n];
        seen[a] = true;
        let mut front = vec![a];
        let mut distance = 0.0;
        while !front.is_empty() {
            let mut next = Vec::new();
            for &b in &front {
                row[b] = distance;
                next.extend((0..n).filter(|&c| joined(b, c) && !std::mem::replace(&mut seen[c], true)));
            }
            front = next;
            distance += 1.0;
        }
    }
    out
}

/// One round of stress majorisation (Gansner, Koren and North 2004) with weights 1 / distance^2: each node moves to the
/// mean of the positions that the others imply.
///
/// ```
/// let mut places = [(0.0, 0.0), (1.0, 0.0)];
/// gfn::plot::majorise(&mut places, &[vec![0.0, 3.0], vec![3.0, 0.0]]);
/// assert_eq!(places[1].0 - places[0].0, 3.0);
/// ```
pub fn majorise(places: &mut [(f64, f64)], distances: &[Vec<f64>]) {
    for i in 0..places.len() {
        let (x, y) = places[i];
        let mut sum = (0.0, 0.0, 0.0);
        for (j, &(u, v)) in places.iter().enumerate().filter(|&(j, _)| j != i) {
            let wanted = distances[i][j].max(1e-9);
            let (dx, dy) = (x - u, y - v);
            let pull = wanted / dx.hypot(dy).max(1e-9);
            let weight = 1.0 / (wanted * wanted);
            sum.0 += weight * (u + dx * pull);
            sum.1 += weight * (v + dy * pull);
            sum.2 += weight;
        }
        if sum.2 > 0.0 {
            places[i] = (sum.0 / sum.2, sum.1 / sum.2);
        }
    }
}

/// The stress, plus penalties for crossing edges and for nodes on an edge or on each other.
fn cost(places: &[Point], distances: &[Vec<f64>], edges: &[(usize, usize)]) -> f64 {
    let mut cost = 0.0;
    for (i, &(x, y)) in places.iter().enumerate() {
        for (j, &(u, v)) in places.iter().enumerate().take(i) {
            let distance = (x - u).hypot(y - v);
            cost += (distance / distances[i][j] - 1.0).powi(2);
            cost += if distance < 0.4 { 2.0 } else { 0.0 };
        }
    }
    for (k, &(a, b)) in edges.iter().enumerate() {
        for &(c, d) in &edges[..k] {
            if a != c && a != d && b != c && b != d && cross(places[a], places[b], places[c], places[d]) {
                cost += 0.5;
            }
        }
        for (c, &place) in places.iter().enumerate() {
            if c != a && c != b && gap(place, places[a], places[b]) < 0.22 {
                cost += 1.0;
            }
        }
    }
    cost
}

pub(in crate::plot) fn side(a: Point, b: Point, c: Point) -> f64 {
    (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0)
}

fn cross(a: Point, b: Point, c: Point, d: Point) -> bool {
    side(a, b, c) * side(a, b, d) < 0.0 && side(c, d, a) * side(c, d, b) < 0.0
}

/// The distance of a point from a segment.
pub(in crate::plot) fn gap(p: Point, a: Point, b: Point) -> f64 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let along = ((p.0 - a.0) * dx + (p.1 - a.1) * dy) / (dx * dx + dy * dy).max(1e-12);
    let along = along.clamp(0.0, 1.0);
    (p.0 - a.0 - along * dx).hypot(p.1 - a.1 - along * dy)
}

/// Rotates the positions: the longest direction becomes horizontal, or tilted if a long graph gets larger by that;
/// without a longest direction, the furthest node goes to the top.
fn turned(places: Vec<Point>) -> Vec<Point> {
    let n = places.len().max(1) as f64;
    let mean = places.iter().fold((0.0, 0.0), |m, p| (m.0 + p.0 / n, m.1 + p.1 / n));
    let from_mean: Vec<Point> = places.iter().map(|p| (p.0 - mean.0, p.1 - mean.1)).collect();
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in &from_mean {
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    let stretch = (xx - yy).hypot(2.0 * xy) / (xx + yy).max(1e-12);
    let angle = if stretch < 0.1 {
        let far = from_mean.iter().max_by(|p, q| p.0.hypot(p.1).total_cmp(&q.0.hypot(q.1)));
        far.map_or(0.0, |p| p.1.atan2(p.0) + std::f64::consts::FRAC_PI_2)
    } else {
        0.5 * (2.0 * xy).atan2(xx - yy)
    };
    let level = by_angle(&from_mean, angle);
    let askew = (1..36).map(|i| by_angle(&level, f64::from(i) * std::f64::consts::PI / 36.0));
    match askew.min_by(|p, q| half_side(p).total_cmp(&half_side(q))) {
        Some(askew) if half_side(&askew) < 0.85 * half_side(&level) => askew,
        _ => level,
    }
}

fn by_angle(places: &[Point], angle: f64) -> Vec<Point> {
    let (sin, cos) = angle.sin_cos();
    places.iter().map(|(x, y)| (x * cos + y * sin, y * cos - x * sin)).collect()
}

fn range(places: &[Point], of: fn(&Point) -> f64) -> (f64, f64) {
    let values = || places.iter().map(of);
    (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
}

/// Half the side of the square that contains all positions.
fn half_side(places: &[Point]) -> f64 {
    let (x, y) = (range(places, |p| p.0), range(places, |p| p.1));
    ((x.1 - x.0) / 2.0).max((y.1 - y.0) / 2.0)
}

/// Moves and scales positions, by the same factor in both directions, to fill the square from -1 to 1.
fn centred(places: &[Point]) -> Vec<Point> {
    let half = half_side(places).max(1e-9);
    let (x, y) = (range(places, |p| p.0), range(places, |p| p.1));
    let middle = (f64::midpoint(x.0, x.1), f64::midpoint(y.0, y.1));
    places.iter().map(|p| ((p.0 - middle.0) / half, (p.1 - middle.1) / half)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphFormat;

    fn of(line: &str) -> (GraphState, Vec<Point>) {
        let graph = GraphFormat::Graph6.read(line.as_bytes()).unwrap().remove(0);
        let places = places(Layout::Force, &graph);
        (graph, places)
    }

    #[test]
    fn every_graph_fills_the_square_with_its_nodes_apart() {
        for line in ["@", "A_", "A?", "Bw", "Dhc", "IheA@GUAo", "G?????", "&DI?AO?"] {
            let (graph, places) = of(line);
            assert_eq!(places.len(), graph.n_nodes());
            assert!(places.iter().all(|p| p.0.abs() <= 1.0 + 1e-9 && p.1.abs() <= 1.0 + 1e-9), "{line}: {places:?}");
            for (i, p) in places.iter().enumerate() {
                for q in &places[..i] {
                    assert!((p.0 - q.0).hypot(p.1 - q.1) > 0.2, "{line}: {places:?}");
                }
            }
        }
        assert!(places(Layout::Force, &of("?").0).is_empty());
    }

    #[test]
    fn a_ring_is_drawn_as_one_and_the_same_every_time() {
        let (graph, ring) = of("Dhc");
        assert_eq!(ring, places(Layout::Force, &graph));
        let lengths = graph.edges().map(|(a, b)| {
            let (p, q) = (ring[a as usize], ring[b as usize]);
            (p.0 - q.0).hypot(p.1 - q.1)
        });
        let lengths: Vec<f64> = lengths.collect();
        let (least, most) = lengths.iter().fold((f64::MAX, 0.0f64), |(a, b), &x| (a.min(x), b.max(x)));
        assert!(most < 1.05 * least, "{lengths:?}");
    }
}
