//! A sheet of drawn graphs with captions.

use std::path::Path;

use gfn::Result;
use gfn::graph::GraphState;

use super::edges::{EdgeLine, distance};
use super::layout::{Layout, places};
use crate::canvas::{CELL, LegendEntry, Point, TEXT, draw_legend, palette, text_width};
use crate::{Canvas, Colour, PictureSheet, TextAnchor};

/// Margin between the square of the layout and the cell's edge, for a node and a name beside it.
const MARGIN: f64 = 30.0;

/// The labels of a drawn graph's nodes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum NodeLabels {
    /// No labels, for nodes without identity.
    None,
    /// The number of the node.
    #[default]
    Index,
    /// The name of its class, such as a chemical element; the number of the class if the list is too short.
    Class(Vec<String>),
    /// A name for each node, such as the variables of a Bayesian network; its number if the list is too short.
    Names(Vec<String>),
}

impl NodeLabels {
    fn of(&self, graph: &GraphState, a: usize) -> String {
        let (names, k) = match self {
            Self::None => return String::new(),
            Self::Index => return a.to_string(),
            Self::Class(names) => (names, graph.node(a as u32).unwrap_or_default().class.into()),
            Self::Names(names) => (names, a),
        };
        names.get(k).cloned().unwrap_or_else(|| k.to_string())
    }
}

/// A grid of drawn graphs, each with two lines of caption.
///
/// Nodes are coloured by class. Directed edges have arrow heads, and two edges between the same nodes are bent apart.
/// Edges of class 0 are black; other classes differ in colour and, in turn, are dashed, dotted and solid. Colours
/// repeat after eight node classes and six edge classes.
///
/// ```
/// use gfn::graph::GraphFormat;
/// use gfn_plot::{GraphSheet, Layout};
/// # let folder = std::env::temp_dir().join("gfn-doc-sheet");
/// # std::fs::create_dir_all(&folder).unwrap();
/// let ring = &GraphFormat::Graph6.read(b"&BP_")?[0];
/// GraphSheet::new("rings")
///     .layout(Layout::Circle)
///     .cell(ring.clone(), ["p = 0.1668 (target 0.1667)", "log R = 4.61"])
///     .write(folder.join("rings.svg"))?;
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GraphSheet {
    title: String,
    layout: Layout,
    labels: NodeLabels,
    columns: Option<usize>,
    side: f64,
    node_classes: Vec<String>,
    edge_classes: Vec<String>,
    cells: Vec<(GraphState, [String; 2])>,
}

impl GraphSheet {
    /// A sheet without cells; an empty title takes no space.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            layout: Layout::default(),
            labels: NodeLabels::default(),
            columns: None,
            side: CELL,
            node_classes: Vec::new(),
            edge_classes: Vec::new(),
            cells: Vec::new(),
        }
    }

    /// Sets the layout of nodes (default: [`Layout::Force`]).
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Sets the labels of nodes (default: their numbers).
    #[must_use]
    pub fn labels(mut self, labels: NodeLabels) -> Self {
        self.labels = labels;
        self
    }

    /// Sets the number of cells in a row (default: by their number, at most 8).
    #[must_use]
    pub fn columns(mut self, columns: usize) -> Self {
        self.columns = Some(columns);
        self
    }

    /// Sets the width of a cell in units (100 to 1000; default: 190). Large graphs with names need more space.
    #[must_use]
    pub fn cell_size(mut self, side: f64) -> Self {
        self.side = side.clamp(100.0, 1000.0);
        self
    }

    /// Sets names for a legend of node classes and of edge classes, in the order of the classes (default: no legend).
    #[must_use]
    pub fn legend<S: Into<String>, T: Into<String>>(
        mut self,
        node_classes: impl IntoIterator<Item = S>,
        edge_classes: impl IntoIterator<Item = T>,
    ) -> Self {
        self.node_classes = node_classes.into_iter().map(Into::into).collect();
        self.edge_classes = edge_classes.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a graph with its caption.
    #[must_use]
    pub fn cell<S: Into<String>>(mut self, graph: GraphState, caption: [S; 2]) -> Self {
        self.cells.push((graph, caption.map(Into::into)));
        self
    }

    /// Writes the sheet as SVG or PNG, by the path's extension (see [`Canvas::write`]).
    ///
    /// # Errors
    /// [`Error::Draw`](gfn::Error::Draw) for another extension or too many cells; [`Error::Io`](gfn::Error::Io) if the
    /// file can't be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        self.canvas().write(path)
    }

    /// The sheet as the text of an SVG file.
    ///
    /// ```
    /// use gfn::graph::{GraphKind, GraphState};
    /// use gfn_plot::GraphSheet;
    /// let sheet = GraphSheet::new("two nodes").cell(GraphState::with_nodes(GraphKind::Directed, 2), ["", ""]);
    /// assert!(sheet.to_svg()?.starts_with("<svg"));
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Draw`](gfn::Error::Draw) for too many cells.
    pub fn to_svg(&self) -> Result<String> {
        self.canvas().to_svg()
    }

    fn canvas(&self) -> Canvas {
        let mut sheet = PictureSheet::new(&self.title, self.side);
        if let Some(columns) = self.columns {
            sheet = sheet.columns(columns);
        }
        let cells = self.cells.iter();
        let sheet = cells.fold(sheet, |sheet, (graph, caption)| sheet.cell(self.draw_graph(graph), caption.clone()));
        let nodes = self.node_classes.iter().enumerate().map(|(class, name)| LegendEntry {
            name,
            colour: palette::node(class),
            dash: None,
            disc: true,
        });
        let edges = self.edge_classes.iter().enumerate().map(|(class, name)| {
            let (colour, dash) = palette::edge(class);
            LegendEntry { name, colour, dash, disc: false }
        });
        let legend: Vec<_> = nodes.chain(edges).collect();
        let mut canvas = sheet.canvas(if legend.is_empty() { 0.0 } else { 28.0 });
        let middle = (canvas.width / 2.0, canvas.height - 18.0);
        let room = canvas.width - 16.0;
        draw_legend(&mut canvas, middle, room, &legend);
        canvas
    }

    fn draw_graph(&self, graph: &GraphState) -> Canvas {
        let mut canvas = Canvas::new(self.side, self.side);
        let middle = self.side / 2.0;
        if graph.n_nodes() == 0 {
            canvas.text((middle, middle), "no nodes", TEXT, Colour::GREY, TextAnchor::Middle);
        }
        let on_canvas = |x: f64| middle + (middle - MARGIN) * x;
        let places = places(self.layout, graph).into_iter().map(|p| (on_canvas(p.0), on_canvas(p.1)));
        let places: Vec<Point> = places.collect();
        let gaps = places.iter().enumerate().flat_map(|(i, p)| places[..i].iter().map(|q| distance(*p, *q)));
        // In proportion to the distance of the nearest two nodes.
        let radius = (0.28 * gaps.fold(f64::INFINITY, f64::min)).clamp(3.5, 12.0);
        let width = match graph.n_edges() {
            0..=24 => 1.4,
            25..=48 => 1.0,
            _ => 0.6,
        };
        for (a, b) in graph.edges() {
            let class = usize::from(graph.edge(a, b).unwrap_or_default().class);
            let (from, to) = (places[a as usize], places[b as usize]);
            let two_ways = graph.is_directed() && graph.has_edge(b, a);
            let bend = (0.1 * distance(from, to)).clamp(0.45 * radius, 0.9 * radius + 4.0);
            let line = EdgeLine { from, to, bend: if two_ways { bend } else { 0.0 } };
            line.draw(&mut canvas, radius, class, width, graph.is_directed());
        }
        let labels: Vec<String> = (0..places.len()).map(|a| self.labels.of(graph, a)).collect();
        let size = (radius * 1.15).clamp(8.0, TEXT - 1.0);
        let inside = labels.iter().all(|label| text_width(label, size) <= 1.8 * radius);
        for (node, (&at, label)) in graph.nodes().zip(places.iter().zip(&labels)) {
            let fill = palette::node(node.class.into());
            canvas.disc(at, radius + 1.0, Colour::INK);
            canvas.disc(at, radius, fill);
            if inside {
                canvas.text(at, label, size, fill.text_on(), TextAnchor::Middle);
            }
        }
        if !inside {
            // Names that don't fit into their nodes are written beside them, outwards.
            for (&at, label) in places.iter().zip(&labels) {
                let (dx, dy) = (at.0 - middle, at.1 - middle);
                let (sin, cos) = dy.atan2(dx).sin_cos();
                let half = text_width(label, 10.0) / 2.0;
                let (reach, out) = ((middle - 3.0 - half).max(0.0), at.0 + cos * (radius + 4.0 + half));
                let x = out.clamp(middle - reach, middle + reach);
                // Where there is no room beside a node, its name is above or below.
                let down = if x == out { sin } else { sin.signum() };
                canvas.text((x, at.1 + down * (radius + 8.0)), label, 10.0, Colour::INK, TextAnchor::Middle);
            }
        }
        canvas
    }
}

#[cfg(test)]
mod tests {
    use gfn::graph::{Edge, GraphKind, Node};

    use super::*;
    use crate::canvas::Shape;

    fn graph(kind: GraphKind, n: usize, edges: &[(u32, u32)]) -> GraphState {
        let edges: Vec<_> = edges.iter().map(|&(a, b)| (a, b, Edge::of_class(a as u16))).collect();
        GraphState::from_parts(kind, &vec![Node::of_class(9); n], &edges).unwrap()
    }

    #[test]
    fn directed_edges_have_a_head_each_and_undirected_ones_none() {
        let edges = [(0, 1), (1, 0), (1, 2)];
        let directed = GraphSheet::new("").cell(graph(GraphKind::Directed, 3, &edges), ["first", "second"]);
        let svg = directed.to_svg().unwrap();
        assert_eq!(svg.matches("<polygon").count(), 3);
        assert!(svg.contains(">first<") && svg.contains(">second<") && !svg.contains("NaN"));
        let undirected = graph(GraphKind::Undirected, 3, &edges[1..]);
        assert!(!GraphSheet::new("").cell(undirected, ["", ""]).to_svg().unwrap().contains("<polygon"));
    }

    #[test]
    fn any_graph_and_any_name_can_be_drawn() {
        let long = "a name much wider than the cell that it has to be drawn in, by far".to_owned();
        for layout in [Layout::Circle, Layout::Force] {
            let mut sheet =
                GraphSheet::new(&long).layout(layout).legend([&long], [&long, &long]).cell_size(1.0).columns(0);
            for n in [0, 1, 2, 3, 40] {
                let edges: Vec<_> = (1..n).map(|b| (b / 2, b)).collect();
                sheet = sheet
                    .labels(NodeLabels::Names(vec![long.clone(); 3]))
                    .cell(graph(GraphKind::Directed, n as usize, &edges), [&long, &long]);
            }
            assert!(!sheet.to_svg().unwrap().contains("NaN"));
        }
    }

    #[test]
    fn names_beside_nodes_cover_none() {
        let names = ["smoking", "cancer", "age", "income", "asia", "dyspnoea"].map(str::to_owned).to_vec();
        for side in [190.0, 260.0] {
            let sheet =
                GraphSheet::new("").layout(Layout::Circle).labels(NodeLabels::Names(names.clone())).cell_size(side);
            let canvas = sheet.draw_graph(&graph(GraphKind::Directed, 6, &[(0, 1)]));
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
                    let nearest = (centre.0.clamp(at.0 - half, at.0 + half), centre.1.clamp(at.1 - 3.65, at.1 + 3.65));
                    assert!(distance(nearest, *centre) > *radius, "{text} on {centre:?}");
                }
                seen += 1;
            }
            assert_eq!(seen, 6);
        }
    }

    #[test]
    fn labels_fall_back_to_numbers() {
        let graph = graph(GraphKind::Directed, 2, &[]);
        let names = || vec!["x".to_owned()];
        assert_eq!(NodeLabels::Names(names()).of(&graph, 0), "x");
        assert_eq!(NodeLabels::Names(names()).of(&graph, 1), "1");
        assert_eq!(NodeLabels::Class(names()).of(&graph, 0), "9");
        assert_eq!(NodeLabels::Index.of(&graph, 1), "1");
        assert_eq!(NodeLabels::None.of(&graph, 1), "");
    }
}
