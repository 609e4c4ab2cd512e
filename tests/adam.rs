//! Adam is compared with its formula in f64 and with libtorch's Adam. Its treatment of invalid gradients is
//! tested, too.

use gfn::nn::{Group, Parameter, Parameters};
use gfn::optim::{Adam, AdamConfig, Optimizer};
use gfn::{Error, Rng};
use tch::{Device, Kind, Tensor, nn::OptimizerConfig};

fn values(parameters: &Parameters) -> Vec<f64> {
    let flat = parameters.iter().map(|p| p.tensor.detach().reshape([-1]));
    flat.flat_map(|t| Vec::<f64>::try_from(t.to_kind(Kind::Double)).unwrap()).collect()
}

fn model(kind: Kind) -> Parameters {
    let mut parameters = Parameters::new(Device::Cpu, kind);
    let mut rng = Rng::seeded(5);
    let mut scope = parameters.scope(&mut rng);
    let _ = scope.uniform("w", &[7, 3], 1.0);
    let _ = scope.uniform("b", &[3], 1.0);
    let _ = scope.group(Group::LogZ).constant("log_z", &[], 2.0);
    parameters
}

/// Computes the gradients of a loss whose minimum is different in each call.
fn backward(parameters: &Parameters, rng: &mut Rng) {
    let shift = rng.normal();
    for p in parameters {
        let loss = (&p.tensor - shift).pow_tensor_scalar(4);
        loss.sum(p.tensor.kind()).backward();
    }
}

/// Computes Adam's published formula in f64, one scalar at a time.
fn reference(steps: i32, config: &AdamConfig) -> (Vec<f64>, Vec<f64>) {
    let mut rng = Rng::seeded(9);
    let mut p = values(&model(Kind::Double));
    let n = p.len();
    let mut norms = Vec::new();
    let mut m = vec![0.0; n];
    let mut v = vec![0.0; n];
    for t in 1..=steps {
        let shift = rng.normal();
        let g: Vec<f64> = p.iter().map(|p| 4.0 * (p - shift).powi(3)).collect();
        let norm = g.iter().map(|g| g * g).sum::<f64>().sqrt();
        let clip = config.max_norm.map_or(1.0, |max| (max / norm).min(1.0));
        norms.push(norm);
        for i in 0..n {
            let (lr, decay) =
                if i == n - 1 { (config.log_z_lr, 0.0) } else { (config.lr, config.weight_decay) };
            let g = g[i] * clip;
            m[i] = config.beta1 * m[i] + (1.0 - config.beta1) * g;
            v[i] = config.beta2 * v[i] + (1.0 - config.beta2) * g * g;
            let m_hat = m[i] / (1.0 - config.beta1.powi(t));
            let v_hat = v[i] / (1.0 - config.beta2.powi(t));
            p[i] -= lr * decay * p[i];
            p[i] -= lr * m_hat / (v_hat.sqrt() + config.eps);
        }
    }
    (p, norms)
}

fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f64::max)
}

#[test]
fn fifty_steps_equal_the_formula_in_both_kinds() {
    let plain = AdamConfig { lr: 1e-2, log_z_lr: 5e-2, ..AdamConfig::default() };
    let full = AdamConfig { weight_decay: 0.1, max_norm: Some(20.0), ..plain };
    for config in [plain, full] {
        let (expected, norms) = reference(50, &config);
        for (kind, bound) in [(Kind::Float, 1e-6), (Kind::Double, 1e-12)] {
            let parameters = model(kind);
            let mut adam = Adam::new(&parameters, config).unwrap();
            let mut rng = Rng::seeded(9);
            for norm in &norms {
                backward(&parameters, &mut rng);
                let got = adam.step().unwrap().grad_norm;
                assert!((got / norm - 1.0).abs() < 1e-4, "{got} {norm}");
                let largest = |p: &Parameter| p.tensor.grad().abs().max().double_value(&[]);
                assert!(parameters.iter().all(|p| largest(p) == 0.0));
            }
            let difference = largest_difference(&values(&parameters), &expected);
            println!("{kind:?}: {difference:e}");
            assert!(difference < bound, "{kind:?}: {difference:e}");
        }
        if let Some(max) = config.max_norm {
            assert!(norms.iter().any(|&n| n > max) && norms.iter().any(|&n| n < max));
        }
    }
}

#[test]
fn fifty_steps_equal_libtorch() {
    let module = tch::nn::VarStore::new(Device::Cpu);
    let mut ours = Parameters::new(Device::Cpu, Kind::Float);
    let mut rng = Rng::seeded(1);
    let mine = ours.scope(&mut rng).normal("x", &[11, 5], 1.0);
    let mut theirs = module.root().var("x", &[11, 5], tch::nn::Init::Const(0.0));
    tch::no_grad(|| theirs.copy_(&mine));
    let config = AdamConfig { lr: 1e-2, weight_decay: 0.05, ..AdamConfig::default() };
    let mut adam = Adam::new(&ours, config).unwrap();
    let mut other = tch::nn::adamw(0.9, 0.999, 0.05).build(&module, 1e-2).unwrap();
    for _ in 0..50 {
        let shift = rng.normal();
        for x in [&mine, &theirs] {
            (x - shift).square().sum(Kind::Float).backward();
        }
        adam.step().unwrap();
        other.step();
        other.zero_grad();
    }
    let difference = (mine - theirs).abs().max().double_value(&[]);
    println!("{difference:e}");
    assert!(difference < 1e-6, "{difference:e}");
}

#[test]
fn a_gradient_that_is_not_finite_changes_nothing() {
    for kind in [Kind::Float, Kind::Double] {
        let parameters = model(kind);
        let mut adam = Adam::new(&parameters, AdamConfig::default()).unwrap();
        let mut rng = Rng::seeded(2);
        backward(&parameters, &mut rng);
        adam.step().unwrap();
        for bad in [f64::NAN, f64::NEG_INFINITY] {
            let before = (values(&parameters), adam.state().unwrap());
            backward(&parameters, &mut rng);
            let b = parameters.iter().nth(1).unwrap();
            let _ = b.tensor.grad().get(2).fill_(bad);
            match adam.step() {
                Err(Error::NonFiniteGradient { parameter, value }) => {
                    assert_eq!(parameter, "b");
                    assert!(!value.is_finite());
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(before, (values(&parameters), adam.state().unwrap()));
            assert!(parameters.iter().all(|p| p.tensor.grad().abs().max().double_value(&[]) == 0.0));
        }
        // The step after the invalid gradient must succeed, because the invalid gradient must not change
        // the optimizer's state.
        backward(&parameters, &mut rng);
        assert!(adam.step().unwrap().grad_norm.is_finite());
        assert!(values(&parameters).iter().all(|value| value.is_finite()));
    }
}

/// Makes an optimizer step. The gradient is `size` at each of the two elements of the parameter.
fn step_on(parameters: &Parameters, adam: &mut Adam, size: f64) -> gfn::Result<f64> {
    for p in parameters {
        (&p.tensor * size).sum(p.tensor.kind()).backward();
    }
    adam.step().map(|report| report.grad_norm)
}

fn two_ones(kind: Kind) -> Parameters {
    let mut parameters = Parameters::new(Device::Cpu, kind);
    let mut rng = Rng::seeded(0);
    let mut scope = parameters.scope(&mut rng);
    let _ = scope.constant("a", &[2], 1.0);
    let _ = scope.constant("b", &[2], 1.0);
    parameters
}

#[test]
fn a_gradient_whose_square_overflows_changes_nothing() {
    // `edge` is the limit of accepted gradients: its square times 1 - beta2 is the largest f32.
    let edge = (f64::from(f32::MAX) / 1e-3).sqrt();
    for (size, fits) in [(1e19, true), (0.99 * edge, true), (1.01 * edge, false), (1e30, false)] {
        let parameters = two_ones(Kind::Float);
        let mut adam = Adam::new(&parameters, AdamConfig::default()).unwrap();
        step_on(&parameters, &mut adam, 1.0).unwrap();
        let before = (values(&parameters), adam.state().unwrap());
        match step_on(&parameters, &mut adam, size) {
            Ok(_) => assert!(fits, "{size:e}"),
            Err(error @ Error::GradientOverflow { .. }) => {
                assert!(error.to_string().contains("learning rate (0.001)"), "{error}");
                let Error::GradientOverflow { parameter, largest, .. } = error else { unreachable!() };
                assert!(
                    !fits && parameter == "a" && (largest / size - 1.0).abs() < 1e-6,
                    "{size:e}: {largest:e}"
                );
                assert_eq!(before, (values(&parameters), adam.state().unwrap()));
            }
            other => panic!("{size:e}: {other:?}"),
        }
        // Later steps must still move the parameter, whether the step with the large gradient failed or not.
        let before = values(&parameters);
        for _ in 0..3 {
            step_on(&parameters, &mut adam, 1.0).unwrap();
        }
        assert!(values(&parameters).iter().zip(&before).all(|(after, before)| after < before), "{size:e}");
        adam.load_state(&adam.state().unwrap()).unwrap();
    }
    // Three further cases are tested: gradients whose squares overflow the running average only after some
    // steps, clipped gradients, and gradients in f64.
    let parameters = two_ones(Kind::Float);
    let mut adam = Adam::new(&parameters, AdamConfig { beta2: 0.5, ..AdamConfig::default() }).unwrap();
    let refused = (0..9).find(|_| step_on(&parameters, &mut adam, 1.9e19).is_err());
    assert!(refused.is_some_and(|step| step > 0), "{refused:?}");
    for (kind, max_norm, size) in
        [(Kind::Float, Some(10.0), 1e30), (Kind::Float, Some(1e-8), 1e38), (Kind::Double, None, 1e30)]
    {
        let parameters = two_ones(kind);
        let mut adam =
            Adam::new(&parameters, AdamConfig { max_norm, eps: 1e-15, ..AdamConfig::default() }).unwrap();
        step_on(&parameters, &mut adam, size).unwrap();
        assert!(values(&parameters).iter().all(|value| (value - 0.999).abs() < 1e-6), "{kind:?} {size:e}");
    }
}

#[test]
fn a_tiny_gradient_moves_no_further_than_the_learning_rate() {
    for beta2 in [0.0, 0.9, 0.999] {
        let least = (f64::from(f32::MIN_POSITIVE) / (1.0 - beta2)).sqrt();
        for size in (-40..0).map(|exponent| 10f64.powi(exponent)) {
            let parameters = two_ones(Kind::Float);
            let config = AdamConfig { beta2, eps: 1.001 * least, ..AdamConfig::default() };
            let mut adam = Adam::new(&parameters, config).unwrap();
            for step in 1..=3 {
                step_on(&parameters, &mut adam, size).unwrap();
                let moved = values(&parameters).iter().map(|value| (value - 1.0).abs()).fold(0.0, f64::max);
                assert!(moved <= 1.01e-3 * f64::from(step), "beta2 {beta2}, gradient {size:e}: {moved:e}");
            }
        }
    }
}

#[test]
fn a_loss_from_before_a_step_is_not_differentiated_after_it() {
    for kind in [Kind::Float, Kind::Double] {
        let mut parameters = Parameters::new(Device::Cpu, kind);
        let mut rng = Rng::seeded(0);
        let mut scope = parameters.scope(&mut rng);
        let losses = [scope.constant("scalar", &[], 2.0), scope.constant("matrix", &[2, 3], 2.0)];
        let cubes = || losses.iter().map(|x| x.pow_tensor_scalar(3).sum(kind)).sum::<Tensor>();
        let mut adam = Adam::new(&parameters, AdamConfig::default()).unwrap();
        let stale = [losses[0].pow_tensor_scalar(3), losses[1].pow_tensor_scalar(3).sum(kind)];
        let version = parameters.version();
        cubes().backward();
        adam.step().unwrap();
        assert!(parameters.version() > version);
        for loss in stale {
            let message = loss.f_backward().unwrap_err().to_string();
            assert!(message.contains("modified by an inplace operation"), "{message}");
        }
        // A loss that is computed after the step, from the new parameters, can be differentiated.
        cubes().f_backward().unwrap();
    }
}

#[test]
fn a_parameter_without_a_gradient_is_left_alone_until_it_has_had_one() {
    for kind in [Kind::Float, Kind::Double] {
        let mut parameters = Parameters::new(Device::Cpu, kind);
        let mut rng = Rng::seeded(0);
        let mut scope = parameters.scope(&mut rng);
        let a = scope.constant("a", &[2], 1.0);
        let b = scope.constant("b", &[2], 1.0);
        let mut adam = Adam::new(&parameters, AdamConfig::default()).unwrap();
        assert_eq!(adam.step().unwrap().grad_norm, 0.0);
        a.sum(kind).backward();
        adam.step().unwrap();
        assert!(a.double_value(&[0]) < 1.0);
        assert_eq!(b.double_value(&[0]), 1.0);
        // The gradient of this parameter is zero, but not undefined, so momentum must still move the
        // parameter. A parameter without a gradient would stay as it is.
        let before = a.double_value(&[0]);
        adam.step().unwrap();
        assert!(a.double_value(&[0]) < before);
        assert_eq!(b.double_value(&[0]), 1.0);
    }
}

#[test]
fn a_loaded_state_goes_on_bit_for_bit() {
    for kind in [Kind::Float, Kind::Double] {
        let run = |interrupt: bool| {
            let mut parameters = model(kind);
            let mut adam = Adam::new(&parameters, AdamConfig::default()).unwrap();
            let mut rng = Rng::seeded(4);
            for step in 0..20 {
                if interrupt && step == 10 {
                    let state = adam.state().unwrap();
                    let fresh = model(kind);
                    tch::no_grad(|| {
                        for (to, from) in fresh.iter().zip(&parameters) {
                            to.tensor.shallow_clone().copy_(&from.tensor);
                        }
                    });
                    parameters = fresh;
                    adam = Adam::new(&parameters, AdamConfig::default()).unwrap();
                    adam.load_state(&state).unwrap();
                }
                // In every second step the second parameter has no gradient. The first step after the
                // optimizer's state was saved and loaded is one of these steps.
                let shift = rng.normal();
                for (i, p) in parameters.iter().enumerate() {
                    if i != 1 || step % 2 == 1 {
                        (&p.tensor - shift).square().sum(kind).backward();
                    }
                }
                adam.step().unwrap();
            }
            (values(&parameters), adam.state().unwrap())
        };
        assert_eq!(run(false), run(true));
    }
}

#[test]
fn a_state_that_does_not_fit_is_refused() {
    let parameters = model(Kind::Float);
    let mut adam = Adam::new(&parameters, AdamConfig::default()).unwrap();
    backward(&parameters, &mut Rng::seeded(0));
    adam.step().unwrap();
    let good = adam.state().unwrap();
    let copy = || -> Vec<(String, Tensor)> { good.iter().map(|(n, t)| (n.clone(), t.copy())).collect() };
    let cases: [(usize, Option<Tensor>, &str); 5] = [
        (1, None, "`m/w`"),
        (1, Some(Tensor::zeros([7], (Kind::Float, Device::Cpu))), "[7]"),
        (2, Some(good[2].1.to_kind(Kind::Double)), "Double"),
        (3, Some(&good[3].1 * f64::NAN), "finite"),
        (0, Some(Tensor::from_slice(&[1i64, -1, 0])), "-1"),
    ];
    for (i, replacement, expected) in cases {
        let mut bad = copy();
        match replacement {
            Some(tensor) => bad[i].1 = tensor,
            None => drop(bad.remove(i)),
        }
        let message = adam.load_state(&bad).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
        assert_eq!(adam.state().unwrap(), good);
    }
    let mut more = copy();
    more.push(("m/other".to_owned(), Tensor::from(0f32)));
    assert!(adam.load_state(&more).is_err());
}

#[test]
fn a_sparse_gradient_is_applied_with_its_duplicates_summed() {
    let step = |sparse: bool| {
        let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
        let mut rng = Rng::seeded(0);
        let table = parameters.scope(&mut rng).normal("t", &[4, 3], 1.0);
        let mut adam = Adam::new(&parameters, AdamConfig::default()).unwrap();
        let mut norms = Vec::new();
        for _ in 0..3 {
            let classes = Tensor::from_slice(&[2i64, 0, 2]);
            let rows = Tensor::embedding(&table, &classes, -1, false, sparse);
            rows.square().sum(Kind::Float).backward();
            assert_eq!(table.grad().is_sparse(), sparse);
            norms.push(adam.step().unwrap().grad_norm);
        }
        (values(&parameters), norms)
    };
    let dense = step(false);
    let sparse = step(true);
    assert_eq!(dense.0, sparse.0);
    assert!(largest_difference(&dense.1, &sparse.1) < 1e-9);
}

#[test]
#[rustfmt::skip]
fn settings_are_checked() {
    let parameters = model(Kind::Float);
    let d = AdamConfig::default();
    for (config, setting) in [
        (AdamConfig { lr: -1.0, ..d }, "lr"),
        (AdamConfig { log_z_lr: f64::NAN, ..d }, "log_z_lr"),
        (AdamConfig { beta1: 1.0, ..d }, "beta1"),
        (AdamConfig { beta2: -0.1, ..d }, "beta2"),
        (AdamConfig { eps: 0.0, ..d }, "eps"),
        (AdamConfig { eps: 1e-30, ..d }, "eps"),
        (AdamConfig { eps: 1e-17, beta2: 0.99999, ..d }, "eps"),
        (AdamConfig { weight_decay: f64::INFINITY, ..d }, "weight_decay"),
        (AdamConfig { max_norm: Some(0.0), ..d }, "max_norm"),
    ] {
        match Adam::new(&parameters, config) {
            Err(Error::Config { setting: got, .. }) => assert_eq!(got, setting),
            other => panic!("{setting}: {other:?}"),
        }
    }
    let mut adam = Adam::new(&parameters, d).unwrap();
    assert!(adam.scale_lr(-1.0).is_err() && adam.scale_lr(f64::NAN).is_err());
    adam.scale_lr(0.0).unwrap();
    let before = values(&parameters);
    backward(&parameters, &mut Rng::seeded(0));
    adam.step().unwrap();
    assert_eq!(values(&parameters), before);
}
