//! The extension module of the Python package `gfn_rs`: environments, trainers and batches of states, which
//! the package's classes wrap.
//!
//! Settings are dictionaries that Python classes create. These classes declare the types, defaults and bounds
//! of settings. The extension converts settings to the library's own configurations. Python functions
//! (rewards, networks, callbacks) are called with batches, never state by state. The interpreter is detached
//! while a trainer works.

#[macro_use]
mod kinds;

mod border;
mod conditions;
mod env;
mod errors;
mod files;
mod inside;
mod metrics;
mod molecules;
mod objective;
mod parts;
mod paths;
mod policy;
mod ranking;
mod references;
mod reward;
mod session;
mod settings;
mod solve;
mod states;
mod structures;
mod tensors;
mod watch;
mod wording;

use pyo3::prelude::*;

#[pymodule]
mod _gfn {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::conditions::Conditioner;
    #[pymodule_export]
    use crate::env::Env;
    #[pymodule_export]
    use crate::files::{fragments_of, read_molecules};
    #[pymodule_export]
    use crate::inside::{calls, end, forked, set_threads};
    #[pymodule_export]
    use crate::metrics::{hypervolume, maximum_mean_discrepancy, noise_floor, pareto_front, wasserstein2};
    #[pymodule_export]
    use crate::objective::Scores;
    #[pymodule_export]
    use crate::paths::Paths;
    #[pymodule_export]
    use crate::policy::PyBatch;
    #[pymodule_export]
    use crate::ranking::{Ranking, Score, canonical_smiles};
    #[pymodule_export]
    use crate::session::{Session, note_of};
    #[pymodule_export]
    use crate::solve::solve;
    #[pymodule_export]
    use crate::states::Graphs;
    #[pymodule_export]
    use crate::structures::{
        StructureScores, compare_structures, detect_edges, edge_intervals, edge_intervals_between,
        edges_to_dot, structure_marginals,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        gfn::runtime::differentiate_by(crate::tensors::backward);
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        // Before `gfn_rs/__init__.py` loads this module, it searches the module's file for this text. So it
        // can refuse another version of torch.
        module.add("__torch__", concat!("gfn-rs is linked to torch ", env!("GFN_TORCH"), ";"))
    }
}
