//! Tests of target densities: comparison with golden densities and gradients, with finite differences and
//! with quadrature, and typed errors.
use std::sync::Arc;

use gfn::env::{Reals, Reward, Rows};
use gfn::{Error, Rng};
use gfn_gym::diffusion::{
    CoxProcess, DiffusionPolicy, DiffusionPolicyConfig, DiffusionSampling, DiffusionStates, Energy,
    FromTensors, Funnel, ManyWell, Mixture, Posterior, Process, ProcessKind, Target,
};
use serde_json::Value;
use tch::{Device, Kind, Tensor};

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

#[test]
fn densities_and_gradients_are_those_of_the_golden_file() {
    let golden: Value = serde_json::from_str(include_str!("golden/diffusion.json")).unwrap();
    let mut checked = 0;
    for case in golden["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == "target") {
        let dim = case["dim"].as_u64().unwrap() as usize;
        let target: Box<dyn Target> = match case["target"].as_str().unwrap() {
            "gmm25_prior" => Box::new(Mixture::twenty_five_modes()),
            "gmm25_posterior9" => Box::new(Posterior::nine_of_twenty_five()),
            "funnel_std1.0" => Box::new(Funnel::new(dim, 1.0).unwrap()),
            "funnel_std3.0" => Box::new(Funnel::new(dim, 3.0).unwrap()),
            "many_well" => Box::new(ManyWell::new(dim).unwrap()),
            other => panic!("{other}"),
        };
        let points: Vec<f64> = case["points"].as_array().unwrap().iter().flat_map(numbers).collect();
        let points = Reals::from_flat(dim, points).unwrap();
        let near = |got: &[f64], expected: &[f64]| {
            assert_eq!(got.len(), expected.len());
            for (got, expected) in got.iter().zip(expected) {
                assert!(
                    (got - expected).abs() < 1e-9 * (1.0 + expected.abs()),
                    "{got} for {expected}: {}",
                    case["target"]
                );
            }
        };
        near(&target.log_density(&points).unwrap(), &numbers(&case["log_density"]));
        let gradients: Vec<f64> = case["grad"].as_array().unwrap().iter().flat_map(numbers).collect();
        near(target.gradient(&points).unwrap().values(), &gradients);
        match (target.log_z(), case["true_log_Z"].as_f64()) {
            (Some(got), Some(expected)) => assert!((got - expected).abs() < 1e-9, "{got} for {expected}"),
            (got, expected) => assert_eq!(got, expected),
        }
        checked += points.len();
    }
    assert!(checked > 50);
}

/// Returns a target defined by a closure, so that autograd computes its gradient.
fn quartic() -> FromTensors {
    let density = |x: &Tensor| {
        Ok(-(x.pow_tensor_scalar(4) - x.square() * 3.0).sum_dim_intlist([1i64].as_slice(), false, x.kind()))
    };
    FromTensors::new(3, Kind::Double, Device::Cpu, density).unwrap()
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let mut rng = Rng::seeded(0);
    let means = Reals::from_rows([[0.5, -1.0], [2.0, 1.0], [0.0, 3.0]]);
    let sds = Reals::from_rows([[0.5, 2.0], [1.0, 1.5], [3.0, 0.7]]);
    let targets: Vec<Box<dyn Target>> = vec![
        Box::new(Mixture::new(&[1.0, 2.0, 0.5], means, sds).unwrap()),
        Box::new(Mixture::two_modes()),
        Box::new(Mixture::forty_modes(1)),
        Box::new(Posterior::nine_of_twenty_five()),
        Box::new(Funnel::new(10, 1.0).unwrap()),
        Box::new(ManyWell::new(6).unwrap()),
        Box::new(CoxProcess::generated(4, &mut rng).unwrap()),
        Box::new(quartic()),
    ];
    for target in &targets {
        let dim = target.dim();
        let points = Reals::from_flat(dim, (0..5 * dim).map(|_| 1.5 * rng.normal()).collect()).unwrap();
        let gradient = target.gradient(&points).unwrap();
        let h = 1e-5;
        for k in 0..points.values().len() {
            let moved = |by: f64| {
                let mut points = points.clone();
                points.values_mut()[k] += by;
                target.log_density(&points).unwrap()[k / dim]
            };
            let slope = (moved(h) - moved(-h)) / (2.0 * h);
            let got = gradient.values()[k];
            assert!(
                (slope - got).abs() < 1e-5 * (1.0 + got.abs()),
                "coordinate {k}: {got}, by differences {slope}"
            );
        }
    }
}

/// Compares log Z of targets in the plane with the integral of the density, computed by the trapezoid rule.
#[test]
fn normalisers_are_those_of_quadrature() {
    let integral = |target: &dyn Target, reach: f64, n: usize| {
        let step = 2.0 * reach / n as f64;
        let at = |k: usize| -reach + step * k as f64;
        let points = Reals::from_rows((0..=n).flat_map(|i| (0..=n).map(move |j| [at(i), at(j)])));
        target.log_density(&points).unwrap().iter().map(|d| d.exp()).sum::<f64>() * step * step
    };
    for (target, reach, n) in [
        (Box::new(Mixture::two_modes()) as Box<dyn Target>, 14.0, 300),
        (Box::new(Mixture::twenty_five_modes()), 16.0, 300),
        (Box::new(Mixture::forty_modes(3)), 55.0, 400),
        (Box::new(ManyWell::new(2).unwrap()), 9.0, 400),
    ] {
        let got = integral(target.as_ref(), reach, n).ln();
        let expected = target.log_z().unwrap();
        assert!((got - expected).abs() < 1e-6, "{got} for {expected}");
    }
}

/// Compares means and variances of exact samples with those from quadrature or closed forms.
#[test]
fn exact_samples_have_the_moments_of_their_target() {
    let n = 40_000;
    let moments = |target: &dyn Target, of: &dyn Fn(&[f64]) -> f64| {
        let samples = target.sample(n, &mut Rng::seeded(5)).unwrap();
        samples.rows().map(of).sum::<f64>() / n as f64
    };
    let funnel = Funnel::new(10, 1.0).unwrap();
    assert!((moments(&funnel, &|x| x[0] * x[0]) - 1.0).abs() < 0.03);
    // All coordinates of the funnel except x_0 have the variance E[exp(x_0)] = exp(1/2).
    assert!((moments(&funnel, &|x| x[4] * x[4]) - 0.5f64.exp()).abs() < 0.1);
    let two = Mixture::two_modes();
    assert!((moments(&two, &|x| x[0]) - 4.0 * 0.3).abs() < 0.06);
    assert!((moments(&two, &|x| x[1] * x[1]) - 17.0).abs() < 0.2);
    let well = |of: &dyn Fn(f64) -> f64| {
        let mut sum = 0.0;
        let mut total = 0.0;
        for k in -50_000..=50_000 {
            let a = f64::from(k) * 1e-4;
            let density = (-a.powi(4) + 6.0 * a * a + 0.5 * a).exp();
            sum += of(a) * density;
            total += density;
        }
        sum / total
    };
    let wells = ManyWell::new(4).unwrap();
    assert!((moments(&wells, &|x| x[2]) - well(&|a| a)).abs() < 0.03);
    assert!((moments(&wells, &|x| x[0] * x[0]) - well(&|a| a * a)).abs() < 0.03);
    assert!((moments(&wells, &|x| x[3] * x[3]) - 1.0).abs() < 0.03);
}

#[test]
fn cox_process_has_its_formula() {
    let target = CoxProcess::generated(3, &mut Rng::seeded(2)).unwrap();
    assert!(target.counts().iter().all(|&y| y >= 0.0 && y.fract() == 0.0));
    // The expected density of the Cox process is computed independently, with a linear solve instead of the
    // inverse of the covariance matrix.
    let n = 9;
    let mean = 126f64.ln() - 0.5 * 1.91;
    let at = |cell: usize| ((cell % 3) as f64, (cell / 3) as f64);
    let covariance: Vec<f64> = (0..n * n)
        .map(|k| {
            let ((a, b), (c, d)) = (at(k / n), at(k % n));
            1.91 * (-(a - c).hypot(b - d) * 33.0 / 3.0).exp()
        })
        .collect();
    let covariance = Tensor::from_slice(&covariance).view([9, 9]);
    let x: Vec<f64> = (0..n).map(|k| 4.0 + 0.1 * k as f64).collect();
    let away = Tensor::from_slice(&x) - mean;
    let solved = covariance.inverse().matmul(&away.unsqueeze(1)).squeeze_dim(1);
    let quadratic = (away * solved).sum(Kind::Double).double_value(&[]);
    let log_det = covariance.det().log().double_value(&[]);
    let seen: f64 = x.iter().zip(target.counts()).map(|(x, y)| y * x - x.exp() / 9.0).sum();
    let expected = -0.5 * (quadratic + log_det + 9.0 * std::f64::consts::TAU.ln()) + seen;
    let got = target.log_density(&Reals::from_flat(9, x).unwrap()).unwrap()[0];
    assert!((got - expected).abs() < 1e-9, "{got} for {expected}");
}

#[test]
fn senseless_targets_and_settings_are_refused() {
    let process = |sigma, steps| Process::new(ProcessKind::PinnedBrownian, sigma, steps);
    for (error, words) in [
        (process(0.0, 5).unwrap_err(), ["sigma", "0"]),
        (process(-1.5, 5).unwrap_err(), ["sigma", "-1.5"]),
        (process(f64::NAN, 5).unwrap_err(), ["sigma", "NaN"]),
        (process(1.0, 0).unwrap_err(), ["number of steps", "0"]),
        (Process::new(ProcessKind::OrnsteinUhlenbeck { rate: -2.0 }, 1.0, 5).unwrap_err(), ["rate", "-2"]),
        (
            Process::new(ProcessKind::VariancePreserving { beta_min: 0.5, beta_max: 1.5 }, 1.0, 5)
                .unwrap_err(),
            ["betas", "1.5"],
        ),
        (ManyWell::new(5).unwrap_err(), ["many wells", "5"]),
        (Funnel::new(1, 1.0).unwrap_err(), ["funnel", "1"]),
        (Mixture::gaussian(vec![0.0], 0.0).unwrap_err(), ["positive", "0"]),
        (DiffusionSampling::new(0, process(1.0, 5).unwrap()).unwrap_err(), ["dimension", "0"]),
    ] {
        let message = error.to_string();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
}

#[test]
fn a_density_that_is_not_finite_is_named_with_its_point() {
    let bad = |value: f64| {
        let density = move |x: &Tensor| {
            let first = x.select(1, 0);
            Ok(first.where_self(&first.lt(2.0), &first.full_like(value)))
        };
        Energy::new(Arc::new(FromTensors::new(2, Kind::Double, Device::Cpu, density).unwrap()))
    };
    let states = DiffusionStates::at(Reals::from_rows([[0.0, 1.0], [2.5, -7.25]]), 4);
    for (value, name) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")] {
        let message = bad(value).log_reward(&states, None).unwrap_err().to_string();
        assert!(message.contains(&format!("{name} at row 1, point [2.5, -7.25]")), "{message}");
    }
}

#[test]
fn a_script_of_another_dimension_is_refused() {
    let folder = std::env::temp_dir().join(format!("gfn-script-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("target.pt");
    // The script computes log N(x; 1, I) up to a constant. The script multiplies by a 3 x 3 matrix, so that
    // points of two coordinates cause an error.
    let mut shift = |inputs: &[Tensor]| {
        let weight = Tensor::ones([3, 3], (Kind::Double, Device::Cpu)).tril(0).triu(0);
        vec![
            (inputs[0].matmul(&weight) - 1.0).square().sum_dim_intlist(
                [1i64].as_slice(),
                false,
                Kind::Double,
            ) * -0.5,
        ]
    };
    let inputs = [Tensor::zeros([2, 3], (Kind::Double, Device::Cpu))];
    let module = tch::CModule::create_by_tracing("Target", "forward", &inputs, &mut shift).unwrap();
    module.save(&path).unwrap();
    let target = FromTensors::load(&path, 3, Kind::Double, Device::Cpu).unwrap();
    let points = Reals::from_rows([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]);
    assert_eq!(target.log_density(&points).unwrap(), [-2.5, -1.5, 0.0]);
    assert_eq!(target.gradient(&points).unwrap().row(0), [0.0, -1.0, -2.0]);
    let message = FromTensors::load(&path, 2, Kind::Double, Device::Cpu).unwrap_err().to_string();
    assert!(message.contains('2') && message.contains('3'), "{message}");
    std::fs::write(folder.join("other.pt"), "no script").unwrap();
    for name in ["none.pt", "other.pt"] {
        let error = FromTensors::load(&folder.join(name), 3, Kind::Double, Device::Cpu).unwrap_err();
        assert!(matches!(error, Error::File { .. }), "{error}");
        assert!(error.to_string().contains(name) && error.to_string().lines().count() == 1, "{error}");
    }
    // A target of three coordinates must be refused in an environment of two coordinates.
    let env = DiffusionSampling::new(2, Process::new(ProcessKind::PinnedBrownian, 1.0, 4).unwrap()).unwrap();
    let config = DiffusionPolicyConfig { langevin_clip: Some(1e2), ..DiffusionPolicyConfig::default() };
    let error = DiffusionPolicy::new(
        &env,
        config,
        Some(Arc::new(target)),
        Device::Cpu,
        Kind::Float,
        &mut Rng::seeded(0),
    );
    let message = error.unwrap_err().to_string();
    assert!(message.contains("dimension") && message.contains('3') && message.contains('2'), "{message}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Checks that a script saved in training mode is run in evaluation mode.
#[test]
fn a_script_is_put_into_evaluation_mode() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/training_mode.pt");
    // In training mode, in which it was saved, the script returns minus the sum of the coordinates; this is
    // the negative control. In evaluation mode the script returns the sum.
    let points = Tensor::from_slice(&[1.0, 2.0]).view([1, 2]);
    let saved = tch::CModule::load(&path).unwrap().forward_ts(&[points]).unwrap();
    assert_eq!(saved.double_value(&[0]), -3.0);
    let target = FromTensors::load(&path, 2, Kind::Double, Device::Cpu).unwrap();
    assert_eq!(target.log_density(&Reals::from_rows([[1.0, 2.0]])).unwrap(), [3.0]);
}
