//! Layouts of graph files other than a list with one edge per line. A layout is recognised by the content of
//! the text. Formats that aren't supported are refused with an error that names the format.

use std::collections::HashSet;
use std::ops::Range;

use super::MAX_EDGE_LIST_NODES;
use super::pairs::{
    EXPECTED_NUMBERS, EXPECTED_ONE_READING, NamedGraph, Pair, Row, build_graph, parse_number, read_edges,
};
use super::words::quote;
use crate::{Error, Result};

/// The kinds of DIMACS and PACE files whose lines list the edges of a graph.
const DIMACS_KINDS: [&str; 9] = ["edge", "edges", "col", "sp", "tw", "td", "vc", "ds", "cep"];
const EXPECTED_DIMACS: &str = "DIMACS: one line `p KIND NODES EDGES`, in which KIND is edge, col, sp, tw, \
    td, vc, ds or cep, then lines `e A B`, `a A B WEIGHT` or `A B` with two different nodes from 1 to NODES, \
    which is at most 16,384";
const EXPECTED_EDGES: &str = "an edge list: `A B`, the names of two different nodes, on each line (networkx \
    reads many formats, and its `write_edgelist` writes this one)";

/// The known titles of columns that name nodes. Before a title of a file is compared with this list, it is
/// put into lower case, and its underscores, a final number and a final `id` are removed.
const COLUMN_TITLES: [&str; 11] =
    ["source", "target", "from", "to", "fromnode", "tonode", "src", "dst", "node", "start", "end"];

/// The names of formats that aren't supported, and the beginnings of their first lines in lower case.
const UNSUPPORTED_FORMATS: [(&str, &[&str]); 7] = [
    ("Matrix Market", &["%%matrixmarket"]),
    ("KONECT, or another format with comments after `%`", &["% ", "%\t", "%%"]),
    ("a list for `GraphFormat::EdgeList`", &["graph directed ", "graph undirected "]),
    ("GML", &["graph [", "creator \""]),
    ("XML (GraphML or GEXF)", &["<?xml", "<graphml", "<gexf"]),
    ("Pajek", &["*vertices", "*network"]),
    ("JSON, which only `GraphFormat::Json` (extension `json`) reads", &["{", "["]),
];

/// The result of reading a text in one layout: `None` if the text doesn't have this layout, otherwise the
/// graph and a flag. The flag is `false` if the text could also be a list of edges.
type Layout = Option<(NamedGraph, bool)>;

/// Reads a graph from the lines of a text.
pub(super) fn read(lines: &[Row<'_>]) -> Result<NamedGraph> {
    let rows: Vec<Row<'_>> = lines.iter().filter(|row| !row.content.is_empty()).copied().collect();
    if let Some(graph) = read_dimacs(&rows)?.or(read_metis(lines)?) {
        return Ok(graph);
    }
    refuse_unsupported(&rows)?;
    let rows = if has_titles(&rows) { &rows[1..] } else { &rows[..] };
    for read_layout in [read_matrix, read_counted, read_adjacency_list, read_edge_index] {
        let Some((graph, is_certain)) = read_layout(rows)? else { continue };
        if !is_certain && read_edges(rows).is_ok_and(|edges| edges != graph) {
            return Err(Error::parse(
                rows[0].line,
                "the text could be read in two ways",
                EXPECTED_ONE_READING,
            ));
        }
        return Ok(graph);
    }
    read_edges(rows)
}

/// Returns an error that names the format if the text has a format that is recognised but not supported.
fn refuse_unsupported(rows: &[Row<'_>]) -> Result<()> {
    let Some(first) = rows.first() else { return Ok(()) };
    let text = first.content.to_lowercase();
    let is_one_word = first.words().count() == 1;
    let begins = |starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
    let name = match UNSUPPORTED_FORMATS.iter().find(|(_, starts)| begins(starts)) {
        Some((name, _)) => *name,
        None if is_one_word && begins(&[":", "&", ">>"]) => "sparse6, or digraph6 or graph6 with a mistake",
        None if text.ends_with('{') && begins(&["graph", "digraph", "strict"]) => "DOT of Graphviz",
        None => return Ok(()),
    };
    Err(Error::parse(first.line, format!("this is {name}"), EXPECTED_EDGES))
}

/// Returns `true` if the first line has the titles of two columns of nodes. Other lines must follow, and none
/// of their nodes may be named like one of the two titles.
fn has_titles(rows: &[Row<'_>]) -> bool {
    let [first, rest @ ..] = rows else { return false };
    let simplify = |word: &str| {
        let word = word.trim_matches('"').to_lowercase().replace('_', "");
        word.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches("id").to_owned()
    };
    let titles: Vec<String> = first.words().take(2).map(simplify).collect();
    !rest.is_empty()
        && titles.iter().all(|title| COLUMN_TITLES.contains(&title.as_str()))
        && rest.iter().all(|row| row.words().take(2).all(|name| !titles.contains(&simplify(name))))
}

/// Returns the numbers of a range as names of nodes.
fn number_names(numbers: Range<u64>) -> Vec<String> {
    numbers.map(|number| number.to_string()).collect()
}

/// Reads the graph of lines that name edges. The numbers of the nodes must be in the range `nodes`. The
/// letters `e` and `a` with which lines of DIMACS begin are skipped.
fn read_edges_within<'a>(
    rows: impl Iterator<Item = &'a Row<'a>>,
    nodes: Range<u64>,
    expected: &'static str,
) -> Result<NamedGraph> {
    let mut pairs = Vec::new();
    for row in rows {
        let content = row.content.trim_start_matches(['e', 'a']);
        let pair = Row { content, ..*row }.read_pair(true, expected)?;
        if !pair.ends.iter().filter_map(|end| parse_number(end)).all(|end| nodes.contains(&end)) {
            let n = nodes.end - nodes.start;
            let problem = format!("edge ({}) is beyond the {n} nodes of the graph", pair.ends.join(", "));
            return Err(Error::parse(row.line, problem, expected));
        }
        pairs.push(pair);
    }
    build_graph(&number_names(nodes), &pairs)
}

/// Reads the DIMACS layout: a line `p KIND NODES EDGES`, then edges `e A B`, arcs `a A B WEIGHT` or, as in
/// PACE, edges `A B`.
fn read_dimacs(rows: &[Row<'_>]) -> Result<Option<NamedGraph>> {
    let mut rows = rows.iter().filter(|row| row.words().next() != Some("c"));
    let Some(problem) = rows.next() else { return Ok(None) };
    let words: Vec<&str> = problem.words().collect();
    let is_edge = |row: &Row<'_>| {
        row.content.strip_prefix('e').is_some_and(|content| Row { content, ..*row }.numbers().is_some())
    };
    if is_edge(problem) && rows.clone().all(is_edge) {
        return Err(Error::parse(
            problem.line,
            "an edge comes before the line `p KIND NODES EDGES`",
            EXPECTED_DIMACS,
        ));
    }
    let ["p", kind, counts @ ..] = &words[..] else { return Ok(None) };
    let counts: Option<Vec<u64>> = counts.iter().map(|word| parse_number(word)).collect();
    let n = match (DIMACS_KINDS.contains(kind), counts.as_deref()) {
        // The number of edges isn't checked, because some files of the DIMACS challenges count an edge once,
        // others twice.
        (true, Some(&[n, _])) if n <= MAX_EDGE_LIST_NODES as u64 => n,
        (false, None | Some([] | [_] | [_, _, _, ..])) => return Ok(None),
        _ => {
            return Err(Error::parse(
                problem.line,
                format!("the line is {}", quote(problem.content)),
                EXPECTED_DIMACS,
            ));
        }
    };
    read_edges_within(rows, 1..n + 1, EXPECTED_DIMACS).map(Some)
}

/// Reads the METIS layout: a line `n m` or `n m FORMAT`, then a line with the neighbours of each node. Nodes
/// are numbered from 1. If FORMAT is 1, each neighbour is followed by the weight of the edge. Weights of
/// nodes aren't supported.
fn read_metis(lines: &[Row<'_>]) -> Result<Option<NamedGraph>> {
    // Empty lines below the first line are kept, because they belong to nodes without neighbours.
    let mut lines =
        lines.iter().filter(|row| !row.content.starts_with('%')).skip_while(|row| row.content.is_empty());
    let Some(first) = lines.next() else { return Ok(None) };
    let (n, m, step) = match first.numbers().unwrap_or_default()[..] {
        [n, m] | [n, m, 0] => (n, m, 1),
        [n, m, 1] => (n, m, 2),
        _ => return Ok(None),
    };
    let (nodes, behind): (Vec<_>, Vec<_>) = (1..).zip(lines).partition(|(a, _)| *a <= n);
    if nodes.len() as u64 != n || m == 0 || behind.iter().any(|(_, row)| !row.content.is_empty()) {
        return Ok(None);
    }
    let mut lists = Vec::new();
    let mut has_weights = false;
    for (a, row) in nodes {
        let Some(numbers) = row.numbers() else { return Ok(None) };
        has_weights |= step == 2 && numbers.iter().skip(1).step_by(2).any(|&weight| weight != 1);
        let neighbours = numbers.iter().step_by(step).map(|b| format!(" {b}"));
        lists.push(format!("{a}{}", neighbours.collect::<String>()));
    }
    let rows: Vec<Row<'_>> = lists.iter().map(|content| Row { line: first.line, content }).collect();
    let layout = read_neighbour_lists(&rows)?
        .filter(|(named, is_certain)| *is_certain && named.graph.n_edges() as u64 == m);
    Ok(layout.map(|(graph, _)| NamedGraph { has_weights, ..graph }))
}

/// Reads an adjacency matrix. The entries are 0 and 1, or weights with zeros on the diagonal. The matrix must
/// be symmetric.
fn read_matrix(rows: &[Row<'_>]) -> Result<Layout> {
    let n = rows.len();
    let width = rows.first().map_or(0, |row| row.words().count());
    let is_binary =
        rows.iter().all(|row| row.words().all(|word| matches!(word.parse::<f64>(), Ok(0.0 | 1.0))));
    if n < 3 || width < 3 || width != n && !is_binary || rows.iter().any(|row| row.words().count() != width) {
        return Ok(None);
    }
    let values = rows.iter().map(|row| row.words().map(|word| word.parse().ok()).collect());
    let Some(values) = values.collect::<Option<Vec<Vec<f64>>>>() else { return Ok(None) };
    let has_empty_diagonal = width == n && (0..n).all(|a| values[a][a] == 0.0);
    if !is_binary && !has_empty_diagonal {
        return Ok(None);
    }
    if !has_empty_diagonal || (0..n).any(|a| (0..a).any(|b| values[a][b] != values[b][a])) {
        let problem = format!(
            "the matrix of {n} rows and {width} columns isn't the adjacency matrix of an undirected graph"
        );
        return Err(Error::parse(rows[0].line, problem, EXPECTED_ONE_READING));
    }
    let mut pairs = Vec::new();
    for (a, row) in rows.iter().enumerate() {
        for b in (0..a).filter(|&b| values[a][b] != 0.0) {
            pairs.push(Pair {
                line: row.line,
                ends: [b, a].map(|end| end.to_string()),
                weight: values[a][b],
            });
        }
    }
    Ok(Some((build_graph(&number_names(0..n as u64), &pairs)?, true)))
}

/// Reads edges below a line `n m` or `n n m`, as in the files of Gset and rudy.
fn read_counted(rows: &[Row<'_>]) -> Result<Layout> {
    let [first, rest @ ..] = rows else { return Ok(None) };
    let head = first.numbers().unwrap_or_default();
    let [n, between @ .., m] = &head[..] else { return Ok(None) };
    let is_head = between.is_empty() || between == [*n];
    if !is_head || *m == 0 || *m != rest.len() as u64 || *n > MAX_EDGE_LIST_NODES as u64 {
        return Ok(None);
    }
    let least =
        u64::from(!rest.iter().any(|row| row.words().take(2).any(|end| parse_number(end) == Some(0))));
    let nodes = least..least + n;
    let graph = read_edges_within(rest.iter(), nodes.clone(), EXPECTED_NUMBERS);
    Ok(graph.ok().map(|graph| (graph, !nodes.contains(m))))
}

/// Reads an adjacency list in which at least one line has three or more words; a text of shorter lines is a
/// list of edges. Lines of three numbers could also be edges with weights, unless two lines begin with the
/// same two nodes, in either order.
fn read_adjacency_list(rows: &[Row<'_>]) -> Result<Layout> {
    if rows.len() > MAX_EDGE_LIST_NODES || !rows.iter().any(|row| row.words().count() > 2) {
        return Ok(None);
    }
    let edge = |row: &Row<'_>| match row.numbers()?[..] {
        [a, b, _] => Some((a.min(b), a.max(b))),
        _ => None,
    };
    let edges: Option<HashSet<(u64, u64)>> = rows.iter().map(edge).collect();
    let could_be_weighted = edges.is_some_and(|edges| edges.len() == rows.len());
    Ok(read_neighbour_lists(rows)?.map(|(graph, is_certain)| (graph, is_certain && !could_be_weighted)))
}

/// Reads an adjacency list: each line begins with a different node, followed by some of its neighbours.
fn read_neighbour_lists(rows: &[Row<'_>]) -> Result<Layout> {
    let mut nodes = Vec::new();
    let mut pairs = Vec::new();
    for row in rows {
        let mut words = row.words().map(str::to_owned);
        let Some(node) = words.next() else { return Ok(None) };
        pairs.extend(words.map(|other| Pair { line: row.line, ends: [node.clone(), other], weight: 1.0 }));
        nodes.push(node);
    }
    let starts: HashSet<&String> = nodes.iter().collect();
    let arcs: HashSet<&[String; 2]> = pairs.iter().map(|pair| &pair.ends).collect();
    let is_listed = |[a, b]: &&[String; 2]| a != b && starts.contains(b);
    if starts.len() < nodes.len() || arcs.len() < pairs.len() || !arcs.iter().all(is_listed) {
        return Ok(None);
    }
    let is_certain = arcs.iter().all(|[a, b]| arcs.contains(&[b.clone(), a.clone()]));
    Ok(Some((build_graph(&nodes, &pairs)?, is_certain)))
}

/// Reads an `edge_index` of PyTorch Geometric: a line of first nodes and a line of second nodes, with at
/// least three numbers each. Two lines of three numbers could also be two edges with weights.
fn read_edge_index(rows: &[Row<'_>]) -> Result<Layout> {
    let [sources, targets] = rows else { return Ok(None) };
    let from = sources.numbers().unwrap_or_default();
    let to = targets.numbers().unwrap_or_default();
    if from.len() < 3 || from.len() != to.len() {
        return Ok(None);
    }
    let edges: Vec<String> = from.iter().zip(&to).map(|(a, b)| format!("{a} {b}")).collect();
    let rows: Vec<Row<'_>> = edges.iter().map(|content| Row { line: targets.line, content }).collect();
    match read_edges(&rows) {
        Err(_) if from.len() == 3 => Ok(None),
        graph => Ok(Some((graph?, from.len() > 3))),
    }
}
