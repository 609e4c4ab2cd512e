//! Parameters as bytes, and back.

use gfn::distribution::Exploration;
use gfn::nn::Parameters;
use gfn::{Result, Rng};
use tch::{Device, Tensor, no_grad};

use super::conditions::Form;
use super::frame::{Broken, Fields};

/// Bytes before the parameters: the step, and how to explore.
const HEAD: usize = 40;

/// A model's parameters after a step, as actors get them.
#[derive(Debug)]
pub(super) struct Weights {
    pub(super) version: u64,
    pub(super) model: u64,
    pub(super) environment: String,
    /// Those under which walks are to be drawn.
    pub(super) conditions: Form,
    /// Which of how many learners that train as one this is.
    pub(super) learner: (u64, u64),
    pub(super) body: Vec<u8>,
}

/// A number that differs where models do: in names, shapes or kinds of their parameters.
pub(super) fn model_of(parameters: Option<&Parameters>) -> u64 {
    let mut hash = 0;
    let mut add = |number: u64| hash = Rng::mix64(hash ^ Rng::mix64(number.wrapping_add(1)));
    for parameter in parameters.into_iter().flatten() {
        parameter.name.bytes().for_each(|byte| add(u64::from(byte)));
        add(parameter.tensor.kind() as u64);
        parameter.tensor.size().into_iter().for_each(|size| add(size as u64));
    }
    hash
}

fn bytes_of(tensor: &Tensor) -> usize {
    tensor.numel() * tensor.kind().elt_size_in_bytes()
}

/// How long a message with these parameters is.
pub(super) fn size_of(parameters: Option<&Parameters>) -> usize {
    HEAD + parameters.into_iter().flatten().map(|parameter| bytes_of(&parameter.tensor)).sum::<usize>()
}

pub(super) fn encode(version: u64, exploration: &Exploration, parameters: Option<&Parameters>) -> Result<Vec<u8>> {
    let mut out = vec![0; size_of(parameters)];
    let how = [exploration.epsilon_value(), exploration.temperature(), exploration.exit_bias(), exploration.noise()];
    let head = version.to_le_bytes().into_iter().chain(how.into_iter().flat_map(f64::to_le_bytes));
    out.iter_mut().zip(head).for_each(|(to, byte)| *to = byte);
    let mut rest = &mut out[HEAD..];
    for parameter in parameters.into_iter().flatten() {
        let host = parameter.tensor.detach().f_to_device(Device::Cpu)?.f_contiguous()?;
        let (own, behind) = rest.split_at_mut(bytes_of(&host));
        host.f_copy_data_u8(own, host.numel())?;
        rest = behind;
    }
    Ok(out)
}

/// Takes over the parameters of a message; says of which step they are and how it explores.
pub(super) fn load(body: &[u8], parameters: Option<&Parameters>) -> std::result::Result<(u64, Exploration), Broken> {
    if body.len() != size_of(parameters) {
        return Err(Broken::Garbage(format!("parameters of {} bytes, these have {}", body.len(), size_of(parameters))));
    }
    let mut fields = Fields(body);
    let (version, epsilon, temperature) = (fields.u64()?, fields.f64()?, fields.f64()?);
    let (exit_bias, noise) = (fields.f64()?, fields.f64()?);
    let exploration = Exploration::epsilon(epsilon)
        .and_then(|how| how.with_temperature(temperature)?.with_exit_bias(exit_bias)?.with_noise(noise));
    let exploration = exploration.map_err(|error| Broken::Garbage(error.to_string()))?;
    for parameter in parameters.into_iter().flatten() {
        let own = fields.take(bytes_of(&parameter.tensor))?;
        let refuse = |error: tch::TchError| Broken::Garbage(error.to_string());
        let value = Tensor::f_from_data_size(own, &parameter.tensor.size(), parameter.tensor.kind()).map_err(refuse)?;
        let finite = value.f_isfinite().and_then(|finite| finite.f_all()).and_then(|all| all.f_int64_value(&[]));
        if finite.map_err(refuse)? == 0 {
            return Err(Broken::Garbage(format!("parameter `{}` isn't finite", parameter.name)));
        }
        // Into the tensor itself: whoever keeps something computed from it looks at its version.
        no_grad(|| parameter.tensor.shallow_clone().copy_(&value));
    }
    fields.end().map(|()| (version, exploration))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Kind;

    fn model(width: i64, value: f64) -> Parameters {
        let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
        let mut rng = Rng::seeded(0);
        let mut scope = parameters.scope(&mut rng);
        let _ = (scope.constant("a", &[2, width], value), scope.constant("b", &[], -value));
        parameters
    }

    #[test]
    fn parameters_come_out_as_they_went_in() {
        let (learner, actor) = (model(3, 1.5), model(3, 0.0));
        let how = Exploration::epsilon(0.25).unwrap().with_temperature(2.0).unwrap();
        let body = encode(9, &how, Some(&learner)).unwrap();
        let before = actor.version();
        assert_eq!(load(&body, Some(&actor)).unwrap(), (9, how));
        assert!(learner.iter().zip(actor.iter()).all(|(a, b)| a.tensor == b.tensor) && actor.version() > before);
        assert_eq!(model_of(Some(&learner)), model_of(Some(&actor)));
        assert_ne!(model_of(Some(&learner)), model_of(Some(&model(4, 1.5))));
        assert_ne!(model_of(Some(&learner)), model_of(None));
    }

    #[test]
    fn parameters_of_another_model_and_what_is_not_finite_are_refused() {
        let body = encode(9, &Exploration::none(), Some(&model(3, 1.5))).unwrap();
        assert!(load(&body, Some(&model(4, 0.0))).is_err() && load(&body[..39], Some(&model(3, 0.0))).is_err());
        let infinite = encode(9, &Exploration::none(), Some(&model(3, f64::INFINITY))).unwrap();
        assert!(load(&infinite, Some(&model(3, 0.0))).is_err());
        let mut odd = body;
        odd[8..16].copy_from_slice(&7.0f64.to_le_bytes());
        assert!(load(&odd, Some(&model(3, 0.0))).is_err(), "an epsilon of 7");
    }
}
