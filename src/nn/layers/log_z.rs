use tch::Tensor;

use crate::nn::{Group, Mlp, MlpConfig, Scope};

/// An estimate of log Z: a scalar, or a function of a trajectory's condition. It has a learning rate of its own.
#[derive(Debug)]
pub enum LogZ {
    /// One number, `[1]`.
    Scalar(Tensor),
    /// A perceptron on the condition vector.
    Conditional(Mlp),
}

impl LogZ {
    /// A scalar that starts at `initial`.
    pub fn scalar(scope: &mut Scope<'_>, initial: f64) -> Self {
        Self::Scalar(scope.group(Group::LogZ).constant("log_z", &[1], initial))
    }

    /// A function of conditions of `n_conditions` numbers. It never has noise, which would explore nothing here.
    pub fn conditional(scope: &mut Scope<'_>, n_conditions: i64, config: &MlpConfig) -> Self {
        let config = MlpConfig { noise: None, ..config.clone() };
        Self::Conditional(Mlp::new(&mut scope.group(Group::LogZ).sub("log_z"), n_conditions, 1, &config))
    }

    /// log Z of `n` trajectories, `[n]`, with conditions `[n, C]`; `None` if a condition is needed and missing.
    pub fn forward(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        match self {
            Self::Scalar(value) => Some(value.expand([n as i64], false)),
            Self::Conditional(mlp) => conditions.map(|c| mlp.forward(&mlp.suited(c)).view(-1)),
        }
    }
}
