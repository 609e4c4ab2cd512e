//! Directed or undirected.

/// Whether edges have a direction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub enum GraphKind {
    /// An edge leads from its first node to its second.
    Directed,
    /// An edge joins its two nodes; it is named with the smaller index first.
    Undirected,
}
