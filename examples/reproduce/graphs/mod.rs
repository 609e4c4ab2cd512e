//! Graphs: problems on input graphs, rings on labelled nodes, growth up to isomorphism, solutions and samples
//! of a checkpoint, speed.

pub(crate) mod devices;
pub(crate) mod graph_problem;
pub(crate) mod growth;
mod held_out;
pub(crate) mod ring;
pub(crate) mod sample;
pub(crate) mod solve;
pub(crate) mod speed;

use crate::prelude::*;

/// The flags of tasks that use a checkpoint.
#[derive(Args)]
pub(crate) struct Machine {
    /// Seed of the draws
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads of rayon and of libtorch; each number rounds libtorch's products differently, so another one
    /// is another run
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Device of tensors: cpu, cuda or cuda:N
    #[arg(long, default_value = "cpu")]
    device: DeviceKind,
    /// Print one line of JSON at the end
    #[arg(long)]
    json: bool,
}

impl Machine {
    /// Sets the threads, and returns the device.
    fn device(&self) -> Result<Device> {
        Ok(Runtime::new(self.threads, self.device)?.device())
    }
}
