//! The outputs to compute in one evaluation.

/// The outputs that a caller wants for a batch of states.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wants {
    /// The forward policy.
    pub pf: bool,
    /// The backward policy.
    pub pb: bool,
    /// The log of the state flow.
    pub log_flow: bool,
    /// The prior that a policy is relative to.
    pub prior: bool,
    /// The log of the number of paths to a state.
    pub log_paths: bool,
}

impl Wants {
    /// The forward policy alone.
    pub const PF: Self = Self { pf: true, pb: false, log_flow: false, prior: false, log_paths: false };
    /// The backward policy alone.
    pub const PB: Self = Self { pf: false, pb: true, log_flow: false, prior: false, log_paths: false };
}
