//! Tests of updates in blocks of memory: they must equal the formulas for each parameter, whatever happens to
//! parameters and gradients between the updates.

use tch::{Device, Kind, Tensor, no_grad};

use super::{Adam, AdamConfig, Average, Optimizer, Sgd, SgdConfig};
use crate::Rng;
use crate::nn::{Group, ParameterBackup, Parameters};
use crate::tensor::{flat, to_host};

const SHAPES: [&[i64]; 6] = [&[3, 2], &[17], &[1], &[2, 2, 2], &[1], &[5]];
const N: usize = SHAPES.len();

/// Parameters of both groups: the last two belong to log Z.
fn model(kind: Kind) -> Parameters {
    let mut parameters = Parameters::new(Device::Cpu, kind);
    let mut rng = Rng::seeded(1);
    for (i, shape) in SHAPES.iter().enumerate() {
        let group = if i < N - 2 { Group::Network } else { Group::LogZ };
        let mut scope = parameters.scope(&mut rng);
        let _ = scope.group(group).normal(&format!("p{i}"), shape, 1.0);
    }
    parameters
}

fn tensors(parameters: &Parameters, group: Group) -> Vec<Tensor> {
    let members = parameters.iter().filter(|parameter| parameter.group == group);
    members.map(|parameter| parameter.tensor.shallow_clone()).collect()
}

fn gradients(parameters: &Parameters, group: Group) -> Vec<Tensor> {
    tensors(parameters, group).iter().map(Tensor::grad).collect()
}

/// Sets the gradient of each parameter that has one.
fn backward(parameters: &Parameters, gradients: &[Option<Vec<f64>>]) {
    let term = |(parameter, gradient): (&crate::nn::Parameter, &Option<Vec<f64>>)| {
        let factors = Tensor::from_slice(gradient.as_ref()?).to_kind(parameters.kind());
        let tensor = &parameter.tensor;
        tensor.requires_grad().then(|| (tensor.view(-1) * factors).sum(parameters.kind()))
    };
    let terms = parameters.iter().zip(gradients).filter_map(term);
    terms.reduce(|sum, term| sum + term).unwrap().backward();
}

/// The gradients of a step, which the parameter 1 never has before step 20 and the parameter 3 only has in
/// every third step. Some are so large that they are clipped.
fn draw(step: usize, rng: &mut Rng) -> Vec<Option<Vec<f64>>> {
    let gradient = |(i, shape): (usize, &&[i64])| {
        let n = shape.iter().product::<i64>() as usize;
        let values: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        let is_missing = (i == 1 && step < 20) || (i == 3 && !step.is_multiple_of(3));
        (!is_missing).then_some(values)
    };
    SHAPES.iter().enumerate().map(gradient).collect()
}

/// The steps in which parameter 2 is frozen.
fn is_frozen(step: usize, i: usize) -> bool {
    i == 2 && (80..120).contains(&step)
}

/// Returns the values after 200 steps by an optimizer, between which gradients are replaced, parameters are
/// frozen, and the state is saved and loaded.
fn trained(kind: Kind, build: impl Fn(&Parameters) -> Box<dyn Optimizer>) -> Vec<f64> {
    let parameters = model(kind);
    let mut optimizer = build(&parameters);
    let mut rng = Rng::seeded(2);
    for step in 0..200 {
        for (i, parameter) in parameters.iter().enumerate() {
            let _ = parameter.tensor.set_requires_grad(!is_frozen(step, i));
        }
        if step % 7 == 6 {
            // A user replaces a gradient by zeros in other memory.
            let mut gradient = parameters.iter().next().unwrap().tensor.grad();
            gradient.set_data(&gradient.zeros_like());
        }
        if step == 50 {
            parameters.clear_gradients();
        }
        backward(&parameters, &draw(step, &mut rng));
        optimizer.step().unwrap();
        if step == 130 {
            let state = optimizer.state().unwrap();
            optimizer = build(&parameters);
            optimizer.load_state(&state).unwrap();
        }
    }
    parameters.iter().flat_map(|parameter| to_host(&parameter.tensor)).collect()
}

/// Returns the values after the steps of [`trained`], number by number. `update` receives a number, its two
/// moments, the gradient, the number of updates and `true` for a parameter of the network.
fn expected(max_norm: f64, update: impl Fn(&mut f64, &mut [f64; 2], f64, i32, bool)) -> Vec<f64> {
    let mut values: Vec<Vec<f64>> = model(Kind::Double).iter().map(|p| to_host(&p.tensor)).collect();
    let mut moments: Vec<Vec<[f64; 2]>> = values.iter().map(|values| vec![[0.0; 2]; values.len()]).collect();
    let mut updates = [0; N];
    let mut rng = Rng::seeded(2);
    for step in 0..200 {
        let mut drawn = draw(step, &mut rng);
        drawn
            .iter_mut()
            .enumerate()
            .filter(|(i, _)| is_frozen(step, *i))
            .for_each(|(_, gradient)| *gradient = None);
        let norm = drawn.iter().flatten().flatten().map(|g| g * g).sum::<f64>().sqrt();
        let clip = (max_norm / norm).min(1.0);
        for i in 0..N {
            if (drawn[i].is_none() && updates[i] == 0) || is_frozen(step, i) {
                continue;
            }
            updates[i] += 1;
            for k in 0..values[i].len() {
                let gradient = clip * drawn[i].as_ref().map_or(0.0, |gradient| gradient[k]);
                update(&mut values[i][k], &mut moments[i][k], gradient, updates[i], i < N - 2);
            }
        }
    }
    values.concat()
}

fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn adam_in_blocks_equals_the_formula() {
    let config = AdamConfig { lr: 0.01, weight_decay: 0.1, max_norm: Some(6.0), ..AdamConfig::default() };
    let expected = expected(6.0, |p, [m, v], g, t, is_network| {
        let (lr, decay) = if is_network { (config.lr, config.weight_decay) } else { (config.log_z_lr, 0.0) };
        *m = config.beta1 * *m + (1.0 - config.beta1) * g;
        *v = config.beta2 * *v + (1.0 - config.beta2) * g * g;
        let mean = *m / (1.0 - config.beta1.powi(t));
        let root = (*v / (1.0 - config.beta2.powi(t))).sqrt();
        *p = (1.0 - lr * decay) * *p - lr * mean / (root + config.eps);
    });
    let build =
        |parameters: &Parameters| -> Box<dyn Optimizer> { Box::new(Adam::new(parameters, config).unwrap()) };
    let in_blocks = largest_difference(&trained(Kind::Double, build), &expected);
    assert!(in_blocks < 1e-12, "{in_blocks}");
    let by_slices = largest_difference(&trained(Kind::Float, build), &expected);
    assert!(by_slices < 1e-5, "{by_slices}");
    let other = AdamConfig { weight_decay: 0.09, ..config };
    let other = trained(Kind::Double, |parameters| Box::new(Adam::new(parameters, other).unwrap()));
    assert!(largest_difference(&other, &expected) > 1e-3, "other settings must be told apart");
}

#[test]
fn sgd_in_blocks_equals_the_formula() {
    let config = SgdConfig { lr: 0.01, max_norm: Some(6.0), ..SgdConfig::default() };
    let expected = expected(6.0, |p, [velocity, _], g, _, is_network| {
        *velocity = config.momentum * *velocity + g;
        *p -= if is_network { config.lr } else { config.log_z_lr } * *velocity;
    });
    let build =
        |parameters: &Parameters| -> Box<dyn Optimizer> { Box::new(Sgd::new(parameters, config).unwrap()) };
    assert!(largest_difference(&trained(Kind::Double, build), &expected) < 1e-12);
}

#[test]
fn parameters_and_gradients_stay_in_one_block() {
    let parameters = model(Kind::Double);
    let handle = parameters.iter().next().unwrap().tensor.shallow_clone();
    let mut average = Average::new(&parameters, 0.0).unwrap();
    let mut adam = Adam::new(&parameters, AdamConfig::default()).unwrap();
    let full = |shape: &&[i64]| Some(vec![1.0; shape.iter().product::<i64>() as usize]);
    let ones: Vec<_> = SHAPES.iter().map(full).collect();
    backward(&parameters, &ones);
    assert!(flat::view(&tensors(&parameters, Group::Network)).is_none());
    adam.step().unwrap();
    let addresses = |group| {
        let block = |tensors: Vec<Tensor>| flat::view(&tensors).map(|block| block.data_ptr() as usize);
        [block(tensors(&parameters, group)), block(gradients(&parameters, group))]
    };
    let before = addresses(Group::Network);
    assert!(before.iter().all(Option::is_some));
    for _ in 0..2 {
        let versions: Vec<u64> = parameters.iter().map(|p| p.tensor.internal_version() as u64).collect();
        let loss =
            parameters.iter().map(|p| p.tensor.square().sum(Kind::Double)).reduce(|a, b| a + b).unwrap();
        backward(&parameters, &ones);
        let gradient = flat::view(&gradients(&parameters, Group::Network)).unwrap();
        assert_eq!(gradient.sum(Kind::Double).double_value(&[]), 32.0, "autograd adds to the block");
        adam.step().unwrap();
        assert_eq!(addresses(Group::Network), before);
        assert_eq!(gradient.abs().sum(Kind::Double).double_value(&[]), 0.0, "gradients are cleared");
        let raised = parameters.iter().zip(versions).all(|(p, old)| p.tensor.internal_version() as u64 > old);
        assert!(raised && loss.f_backward().is_err(), "an old loss isn't differentiated");
    }
    backward(&parameters, &ones);
    parameters.clear_gradients();
    assert_eq!(handle.grad(), handle.zeros_like());

    // Other holders of the tensors see the same values as before the move.
    assert_eq!(handle.data_ptr(), tensors(&parameters, Group::Network)[0].data_ptr());
    assert_eq!(
        parameters.share(|p| p.name == "p0").iter().next().unwrap().tensor.data_ptr(),
        handle.data_ptr()
    );
    let now = handle.detach().copy();
    let backup = ParameterBackup::keep(parameters.iter().map(|p| &p.tensor));
    let start = average.with(&parameters, || handle.detach().copy()).unwrap();
    assert_eq!(start, model(Kind::Double).iter().next().unwrap().tensor);
    assert_eq!(handle.detach(), now);
    no_grad(|| drop(handle.shallow_clone().fill_(0.0)));
    drop(backup);
    assert_eq!(handle.detach(), now);
    average.update(&parameters).unwrap();
    assert_eq!(average.with(&parameters, || handle.detach().copy()).unwrap(), now);
}

#[test]
fn a_bad_gradient_in_a_block_is_named_and_changes_nothing() {
    let parameters = model(Kind::Double);
    let mut adam = Adam::new(&parameters, AdamConfig::default()).unwrap();
    for wrong in [f64::NAN, f64::INFINITY] {
        let mut rng = Rng::seeded(3);
        backward(&parameters, &draw(30, &mut rng));
        adam.step().unwrap();
        let before: Vec<f64> = parameters.iter().flat_map(|p| to_host(&p.tensor)).collect();
        let state = adam.state().unwrap();
        let mut gradients = draw(30, &mut rng);
        gradients[1].as_mut().unwrap()[16] = wrong;
        backward(&parameters, &gradients);
        let error = adam.step().unwrap_err().to_string();
        assert!(error.contains("`p1`"), "{error}");
        assert_eq!(parameters.iter().flat_map(|p| to_host(&p.tensor)).collect::<Vec<_>>(), before);
        assert_eq!(adam.state().unwrap(), state);
        let cleared =
            parameters.iter().all(|p| p.tensor.grad().abs().sum(Kind::Double).double_value(&[]) == 0.0);
        assert!(cleared);
    }
}
