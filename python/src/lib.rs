//! The extension module of the Python package `gfn_rs`: environments, trainers and batches of states, as its classes use them.
//!
//! Settings come as dictionaries from classes that are written in Python. Objects of Python (rewards, networks, callbacks) are called with
//! batches, never state by state. The interpreter is detached while a trainer works.

#[macro_use]
mod kinds;

mod backward;
mod border;
mod conditioning;
mod conditions;
mod env;
mod errors;
mod evaluation;
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
mod tensors;
mod threads;
mod watch;
mod wording;

use pyo3::prelude::*;

#[pymodule]
fn _gfn(module: &Bound<'_, PyModule>) -> PyResult<()> {
    gfn::runtime::differentiate_by(backward::backward);
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    // `gfn_rs/__init__.py` reads it in the file, before it loads it beside a torch of another version.
    module.add("__torch__", concat!("gfn-rs is linked to torch ", env!("GFN_TORCH"), ";"))?;
    module.add_class::<conditioning::Conditioner>()?;
    module.add_class::<env::Env>()?;
    module.add_class::<paths::Paths>()?;
    module.add_class::<env::VectorMoves>()?;
    module.add_class::<objective::Scores>()?;
    module.add_class::<ranking::Ranking>()?;
    module.add_class::<ranking::Score>()?;
    module.add_class::<session::Session>()?;
    module.add_function(wrap_pyfunction!(session::note_of, module)?)?;
    module.add_class::<states::Graphs>()?;
    module.add_function(wrap_pyfunction!(files::fragments_of, module)?)?;
    module.add_function(wrap_pyfunction!(files::read_molecules, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::wasserstein2, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::maximum_mean_discrepancy, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::pareto_front, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::hypervolume, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::noise_floor, module)?)?;
    module.add_function(wrap_pyfunction!(solve::solve, module)?)?;
    module.add_function(wrap_pyfunction!(threads::set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(inside::end, module)?)?;
    module.add_function(wrap_pyfunction!(inside::calls, module)?)?;
    module.add_function(wrap_pyfunction!(inside::forked, module)?)?;
    module.add_class::<policy::PyBatch>()
}
