//! The states of a trainer's parts (optimizer, sources, companions) in a checkpoint.

use tch::Tensor;

use crate::Result;
use crate::env::Env;
use crate::optim::Optimizer;

/// The sections of a trainer's own parts, and of the model.
pub(in crate::train) const RESERVED: [&str; 8] =
    ["model", "attached", "policy", "replay", "data", "average", "target_network", "gradient_sum"];

/// A part of a trainer with a section of the checkpoint for its state, so that a resumed run equals the uninterrupted
/// one bit for bit. A part without a state needs only a name.
pub trait Persist<E: Env>: Send {
    /// The name of its section in a checkpoint, which no other part has.
    fn name(&self) -> &str;

    /// A noun with an article, for messages.
    fn describe(&self) -> String {
        format!("a part named `{}`", self.name())
    }

    /// Returns the state that a checkpoint stores: tensors by name. Floating-point numbers must be finite.
    ///
    /// # Errors
    /// Any error that prevents saving.
    fn state(&self, _env: &E) -> Result<Vec<(String, Tensor)>> {
        Ok(Vec::new())
    }

    /// Restores a state that [`state`](Self::state) returned.
    ///
    /// # Errors
    /// Any error for the state of another part; nothing may change then.
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
