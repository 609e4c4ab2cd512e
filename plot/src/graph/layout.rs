//! Layouts, which compute the positions of a graph's nodes in a drawing.

use gfn::Rng;
use gfn::graph::GraphState;

use super::edges::distance;
use crate::canvas::Point;

/// The method that computes the positions of a graph's nodes in a drawing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Layout {
    /// Places nodes on a circle, clockwise from the top in the order of their indices. A node therefore has
    /// the same position in all pictures of graphs with the same number of nodes.
    Circle,
    /// Places nodes so that distances in the picture approximate distances in the graph (stress majorisation;
    /// Gansner, Koren and North 2004). Several random starts are tried, and the best result is used. The
    /// result is the same in every run. This layout is meant for graphs of up to about 30 nodes.
    #[default]
    Force,
}

/// Returns the positions of a graph's nodes, in the square from -1 to 1.
pub(crate) fn places(layout: Layout, graph: &GraphState) -> Vec<Point> {
    let n = graph.n_nodes();
    match layout {
        _ if n == 1 => vec![(0.0, 0.0)],
        Layout::Circle => circle(n),
        // Two nodes are placed side by side, at half the distance that they would have with `Layout::Circle`.
        Layout::Force if n < 3 => circle(n).into_iter().map(|p| (0.5 * p.1, 0.5 * p.0)).collect(),
        Layout::Force => force(graph),
    }
}

fn circle(n: usize) -> Vec<Point> {
    let turn = std::f64::consts::TAU / n as f64;
    (0..n).map(|k| ((turn * k as f64).sin(), -(turn * k as f64).cos())).collect()
}

fn force(graph: &GraphState) -> Vec<Point> {
    let n = graph.n_nodes();
    let distances = distances(graph);
    let mut rng = Rng::seeded(1);
    let drawn = (0..if n <= 30 { 16 } else { 1 }).map(|start| {
        let mut places = circle(n);
        if start > 0 {
            for i in (1..n).rev() {
                places.swap(i, rng.below(i + 1));
            }
        }
        for place in &mut places {
            // The random shift avoids exactly symmetric positions, because the iteration could stay at such
            // positions even if they aren't the best.
            *place = (place.0 + 0.05 * rng.normal(), place.1 + 0.05 * rng.normal());
        }
        for _ in 0..150 {
            majorise(&mut places, &distances);
        }
        (stress(&places, &distances), places)
    });
    let best = drawn.min_by(|a, b| a.0.total_cmp(&b.0));
    centre_and_scale(best.map(|(_, places)| places).unwrap_or_default())
}

/// Returns the number of edges on the shortest path between every two nodes. The direction of edges is
/// ignored. If no path exists, the distance is 1.2 + 0.4 sqrt(n) for a graph of n nodes. Components are then
/// drawn apart, but not so far apart that each becomes small.
fn distances(graph: &GraphState) -> Vec<Vec<f64>> {
    let n = graph.n_nodes();
    let mut out = vec![vec![f64::INFINITY; n]; n];
    for (a, b) in graph.edges().flat_map(|(a, b)| [(a, b), (b, a)]) {
        out[a as usize][b as usize] = 1.0;
    }
    (0..n).for_each(|a| out[a][a] = 0.0);
    for via in 0..n {
        for a in 0..n {
            for b in 0..n {
                out[a][b] = out[a][b].min(out[a][via] + out[via][b]);
            }
        }
    }
    let apart = 1.2 + 0.4 * (n as f64).sqrt();
    out.iter_mut().flatten().filter(|d| d.is_infinite()).for_each(|d| *d = apart);
    out
}

/// Makes one round of stress majorisation (Gansner, Koren and North 2004) with weights 1 / distance^2. For
/// each node, every other node proposes the position that would give the two nodes the right distance. The
/// node moves to the weighted mean of these positions.
fn majorise(places: &mut [Point], distances: &[Vec<f64>]) {
    for i in 0..places.len() {
        let (x, y) = places[i];
        let mut sum = (0.0, 0.0, 0.0);
        for (j, &(u, v)) in places.iter().enumerate().filter(|&(j, _)| j != i) {
            let distance = distances[i][j].max(1e-9);
            let dx = x - u;
            let dy = y - v;
            let pull = distance / dx.hypot(dy).max(1e-9);
            let weight = 1.0 / (distance * distance);
            sum.0 += weight * (u + dx * pull);
            sum.1 += weight * (v + dy * pull);
            sum.2 += weight;
        }
        if sum.2 > 0.0 {
            places[i] = (sum.0 / sum.2, sum.1 / sum.2);
        }
    }
}

/// Returns the stress of a layout. Stress is the sum over all pairs of nodes of the squared relative
/// difference between their distances in the picture and in the graph.
fn stress(places: &[Point], distances: &[Vec<f64>]) -> f64 {
    let mut stress = 0.0;
    for (i, &p) in places.iter().enumerate() {
        for (j, &q) in places.iter().enumerate().take(i) {
            stress += (distance(p, q) / distances[i][j] - 1.0).powi(2);
        }
    }
    stress
}

/// Shifts and scales positions, so that they fill the square from -1 to 1. Both coordinates are scaled by the
/// same factor.
fn centre_and_scale(places: Vec<Point>) -> Vec<Point> {
    let range = |coordinate: fn(&Point) -> f64| {
        places
            .iter()
            .map(coordinate)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |r, x| (r.0.min(x), r.1.max(x)))
    };
    let x = range(|p| p.0);
    let y = range(|p| p.1);
    let half = ((x.1 - x.0) / 2.0).max((y.1 - y.0) / 2.0).max(1e-9);
    let middle = (f64::midpoint(x.0, x.1), f64::midpoint(y.0, y.1));
    places.iter().map(|p| ((p.0 - middle.0) / half, (p.1 - middle.1) / half)).collect()
}

#[cfg(test)]
mod tests {
    use gfn::graph::GraphFormat;

    use super::*;

    fn read_and_place(line: &str) -> (GraphState, Vec<Point>) {
        let graph = GraphFormat::Graph6.read(line.as_bytes()).unwrap().remove(0);
        let places = places(Layout::Force, &graph);
        (graph, places)
    }

    #[test]
    fn every_graph_fills_the_square_with_its_nodes_apart() {
        for line in ["@", "A_", "A?", "Bw", "Dhc", "IheA@GUAo", "G?????", "&DI?AO?"] {
            let (graph, places) = read_and_place(line);
            assert_eq!(places.len(), graph.n_nodes());
            assert!(
                places.iter().all(|p| p.0.abs() <= 1.0 + 1e-9 && p.1.abs() <= 1.0 + 1e-9),
                "{line}: {places:?}"
            );
            for (i, p) in places.iter().enumerate() {
                for q in &places[..i] {
                    assert!(distance(*p, *q) > 0.2, "{line}: {places:?}");
                }
            }
        }
        assert!(places(Layout::Force, &read_and_place("?").0).is_empty());
    }

    #[test]
    fn a_ring_is_drawn_as_one_and_the_same_every_time() {
        let (graph, ring) = read_and_place("Dhc");
        assert_eq!(ring, places(Layout::Force, &graph));
        let lengths = graph.edges().map(|(a, b)| distance(ring[a as usize], ring[b as usize]));
        let lengths: Vec<f64> = lengths.collect();
        let (least, most) = lengths.iter().fold((f64::MAX, 0.0f64), |(a, b), &x| (a.min(x), b.max(x)));
        assert!(most < 1.05 * least, "{lengths:?}");
    }
}
