//! Tasks that judge samplers whose exact distribution is known: samples of any program, and certificates of
//! policies.

pub(crate) mod certificates;
pub(crate) mod judge;
mod known_task;
mod samples;
