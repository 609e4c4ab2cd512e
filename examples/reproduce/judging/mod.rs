//! Judging samplers where the truth is known: anybody's samples, and what certificates say of policies.

pub(crate) mod certificates;
pub(crate) mod judge;
mod known;
mod page;
mod quality;
mod samples;
pub(crate) mod truth;
