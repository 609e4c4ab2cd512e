//! Drawings of graphs.

use gfn::graph::GraphState;

use super::edges::{EdgeLine, distance};
use super::layout::{Layout, places};
use crate::canvas::{CELL, Point, TEXT, palette, text_width};
use crate::{Canvas, Colour, TextAnchor};

/// The distance from the square in which nodes are placed to the edge of the picture. This margin leaves room
/// for the nodes' discs and names.
const MARGIN: f64 = 30.0;
/// The font size of a node's name, which is drawn below the node.
const NAME_SIZE: f64 = 10.0;

/// The labels of a drawn graph's nodes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum NodeLabels {
    /// No labels. This is meant for graphs up to isomorphism, whose nodes have no fixed numbers.
    None,
    /// The index of each node.
    #[default]
    Index,
    /// A name for each node, such as the variables of a Bayesian network. If the list is shorter than the
    /// number of nodes, the remaining nodes get their index.
    Names(Vec<String>),
}

impl NodeLabels {
    fn label(&self, a: usize) -> String {
        let number = || a.to_string();
        match self {
            Self::None => String::new(),
            Self::Index => number(),
            Self::Names(names) => names.get(a).cloned().unwrap_or_else(number),
        }
    }
}

/// The settings of a graph's drawing; [`draw`](Self::draw) makes the picture.
///
/// Nodes are coloured by class. Directed edges have arrow heads, and two opposite edges between the same
/// nodes lie side by side. Edges of class 0 are black. Edges of other classes have other colours, and their
/// lines are in turn dashed, dotted and solid. Colours repeat after eight node classes and six edge classes.
///
/// ```
/// use gfn::graph::GraphFormat;
/// use gfn_plot::{GraphDrawing, Layout, PictureSheet};
/// # let folder = std::env::temp_dir().join("gfn-doc-sheet");
/// # std::fs::create_dir_all(&folder).unwrap();
/// let ring = &GraphFormat::Graph6.read(b"&BP_")?[0];
/// let drawing = GraphDrawing { layout: Layout::Circle, ..GraphDrawing::default() };
/// PictureSheet::new("rings", drawing.side)
///     .cell(drawing.draw(ring), ["p = 0.1668 (target 0.1667)", "log R = 4.61"])
///     .write(folder.join("rings.svg"))?;
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GraphDrawing {
    /// The method that places the nodes (default: [`Layout::Force`]).
    pub layout: Layout,
    /// The labels of the nodes (default: their indices).
    pub labels: NodeLabels,
    /// The width and the height of the picture in units of the canvas (default: 190). Use a larger picture
    /// for large graphs with names.
    pub side: f64,
}

impl Default for GraphDrawing {
    fn default() -> Self {
        Self { layout: Layout::default(), labels: NodeLabels::default(), side: CELL }
    }
}

impl GraphDrawing {
    /// Draws a graph with these settings, and returns the picture.
    #[must_use]
    pub fn draw(&self, graph: &GraphState) -> Canvas {
        let mut canvas = Canvas::new(self.side, self.side);
        let middle = self.side / 2.0;
        if graph.n_nodes() == 0 {
            canvas.text((middle, middle), "no nodes", TEXT, Colour::GREY, TextAnchor::Middle);
        }
        let on_canvas = |x: f64| middle + (middle - MARGIN) * x;
        let places = places(self.layout, graph).into_iter().map(|p| (on_canvas(p.0), on_canvas(p.1)));
        let places: Vec<Point> = places.collect();
        let gaps = places.iter().enumerate().flat_map(|(i, p)| places[..i].iter().map(|q| distance(*p, *q)));
        // The radius of nodes is proportional to the smallest distance between two nodes, within limits.
        let radius = (0.28 * gaps.fold(f64::INFINITY, f64::min)).clamp(3.5, 12.0);
        let width = match graph.n_edges() {
            0..=24 => 1.4,
            25..=48 => 1.0,
            _ => 0.6,
        };
        for (a, b) in graph.edges() {
            let class = usize::from(graph.edge(a, b).unwrap_or_default().class);
            let two_ways = graph.is_directed() && graph.has_edge(b, a);
            let shift = if two_ways { 0.4 * radius } else { 0.0 };
            let line = EdgeLine { from: places[a as usize], to: places[b as usize], shift };
            line.draw(&mut canvas, radius, class, width, graph.is_directed());
        }
        let labels: Vec<String> = (0..places.len()).map(|a| self.labels.label(a)).collect();
        let size = (radius * 1.15).clamp(8.0, TEXT - 1.0);
        let is_inside = labels.iter().all(|label| text_width(label, size) <= 1.8 * radius);
        for (node, (&at, label)) in graph.nodes().zip(places.iter().zip(&labels)) {
            let fill = palette::node(node.class.into());
            canvas.disc(at, radius + 1.0, Colour::INK);
            canvas.disc(at, radius, fill);
            if is_inside {
                canvas.text(at, label, size, fill.text_on(), TextAnchor::Middle);
                continue;
            }
            let reach = (middle - 3.0 - text_width(label, NAME_SIZE) / 2.0).max(0.0);
            let below = (at.0.clamp(middle - reach, middle + reach), at.1 + radius + 8.0);
            canvas.text(below, label, NAME_SIZE, Colour::INK, TextAnchor::Middle);
        }
        canvas
    }
}

#[cfg(test)]
mod tests {
    use gfn::graph::{Edge, GraphKind, Node};

    use super::*;
    use crate::PictureSheet;
    use crate::canvas::Shape;

    fn graph(kind: GraphKind, n: usize, edges: &[(u32, u32)]) -> GraphState {
        let edges: Vec<_> = edges.iter().map(|&(a, b)| (a, b, Edge::from_class(a as u16))).collect();
        GraphState::from_parts(kind, &vec![Node::from_class(9); n], &edges).unwrap()
    }

    #[test]
    fn directed_edges_have_a_head_each_and_undirected_ones_none() {
        let edges = [(0, 1), (1, 0), (1, 2)];
        let svg = |graph: &GraphState| GraphDrawing::default().draw(graph).to_svg().unwrap();
        let directed = svg(&graph(GraphKind::Directed, 3, &edges));
        assert_eq!(directed.matches("<polygon").count(), 3);
        assert!(!directed.contains("NaN"));
        let undirected = graph(GraphKind::Undirected, 3, &edges[1..]);
        assert!(!svg(&undirected).contains("<polygon"));
    }

    #[test]
    fn any_graph_and_any_name_can_be_drawn() {
        let long = "a name much wider than the cell that it has to be drawn in, by far".to_owned();
        for layout in [Layout::Circle, Layout::Force] {
            let mut sheet = PictureSheet::new(&long, 1.0).columns(0);
            for n in [0, 1, 2, 3, 40] {
                let edges: Vec<_> = (1..n).map(|b| (b / 2, b)).collect();
                let labels = NodeLabels::Names(vec![long.clone(); 3]);
                let drawing = GraphDrawing { layout, labels, side: 100.0 };
                sheet =
                    sheet.cell(drawing.draw(&graph(GraphKind::Directed, n as usize, &edges)), [&long, &long]);
            }
            assert!(!sheet.to_svg().unwrap().contains("NaN"));
        }
    }

    #[test]
    fn names_beside_nodes_cover_none() {
        let names = ["smoking", "cancer", "age", "income", "asia", "dyspnoea"].map(str::to_owned).to_vec();
        for side in [190.0, 260.0] {
            let drawing =
                GraphDrawing { layout: Layout::Circle, labels: NodeLabels::Names(names.clone()), side };
            let canvas = drawing.draw(&graph(GraphKind::Directed, 6, &[(0, 1)]));
            let discs: Vec<(Point, f64)> = canvas
                .shapes
                .iter()
                .filter_map(|shape| match shape {
                    Shape::Disc { centre, radius, .. } => Some((*centre, *radius)),
                    _ => None,
                })
                .collect();
            let mut seen = 0;
            for shape in &canvas.shapes {
                let Shape::Text { at, text, size, .. } = shape else { continue };
                let half = text_width(text, *size) / 2.0;
                assert!(at.0 - half >= 0.0 && at.0 + half <= side, "{text} at {at:?}");
                for (centre, radius) in &discs {
                    let nearest =
                        (centre.0.clamp(at.0 - half, at.0 + half), centre.1.clamp(at.1 - 3.65, at.1 + 3.65));
                    assert!(distance(nearest, *centre) > *radius, "{text} on {centre:?}");
                }
                seen += 1;
            }
            assert_eq!(seen, 6);
        }
    }

    #[test]
    fn labels_fall_back_to_numbers() {
        let names = NodeLabels::Names(vec!["x".to_owned()]);
        assert_eq!(names.label(0), "x");
        assert_eq!(names.label(1), "1");
        assert_eq!(NodeLabels::Index.label(1), "1");
        assert_eq!(NodeLabels::None.label(1), "");
    }
}
