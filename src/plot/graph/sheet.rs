//! A sheet of drawn graphs with captions.

use std::path::Path;

use super::Layout;
use super::edges::{EdgeLine, bend, dash};
use crate::Result;
use crate::graph::GraphState;
use crate::plot::canvas::{CELL, Grid, Point, Shape, TEXT, palette, text_width};
use crate::plot::graph::layout;
use crate::plot::{Canvas, Colour, TextAnchor};

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
/// use gfn::plot::{GraphSheet, Layout};
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
        self.columns = Some(columns.max(1));
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

    /// Writes the sheet as SVG or PNG (two pixels per unit), by the path's extension, replacing the file in one step.
    ///
    /// # Errors
    /// [`Error::Draw`](crate::Error::Draw) for another extension or too many cells; [`Error::Io`](crate::Error::Io) if
    /// the file can't be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        self.canvas().write(path.as_ref())
    }

    /// The sheet as the text of an SVG file.
    ///
    /// ```
    /// use gfn::{graph::{GraphKind, GraphState}, plot::GraphSheet};
    /// let sheet = GraphSheet::new("two nodes").cell(GraphState::with_nodes(GraphKind::Directed, 2), ["", ""]);
    /// assert!(sheet.to_svg()?.starts_with("<svg"));
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Draw`](crate::Error::Draw) for too many cells.
    pub fn to_svg(&self) -> Result<String> {
        self.canvas().to_svg()
    }

    fn canvas(&self) -> Canvas {
        let legend = self.node_classes.len() + self.edge_classes.len();
        let foot = if legend == 0 { 8.0 } else { 36.0 };
        let grid = Grid { title: &self.title, columns: self.columns, side: self.side, n: self.cells.len() };
        let mut canvas = grid.canvas(foot);
        for (i, (graph, caption)) in self.cells.iter().enumerate() {
            let (left, top) = grid.frame(&mut canvas, i, caption);
            self.draw_graph(&mut canvas, graph, (left + self.side / 2.0, top + self.side / 2.0));
        }
        if legend > 0 {
            self.draw_legend(&mut canvas);
        }
        canvas
    }

    fn draw_graph(&self, canvas: &mut Canvas, graph: &GraphState, middle: Point) {
        if graph.n_nodes() == 0 {
            return canvas.text(middle, "no nodes", TEXT, Colour::GREY, TextAnchor::Middle);
        }
        let half = self.side / 2.0 - MARGIN;
        let places: Vec<Point> = layout::places(self.layout, graph)
            .into_iter()
            .map(|(x, y)| (middle.0 + half * x, middle.1 + half * y))
            .collect();
        let radius = radius(&places);
        let width = match graph.n_edges() {
            0..=24 => 1.4,
            25..=48 => 1.0,
            _ => 0.6,
        };
        for (a, b) in graph.edges() {
            let class = usize::from(graph.edge(a, b).unwrap_or_default().class);
            let two_ways = graph.is_directed() && graph.has_edge(b, a);
            let bend = bend(&places, (a as usize, b as usize), radius, two_ways);
            let line = EdgeLine::new(places[a as usize], places[b as usize], bend);
            line.draw(canvas, radius, class, width, graph.is_directed());
        }
        let labels: Vec<String> = (0..places.len()).map(|a| self.labels.of(graph, a)).collect();
        let size = (radius * 1.15).clamp(8.0, TEXT - 1.0);
        let inside = labels.iter().all(|label| text_width(label, size) <= 1.8 * radius);
        let segments: Vec<_> = graph.edges().map(|(a, b)| (places[a as usize], places[b as usize])).collect();
        for (a, (&at, node)) in places.iter().zip(graph.nodes()).enumerate() {
            let fill = palette::node(node.class.into());
            canvas.disc(at, radius + 1.0, Colour::INK);
            canvas.disc(at, radius, fill);
            if inside {
                canvas.text(at, &labels[a], size, fill.text_on(), TextAnchor::Middle);
            }
        }
        if !inside {
            let room = (middle, self.side / 2.0 - 3.0);
            for (&at, label) in places.iter().zip(&labels) {
                draw_beside(canvas, at, label, radius, room, (&places, &segments));
            }
        }
    }

    fn draw_legend(&self, canvas: &mut Canvas) {
        let entry = |name: &String| 24.0 + text_width(name, TEXT) + 16.0;
        let names = || self.node_classes.iter().chain(&self.edge_classes);
        let width: f64 = names().map(entry).sum();
        // If it doesn't fit, all entries move closer together, rather than out of the picture.
        let squeeze = ((canvas.width - 16.0) / width).min(1.0);
        let mut x = (canvas.width - (width - 16.0) * squeeze) / 2.0;
        let y = canvas.height - 18.0;
        for (i, name) in names().enumerate() {
            match i.checked_sub(self.node_classes.len()) {
                None => {
                    canvas.disc((x + 9.0, y), 7.0, Colour::INK);
                    canvas.disc((x + 9.0, y), 6.0, palette::node(i));
                }
                Some(class) => canvas.push(Shape::Line {
                    points: vec![(x, y), (x + 20.0, y)],
                    colour: palette::edge(class),
                    width: 1.5,
                    dash: dash(class),
                }),
            }
            canvas.text((x + 24.0, y), name, TEXT * squeeze.max(0.7), Colour::INK, TextAnchor::Left);
            x += entry(name) * squeeze;
        }
    }
}

/// A radius in proportion to the distance of the nearest two nodes.
fn radius(places: &[Point]) -> f64 {
    let mut nearest = f64::INFINITY;
    for (i, p) in places.iter().enumerate() {
        for q in &places[..i] {
            nearest = nearest.min((p.0 - q.0).hypot(p.1 - q.1));
        }
    }
    (0.28 * nearest).clamp(3.5, 12.0)
}

/// Draws a label that doesn't fit into its node beside it, where it covers the least; `room` is the middle and the half
/// width of the cell.
fn draw_beside(
    canvas: &mut Canvas,
    at: Point,
    label: &str,
    radius: f64,
    (middle, reach): (Point, f64),
    (places, edges): (&[Point], &[(Point, Point)]),
) {
    let size = 10.0;
    let half = (text_width(label, size) / 2.0, 0.45 * size);
    let slack = (reach - half.0).max(0.0);
    let away = ((at.0 - middle.0) / reach, (at.1 - middle.1) / reach);
    let candidates = (0..16).map(|i| {
        let (sin, cos) = (f64::from(i) * std::f64::consts::TAU / 16.0).sin_cos();
        // The box touches the rim of the node at its nearest point.
        let centre = (
            (at.0 + cos * (radius + 4.0 + half.0)).clamp(middle.0 - slack, middle.0 + slack),
            at.1 + sin * (radius + 4.0 + half.1),
        );
        let along = [-1.0, -0.5, 0.0, 0.5, 1.0].map(|t| (centre.0 + t * half.0, centre.1));
        let near = |&point: &Point, p: Point, q: Point, clear: f64| layout::gap(point, p, q) < clear;
        let covered_edges = edges.iter().filter(|&&(p, q)| along.iter().any(|point| near(point, p, q, half.1 + 2.0)));
        let covered_nodes = places.iter().filter(|&&p| along.iter().any(|point| near(point, p, p, radius + half.1)));
        let inward = 1.0 - (cos * away.0 + sin * away.1);
        let cost = covered_edges.count() as f64 + 5.0 * covered_nodes.count() as f64 + 0.5 * inward;
        (cost, centre)
    });
    if let Some((_, centre)) = candidates.min_by(|a, b| a.0.total_cmp(&b.0)) {
        canvas.text(centre, label, size, Colour::INK, TextAnchor::Middle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Edge, GraphKind, Node};

    fn graph(kind: GraphKind, n: usize, edges: &[(u32, u32)]) -> GraphState {
        let edges: Vec<_> = edges.iter().map(|&(a, b)| (a, b, Edge::of_class(a as u16))).collect();
        GraphState::from_parts(kind, &vec![Node::of_class(9); n], &edges).unwrap()
    }

    fn svg(sheet: &GraphSheet) -> String {
        let folder = crate::io::replace::tests::folder("sheet");
        sheet.write(folder.join("a.png")).unwrap();
        sheet.write(folder.join("a.svg")).unwrap();
        let svg = std::fs::read_to_string(folder.join("a.svg")).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        svg
    }

    #[test]
    fn directed_edges_have_a_head_each_and_undirected_ones_none() {
        let edges = [(0, 1), (1, 0), (1, 2)];
        let directed = GraphSheet::new("").cell(graph(GraphKind::Directed, 3, &edges), ["first", "second"]);
        let svg = svg(&directed);
        assert_eq!(svg.matches("<polygon").count(), 3);
        assert!(svg.contains(">first<") && svg.contains(">second<") && !svg.contains("NaN"));
        let undirected = graph(GraphKind::Undirected, 3, &edges[1..]);
        assert!(!self::svg(&GraphSheet::new("").cell(undirected, ["", ""])).contains("<polygon"));
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
            assert!(!svg(&sheet).contains("NaN"));
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
