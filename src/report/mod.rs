//! Terminal output of a run: progress ([`Progress`]) and tables of results ([`Table`]).

mod progress;
mod table;
pub(crate) mod terminal;

pub use progress::Progress;
pub use table::{Cell, Table, number};
