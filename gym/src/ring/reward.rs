use gfn::Result;
use gfn::env::Reward;
use gfn::graph::GraphStates;
use gfn::runtime::Threads;

use super::Ring;
use super::env::is_ring;
use crate::levels::Levels;

/// A reward for graphs that are one cycle through all of their nodes, a floor for every other graph.
///
/// By default 100 and 1e-6. The floor carries mass too: with `m` possible edges Z is
/// `100 rings + 1e-6 (2^m - rings)`, so that from 6 directed nodes on a floor of 1e-6 drowns the rings.
///
/// ```
/// use gfn::graph::GraphKind;
/// use gfn_gym::ring::{Ring, RingReward};
/// let reward = RingReward::new(100.0, 1e-9)?;
/// let env = Ring::new(6, GraphKind::Directed)?;
/// let log_z = reward.log_z(&env);
/// assert!((log_z - 9.39275).abs() < 1e-5);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RingReward(Levels);

impl Default for RingReward {
    fn default() -> Self {
        Self(Levels::DEFAULT)
    }
}

impl RingReward {
    /// R = `ring` for rings, `floor` for all other graphs.
    ///
    /// # Errors
    /// [`Error::Config`](gfn::Error::Config) unless `0 < floor < ring`, both finite.
    pub fn new(ring: f64, floor: f64) -> Result<Self> {
        Levels::new(ring, floor).map(Self)
    }

    /// The true log Z over all states of `env`.
    #[must_use]
    pub fn log_z(&self, env: &Ring) -> f64 {
        self.0.log_z(env.n_rings() as f64, env.n_states())
    }
}

impl Reward<GraphStates> for RingReward {
    fn log_reward(&self, states: &GraphStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        Threads::try_map(states.graphs(), 256, |graph| Ok(self.0.log_of(is_ring(graph))))
    }
}
