//! The weights of nodes and edges (a class and further categorical attributes), and the kind of a graph.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The largest number of attributes that a node or an edge can have besides its class.
pub const MAX_ATTRIBUTES: usize = 7;

/// The kind of a graph: directed or undirected.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum GraphKind {
    /// A directed graph, in which an edge leads from its first node to its second.
    Directed,
    /// An undirected graph, in which an edge joins its two nodes. The smaller node of an edge is named first.
    Undirected,
}

/// The categorical attributes of a node or an edge. Attribute `k` has a value, and 0 means that it isn't set.
///
/// A node or an edge has at most [`MAX_ATTRIBUTES`] attributes. Attributes are stored inline and are `Copy`,
/// because states are cloned often.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug, Serialize, Deserialize)]
pub struct Attributes([u8; MAX_ATTRIBUTES]);

impl Attributes {
    /// Creates attributes with these values. Attributes beyond the end of `values` aren't set.
    ///
    /// # Errors
    /// [`Error::Config`] for more than [`MAX_ATTRIBUTES`] values.
    pub fn new(values: &[u8]) -> Result<Self> {
        let mut out = Self::default();
        let Some(slots) = out.0.get_mut(..values.len()) else {
            return Err(Error::config(
                "attributes",
                values.len(),
                "at most 7 attributes on a node or an edge",
            ));
        };
        slots.copy_from_slice(values);
        Ok(out)
    }

    /// Returns the value of attribute `k`; 0 if the attribute isn't set, or if `k` is [`MAX_ATTRIBUTES`] or
    /// more.
    #[must_use]
    pub fn get(&self, k: usize) -> u8 {
        self.0.get(k).copied().unwrap_or(0)
    }

    /// Returns the values of the first `n` attributes, from which indices into tables of learned vectors are
    /// computed.
    pub(crate) fn columns(self, n: usize) -> impl Iterator<Item = i64> {
        (0..n).map(move |k| i64::from(self.get(k)))
    }

    /// Sets attribute `k`, which must be less than [`MAX_ATTRIBUTES`]. For a larger `k` debug builds panic,
    /// and release builds do nothing.
    pub fn set(&mut self, k: usize, value: u8) {
        debug_assert!(k < MAX_ATTRIBUTES, "attribute {k} of {MAX_ATTRIBUTES}");
        if let Some(slot) = self.0.get_mut(k) {
            *slot = value;
        }
    }

    /// `true` if no attribute is set.
    #[must_use]
    pub fn is_unset(&self) -> bool {
        self.0 == [0; MAX_ATTRIBUTES]
    }

    /// Returns the values of the attributes up to the last one that is set.
    pub(in crate::graph) fn set_values(&self) -> &[u8] {
        &self.0[..self.0.iter().rposition(|&value| value != 0).map_or(0, |last| last + 1)]
    }

    /// The values of all attributes; 0 for attributes that aren't set.
    #[must_use]
    pub fn values(&self) -> &[u8; MAX_ATTRIBUTES] {
        &self.0
    }
}

/// The weight of a node or an edge, which consists of its class and its attributes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug, Serialize, Deserialize)]
pub struct Weight {
    /// The class of the node or the edge, which counts from 0.
    pub class: u16,
    /// The categorical attributes besides the class.
    pub attributes: Attributes,
}

/// The weight of a node, whose class is an element or a colour, for example.
pub type Node = Weight;
/// The weight of an edge, whose class is a bond type or a relation, for example.
pub type Edge = Weight;

impl Weight {
    /// Creates the weight of a node or an edge of a class, without attributes.
    #[must_use]
    pub fn from_class(class: u16) -> Self {
        Self { class, attributes: Attributes::default() }
    }

    /// Returns `true` if no attribute is set and the class is less than `classes`.
    pub(in crate::graph) fn has_class_below(self, classes: u16) -> bool {
        self.class < classes && self.attributes.is_unset()
    }

    /// `true` if the class is 0 and no attribute is set.
    pub(crate) fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}
