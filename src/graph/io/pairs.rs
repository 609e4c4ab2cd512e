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

#[cfg(test)]
mod tests {
    use crate::graph::{GraphFormat, GraphKind, GraphState};

    fn read(text: &str) -> crate::Result<Vec<GraphState>> {
        GraphFormat::EdgeList.read(text.as_bytes())
    }

    #[test]
    fn edges_are_read_as_networkx_snap_and_pyg_write_them() {
        let texts = [
            // networkx: write_edgelist, without data, with it, with a weight; write_weighted_edgelist.
            "0 1\n1 2\n2 0\n2 3\n",
            "0 1 {}\n1 2 {'weight': 3, 'name': 'a b'}\n2 0 {}\n2 3 {}\n",
            "#nodes.py\n# GMT Mon\n#\n0 1 0.5\r\n1 2 3\r\n2 0 1e-3\r\n2 3 1\r\n",
            // SNAP: comments in front, tabs, both ways round, numbers with gaps.
            "# Directed graph (each unordered pair of nodes is saved once): x.txt\n# FromNodeId\tToNodeId\n7\t30\n30\t7\n30\t88\n\
             88\t7\n88\t901234567890\n",
            // The columns of an edge_index in a CSV file, numbered from 1.
            "1,2\n2,3\n3,1\n\n3,4 # the tail\n",
        ];
        for text in texts {
            let graphs = read(text).unwrap();
            assert!(graphs.len() == 1 && graphs[0].kind() == GraphKind::Undirected, "{text}");
            assert_eq!(graphs[0].edges().collect::<Vec<_>>(), [(0, 1), (0, 2), (1, 2), (2, 3)], "{text}");
        }
    }

    #[test]
    fn each_mistake_is_named_with_its_line() {
        let cases: &[(&str, usize, &str)] = &[
            ("0", 1, "a node is missing"),
            ("# one\n0 1\n1 b", 3, "a node is `b`"),
            ("0 1\n-1 2", 2, "a node is `-1`"),
            ("0 1\n99999999999999999999 2", 2, "a node is `99999999999999999999`"),
            ("0 1\n2 2", 2, "self-loop (2, 2)"),
            ("0 1 red", 1, "`red` behind the nodes"),
            ("0 1 {'weight': 3", 1, "`{'weight':` behind the nodes"),
            ("0 1\ngraph directed 3", 2, "a node is `graph`"),
            ("graph directed 3\n0 1", 2, "unknown word `0`"),
        ];
        for &(text, at, part) in cases {
            let error = read(text).unwrap_err();
            let message = error.to_string();
            assert!(matches!(error, crate::Error::Parse { line, .. } if line == at), "{text:?}: {message}");
            assert!(message.contains(part), "{text:?}: {message}");
        }
        let path: String = (0..16_384).map(|a| format!("{a} {}\n", a + 1)).collect();
        let message = read(&path).unwrap_err().to_string();
        assert!(message.starts_with("line 16384: node 16384 after as many others"), "{message}");
    }
}
