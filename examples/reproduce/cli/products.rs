//! The floor under an iteration: how long its matrix products take on their own.

use std::time::Instant;

use gfn::Rng;
use gfn::env::{Direction, DiscreteEnv, Rows, VectorStates};
use gfn::nn::{BackwardPolicy, HostMlp, Mlp, MlpConfig, Parameters};
use gfn::policy::MlpPolicyConfig;
use gfn::rollout::Trajectories;
use tch::{Device, Kind, Tensor};

/// The median time of a product of ones, warm, in seconds.
pub(crate) fn time_of(a: &[i64], b: &[i64], device: Device) -> f64 {
    let (a, b) = (Tensor::ones(a, (Kind::Float, device)), Tensor::ones(b, (Kind::Float, device)));
    median(|| {
        let _ = a.matmul(&b);
    })
}

fn median(mut run: impl FnMut()) -> f64 {
    let mut seconds: Vec<f64> = (0..7)
        .map(|_| {
            let started = Instant::now();
            run();
            started.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// The median time of a perceptron's layers on the host, as a roll-out asks them; `None` for one that it asks libtorch for.
fn time_on_host(rows: usize, dims: &[i64]) -> Option<f64> {
    let config = MlpConfig { hidden: dims[1..dims.len() - 1].to_vec(), ..MlpConfig::default() };
    let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
    let mlp = Mlp::new(&mut parameters.scope(&mut Rng::seeded(0)), dims[0], dims[dims.len() - 1], &config);
    let frozen = HostMlp::new(&mlp)?;
    Some(median(|| {
        let _ = frozen.forward(vec![1.0; rows * dims[0] as usize], rows);
    }))
}

/// Seconds that the products of one iteration of a perceptron take: forward at each level of the roll-out, then forward and
/// backward (two products) on all visited states, each distinct state once. The first layer sums columns: no product.
pub(crate) fn of_iteration<E: DiscreteEnv<States = VectorStates>>(
    env: &E,
    trajectories: &Trajectories<E>,
    network: &MlpPolicyConfig,
    device: Device,
) -> f64 {
    let width = |direction| env.masks(direction, &env.initial(&[0])).row(0).len() as i64;
    let (pf, pb) = (width(Direction::Forward), width(Direction::Backward));
    let shared = network.backward == BackwardPolicy::SharedTorso;
    let outputs = pf + if shared { pb } else { 0 } + i64::from(network.estimators.flow) + i64::from(network.paths);
    let dims = |outputs| [network.mlp.hidden.as_slice(), &[outputs]].concat();
    let pass = |rows: usize, outputs: i64, times: usize| {
        let dims = dims(outputs);
        let products = dims.windows(2).map(|d| time_of(&[rows as i64, d[0]], &[d[0], d[1]], device));
        products.sum::<f64>() * times as f64
    };
    let distinct = |rows: &[usize]| trajectories.states().select(rows).group().first.len();
    let ends: Vec<_> = trajectories.offsets().windows(2).map(|ends| ends[0]..ends[1]).collect();
    let longest = ends.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
    let levels = (0..longest).map(|level| {
        let rows: Vec<usize> = ends.iter().filter(|rows| rows.len() > level).map(|rows| rows.start + level).collect();
        let rows = distinct(&rows);
        let on_host = if device == Device::Cpu && dims(pf).len() > 1 { time_on_host(rows, &dims(pf)) } else { None };
        on_host.unwrap_or_else(|| pass(rows, pf, 1))
    });
    let all: Vec<usize> = (0..trajectories.n_transitions()).collect();
    let mut seconds = levels.sum::<f64>() + pass(distinct(&all), outputs, 3);
    if network.backward == BackwardPolicy::Separate {
        seconds += pass(distinct(&all), pb, 3);
    }
    seconds
}
