//! Action types from their settings.

use serde::Deserialize;

use super::{ActionSet, AddEdge, AddNode, Reverse, SetEdgeAttr, SetNodeAttr};

/// An action type of the library, as its [`settings`](super::GraphActionType::settings) describe it.
#[derive(Deserialize)]
pub(in crate::graph) enum LibraryType {
    AddNode(AddNode),
    AddEdge(AddEdge),
    SetNodeAttr(SetNodeAttr),
    SetEdgeAttr(SetEdgeAttr),
    Reverse(Box<LibraryType>),
}

impl LibraryType {
    /// Adds the type to a set. Returns `None` for the reverse of a reversed type, which isn't supported.
    pub(in crate::graph) fn add_to(self, actions: ActionSet) -> Option<ActionSet> {
        Some(match self {
            Self::AddNode(original) => actions.with(original),
            Self::AddEdge(original) => actions.with(original),
            Self::SetNodeAttr(original) => actions.with(original),
            Self::SetEdgeAttr(original) => actions.with(original),
            Self::Reverse(original) => match *original {
                Self::AddNode(original) => actions.with(Reverse(original)),
                Self::AddEdge(original) => actions.with(Reverse(original)),
                Self::SetNodeAttr(original) => actions.with(Reverse(original)),
                Self::SetEdgeAttr(original) => actions.with(Reverse(original)),
                Self::Reverse(_) => return None,
            },
        })
    }
}
