//! The states of a trainer's parts (optimizer, sources, companions) in a checkpoint.

use tch::Tensor;

use crate::Result;
use crate::env::Env;
use crate::optim::Optimizer;

/// The names of a checkpoint's sections that no custom part may have: the sections of the model, of attached
/// states (of observers, for example), and of the trainer's built-in parts.
pub(in crate::train) const RESERVED: [&str; 8] =
    ["model", "attached", "policy", "replay", "data", "average", "target_network", "gradient_sum"];

/// A part of a trainer whose state has a section in checkpoints, so that a resumed run equals an
/// uninterrupted run bit for bit. A part without a state needs only a name.
pub trait Persist<E: Env>: Send {
    /// Returns the name of the part's section in a checkpoint. No two parts of a trainer may have the same
    /// name.
    fn name(&self) -> &str;

    /// Returns a description of the part for error messages: a noun with an article.
    fn describe(&self) -> String {
        format!("a part named `{}`", self.name())
    }

    /// Returns the state that a checkpoint stores, as named tensors. Floating-point numbers must be finite.
    ///
    /// # Errors
    /// Any error that prevents saving.
    fn state(&self, _env: &E) -> Result<Vec<(String, Tensor)>> {
        Ok(Vec::new())
    }

    /// Restores a state that [`state`](Self::state) returned.
    ///
    /// # Errors
    /// Any error for a state that belongs to another part. If it fails, the part must be unchanged.
    fn load_state(&mut self, _env: &E, _state: &[(String, Tensor)]) -> Result<()> {
        Ok(())
    }
}

impl<E: Env> Persist<E> for Box<dyn Optimizer> {
    fn name(&self) -> &str {
        self.as_ref().name()
    }
    fn describe(&self) -> String {
        format!("an optimiser's state (`{}`)", self.as_ref().name())
    }
    fn state(&self, _env: &E) -> Result<Vec<(String, Tensor)>> {
        self.as_ref().state()
    }
    fn load_state(&mut self, _env: &E, state: &[(String, Tensor)]) -> Result<()> {
        self.as_mut().load_state(state)
    }
}
