//! Layouts of graphs that aren't one edge per line, recognised by their content. Formats that aren't read are
//! refused by name.

use std::collections::HashSet;
use std::ops::Range;

use super::MAX_EDGE_LIST_NODES;
use super::pairs::{NamedGraph, ONE_WAY, PAIR, Pair, Row, build, listed, number};
use super::words::shown;
use crate::{Error, Result};

/// Kinds of DIMACS files, and of PACE's, that list the edges of a graph.
const DIMACS_KINDS: [&str; 9] = ["edge", "edges", "col", "sp", "tw", "td", "vc", "ds", "cep"];
const DIMACS: &str = "DIMACS: once `p KIND NODES EDGES`, KIND one of edge, col, sp, tw, td, vc, ds and \
                      cep, then `e A B`, `a A B WEIGHT` or `A B`, two different nodes from 1 to NODES, which is \
                      at most 16,384";
const EDGES: &str = "an edge list: `A B`, the names of two different nodes, on each line (networkx reads many \
                     formats, and its `write_edgelist` writes this one)";

/// Titles of the columns of nodes, in lower case, without `_`, `id` and a number.
const TITLES: [&str; 11] =
    ["source", "target", "from", "to", "fromnode", "tonode", "src", "dst", "node", "start", "end"];

/// Formats that aren't read, and how their first lines begin, in lower case.
const FOREIGN: [(&str, &[&str]); 7] = [
    ("Matrix Market", &["%%matrixmarket"]),
    ("KONECT, or another format with comments after `%`", &["% ", "%\t", "%%"]),
    ("a list for `GraphFormat::EdgeList`", &["graph directed ", "graph undirected "]),
    ("GML", &["graph [", "creator \""]),
    ("XML (GraphML or GEXF)", &["<?xml", "<graphml", "<gexf"]),
    ("Pajek", &["*vertices", "*network"]),
    ("JSON", &["{", "["]),
];

/// A graph that a text could hold, and `false` if a list of edges could look the same.
type Layout = Option<(NamedGraph, bool)>;

/// Reads the graph of the lines of a text.
pub(super) fn read(lines: &[Row<'_>]) -> Result<NamedGraph> {
    let rows: Vec<Row<'_>> = lines.iter().filter(|row| !row.content.is_empty()).copied().collect();
    if let Some(graph) = dimacs(&rows)?.or(metis(lines)?) {
        return Ok(graph);
    }
    refuse_foreign(&rows)?;
    let rows = if are_titles(&rows) { &rows[1..] } else { &rows[..] };
    for layout in [matrix, counted, adjacency_list, edge_index] {
        let Some((graph, is_certain)) = layout(rows)? else { continue };
        if !is_certain && listed(rows).is_ok_and(|edges| edges != graph) {
            return Err(Error::parse(rows[0].line, "a text that could be read in two ways", ONE_WAY));
        }
        return Ok(graph);
    }
    listed(rows)
}

/// Refuses the formats that aren't read by their names.
fn refuse_foreign(rows: &[Row<'_>]) -> Result<()> {
    let Some(first) = rows.first() else { return Ok(()) };
    let (text, is_one_word) = (first.content.to_lowercase(), first.words().count() == 1);
    let begins = |starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
    let name = match FOREIGN.iter().find(|(_, starts)| begins(starts)) {
        Some((name, _)) => *name,
        None if is_one_word && begins(&[":", "&", ">>"]) => "sparse6, or digraph6 or graph6 with a mistake",
        None if text.ends_with('{') && begins(&["graph", "digraph", "strict"]) => "DOT of Graphviz",
        None => return Ok(()),
    };
    Err(Error::parse(first.line, format!("this is {name}"), EDGES))
}

/// `true` if the first line has the titles of two columns of nodes, with rows below in which no node has such a name.
fn are_titles(rows: &[Row<'_>]) -> bool {
    let [first, rest @ ..] = rows else { return false };
    let plain = |word: &str| {
        let word = word.trim_matches('"').to_lowercase().replace('_', "");
        word.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches("id").to_owned()
    };
    let titles: Vec<String> = first.words().take(2).map(plain).collect();
    !rest.is_empty()
        && titles.iter().all(|title| TITLES.contains(&title.as_str()))
        && rest.iter().all(|row| row.words().take(2).all(|name| !titles.contains(&plain(name))))
}

fn names(numbers: Range<u64>) -> Vec<String> {
    numbers.map(|number| number.to_string()).collect()
}

/// The graph of edges between nodes of these numbers alone; letters of DIMACS in front are skipped.
fn edges_within<'a>(
    rows: impl Iterator<Item = &'a Row<'a>>,
    nodes: Range<u64>,
    expected: &'static str,
) -> Result<NamedGraph> {
    let mut pairs = Vec::new();
    for row in rows {
        let content = row.content.trim_start_matches(['e', 'a']);
        let pair = Row { content, ..*row }.pair(true, expected)?;
        if !pair.ends.iter().filter_map(|end| number(end)).all(|end| nodes.contains(&end)) {
            let n = nodes.end - nodes.start;
            let problem = format!("edge ({}) in a graph of {n} nodes", pair.ends.join(", "));
            return Err(Error::parse(row.line, problem, expected));
        }
        pairs.push(pair);
    }
    build(names(nodes), &pairs, true)
}

/// Reads DIMACS: a line `p KIND NODES EDGES`, then edges `e A B`, arcs `a A B WEIGHT` or, as in PACE, `A B`.
fn dimacs(rows: &[Row<'_>]) -> Result<Option<NamedGraph>> {
    let mut rows = rows.iter().filter(|row| row.words().next() != Some("c"));
    let Some(problem) = rows.next() else { return Ok(None) };
    let words: Vec<&str> = problem.words().collect();
    let is_edge = |row: &Row<'_>| {
        row.content.strip_prefix('e').is_some_and(|content| Row { content, ..*row }.numbers().is_some())
    };
    if is_edge(problem) && rows.clone().all(is_edge) {
        return Err(Error::parse(problem.line, "an edge before the line `p KIND NODES EDGES`", DIMACS));
    }
    let ["p", kind, counts @ ..] = &words[..] else { return Ok(None) };
    let counts: Option<Vec<u64>> = counts.iter().map(|word| number(word)).collect();
    let n = match (DIMACS_KINDS.contains(kind), counts.as_deref()) {
        // The number of edges isn't checked: files of the challenges count an edge once or twice.
        (true, Some(&[n, _])) if n <= MAX_EDGE_LIST_NODES as u64 => n,
        (false, None | Some([] | [_] | [_, _, _, ..])) => return Ok(None),
        _ => return Err(Error::parse(problem.line, format!("the line {}", shown(problem.content)), DIMACS)),
    };
    edges_within(rows, 1..n + 1, DIMACS).map(Some)
}

/// Reads METIS: a line `n m` or `n m FORMAT`, then the neighbours of each node, counted from 1, with weights
/// of edges behind them if FORMAT is 1. Weights of nodes aren't read.
fn metis(lines: &[Row<'_>]) -> Result<Option<NamedGraph>> {
    // Lines of nodes without neighbours are empty.
    let mut lines = lines.iter().filter(|row| !row.content.starts_with('%')).skip_while(|row| row.content.is_empty());
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
    let (mut lists, mut has_weights) = (Vec::new(), false);
    for (a, row) in nodes {
        let Some(numbers) = row.numbers() else { return Ok(None) };
        has_weights |= step == 2 && numbers.iter().skip(1).step_by(2).any(|&weight| weight != 1);
        let neighbours = numbers.iter().step_by(step).map(|b| format!(" {b}"));
        lists.push(format!("{a}{}", neighbours.collect::<String>()));
    }
    let rows: Vec<Row<'_>> = lists.iter().map(|content| Row { line: first.line, content }).collect();
    let layout = lists_of_all(&rows)?.filter(|(one, is_certain)| *is_certain && one.graph.n_edges() as u64 == m);
    Ok(layout.map(|(graph, _)| NamedGraph { has_weights, ..graph }))
}

/// Reads a matrix of adjacency: of 0 and 1, or symmetric with weights and zeros on the diagonal.
fn matrix(rows: &[Row<'_>]) -> Result<Layout> {
    let (n, width) = (rows.len(), rows.first().map_or(0, |row| row.words().count()));
    let is_binary = rows.iter().all(|row| row.words().all(|word| matches!(word.parse::<f64>(), Ok(0.0 | 1.0))));
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
        let problem = format!("a matrix of {n} rows and {width} columns that no graph without directions has");
        return Err(Error::parse(rows[0].line, problem, ONE_WAY));
    }
    let mut pairs = Vec::new();
    for (a, row) in rows.iter().enumerate() {
        for b in (0..a).filter(|&b| values[a][b] != 0.0) {
            pairs.push(Pair { line: row.line, ends: [b, a].map(|end| end.to_string()), weight: values[a][b] });
        }
    }
    Ok(Some((build(names(0..n as u64), &pairs, true)?, true)))
}

/// Reads edges below a line `n m` or `n n m`, as Gset and rudy write them.
fn counted(rows: &[Row<'_>]) -> Result<Layout> {
    let [first, rest @ ..] = rows else { return Ok(None) };
    let head = first.numbers().unwrap_or_default();
    let [n, between @ .., m] = &head[..] else { return Ok(None) };
    let is_head = between.is_empty() || between == [*n];
    if !is_head || *m == 0 || *m != rest.len() as u64 || *n > MAX_EDGE_LIST_NODES as u64 {
        return Ok(None);
    }
    let least = u64::from(!rest.iter().any(|row| row.words().take(2).any(|end| number(end) == Some(0))));
    let nodes = least..least + n;
    let graph = edges_within(rest.iter(), nodes.clone(), PAIR);
    Ok(graph.ok().map(|graph| (graph, !nodes.contains(m))))
}

/// Reads an adjacency list with a line of three words or more; others are lists of edges. Lines of three
/// numbers could be edges with weights, if they name no edge both ways.
fn adjacency_list(rows: &[Row<'_>]) -> Result<Layout> {
    if rows.len() > MAX_EDGE_LIST_NODES || !rows.iter().any(|row| row.words().count() > 2) {
        return Ok(None);
    }
    let edge = |row: &Row<'_>| match row.numbers()?[..] {
        [a, b, _] => Some((a.min(b), a.max(b))),
        _ => None,
    };
    let edges: Option<HashSet<(u64, u64)>> = rows.iter().map(edge).collect();
    let could_be_weighted = edges.is_some_and(|edges| edges.len() == rows.len());
    Ok(lists_of_all(rows)?.map(|(graph, is_certain)| (graph, is_certain && !could_be_weighted)))
}

/// Reads an adjacency list: each line begins with another node, behind which some of its neighbours stand.
fn lists_of_all(rows: &[Row<'_>]) -> Result<Layout> {
    let (mut nodes, mut pairs) = (Vec::new(), Vec::new());
    for row in rows {
        let mut words = row.words().map(str::to_owned);
        let Some(node) = words.next() else { return Ok(None) };
        pairs.extend(words.map(|other| Pair { line: row.line, ends: [node.clone(), other], weight: 1.0 }));
        nodes.push(node);
    }
    let (starts, arcs): (HashSet<&String>, HashSet<&[String; 2]>) =
        (nodes.iter().collect(), pairs.iter().map(|pair| &pair.ends).collect());
    let is_listed = |[a, b]: &&[String; 2]| a != b && starts.contains(b);
    if starts.len() < nodes.len() || arcs.len() < pairs.len() || !arcs.iter().all(is_listed) {
        return Ok(None);
    }
    let is_certain = arcs.iter().all(|[a, b]| arcs.contains(&[b.clone(), a.clone()]));
    let numbered = nodes.iter().all(|node| number(node).is_some());
    Ok(Some((build(nodes, &pairs, numbered)?, is_certain)))
}

/// Reads an `edge_index`: two lines of as many numbers. Those of three numbers could be two edges with
/// weights.
fn edge_index(rows: &[Row<'_>]) -> Result<Layout> {
    let [sources, targets] = rows else { return Ok(None) };
    let (from, to) = (sources.numbers().unwrap_or_default(), targets.numbers().unwrap_or_default());
    let loops = from.iter().zip(&to).find(|(a, b)| a == b);
    match (from.len(), loops) {
        (0..=2, _) | (3, Some(_)) => return Ok(None),
        (n, _) if n != to.len() => return Ok(None),
        (_, Some((a, _))) => return Err(Error::parse(targets.line, format!("self-loop ({a}, {a})"), PAIR)),
        _ => {}
    }
    let pair = |(a, b): (&u64, &u64)| Pair { line: targets.line, ends: [a, b].map(u64::to_string), weight: 1.0 };
    let pairs: Vec<Pair> = from.iter().zip(&to).map(pair).collect();
    Ok(Some((build(Vec::new(), &pairs, true)?, from.len() > 3)))
}
