//! Tasks on spaces whose exact distribution is known. The tasks judge samples of any program, and compare
//! certificates of policies with the truth.

pub(crate) mod certificates;
pub(crate) mod judge;
mod known_task;
mod samples;
