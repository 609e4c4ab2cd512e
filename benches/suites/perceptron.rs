//! Benchmarks of the layers of a perceptron at the batch sizes of a roll-out. Layers are computed by the
//! library's own code on the host, and by libtorch without gradients.

use criterion::{BenchmarkId, Criterion};
use gfn::Rng;
use gfn::nn::{HostMlp, Mlp, MlpConfig, Parameters};
use tch::{Device, Kind, Tensor};

use super::{elements, group};

/// Measures two linear layers, from width 256 to 256 and from 256 to 9. These layers follow the first layer
/// of the network for a hyper-grid.
pub(crate) fn bench(criterion: &mut Criterion) {
    const WIDTH: usize = 256;
    let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
    let config = MlpConfig { hidden: vec![WIDTH as i64], ..MlpConfig::default() };
    let mlp = Mlp::new(&mut parameters.scope(&mut Rng::seeded(0)), WIDTH as i64, 9, &config);
    let params = parameters.count();
    let mut group = group(criterion, "perceptron");
    group.bench_function(format!("copied/{params}_params"), |bencher| bencher.iter(|| HostMlp::new(&mlp)));
    let frozen = HostMlp::new(&mlp).expect("a perceptron on the host");
    for rows in [1, 9, 16, 64, 256] {
        elements(&mut group, rows);
        let x = vec![0.5f32; rows * WIDTH];
        let tensor = Tensor::from_slice(&x).view([rows as i64, WIDTH as i64]);
        let id = BenchmarkId::new(format!("host/{params}_params"), rows);
        group.bench_function(id, |bencher| bencher.iter(|| frozen.forward(&x, rows)));
        let id = BenchmarkId::new(format!("libtorch/{params}_params"), rows);
        group.bench_function(id, |bencher| bencher.iter(|| tch::no_grad(|| mlp.forward(&tensor))));
    }
    group.finish();
}
