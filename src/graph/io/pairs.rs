//! Lists of pairs of nodes, as networkx, SNAP and PyG write edges: one undirected graph per file.

use std::collections::BTreeSet;

use super::MAX_EDGE_LIST_NODES;
use super::words::{found, shown};
use crate::graph::{Edge, GraphKind, GraphState};
use crate::{Error, Result};

const PAIR: &str = "`A B`, the whole numbers of two different nodes, with nothing behind them but weights or `{..}`; at most 16,384 \
                    nodes in all";

pub(in crate::graph) fn read(text: &[u8]) -> Result<Vec<GraphState>> {
    let (mut pairs, mut nodes) = (Vec::new(), BTreeSet::new());
    for (line, content) in super::contents(text) {
        let refuse = |problem: String| Error::parse(line, problem, PAIR);
        let content = content?.trim_ascii();
        if content.is_empty() {
            continue;
        }
        let mut words = content.split(|c: char| c.is_ascii_whitespace() || c == ',').filter(|word| !word.is_empty());
        let mut node = || {
            let word = words.next();
            let digits = word.filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
            let number = digits.and_then(|digits| digits.parse::<u64>().ok());
            number.ok_or_else(|| refuse(format!("a node is {}", found(word))))
        };
        let (a, b) = (node()?, node()?);
        let mut behind = words.peekable();
        let is_dictionary = behind.peek().is_some_and(|word| word.starts_with('{')) && content.ends_with('}');
        if let Some(word) = behind.find(|word| !is_dictionary && word.parse::<f64>().is_err()) {
            return Err(refuse(format!("{} behind the nodes", shown(word))));
        }
        if a == b {
            return Err(refuse(format!("self-loop ({a}, {b})")));
        }
        nodes.extend([a, b]);
        if nodes.len() > MAX_EDGE_LIST_NODES {
            return Err(refuse(format!("node {} after as many others as a graph may have", a.max(b))));
        }
        pairs.push((a, b));
    }
    let nodes: Vec<u64> = nodes.into_iter().collect();
    let place = |node: u64| nodes.partition_point(|&other| other < node) as u32;
    let mut graph = GraphState::with_nodes(GraphKind::Undirected, nodes.len());
    for (a, b) in pairs.into_iter().map(|(a, b)| (place(a), place(b))) {
        // Many files name each edge both ways round.
        if !graph.has_edge(a, b) {
            graph.add_edge(a, b, Edge::default())?;
        }
    }
    Ok(vec![graph])
}
