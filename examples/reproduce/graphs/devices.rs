//! A comparison of a device with the CPU. The task compares the gradients of every objective, resumes a
//! checkpoint of each device on the other, and measures training steps per second.

use gfn::train::Batch;

use crate::prelude::*;

/// Compare a device with the CPU: gradients of every objective, resumed checkpoints, and speed
#[derive(Args)]
pub(crate) struct Devices {
    /// Device that is compared with the CPU: cpu, cuda or cuda:N
    #[arg(long, default_value = "cuda")]
    device: DeviceKind,
    /// Number of seconds that each measurement of speed takes
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Number of threads of rayon and of libtorch
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

type Grid = Trainer<VectorEnv>;
type Rings = Trainer<GraphEnv>;

/// A reward that also rates unfinished states, because some objectives need the rewards of such states. The
/// log-reward is a tenth of the sum of a point's coordinates, or a tenth of the number of a graph's edges.
struct Sums;

impl Reward<VectorStates> for Sums {
    fn log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        Ok(states.rows().map(|row| 0.1 * row.iter().copied().map(f64::from).sum::<f64>()).collect())
    }
    fn partial_log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        self.log_reward(states, None).map(Some)
    }
}

impl Reward<GraphStates> for Sums {
    fn log_reward(&self, states: &GraphStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        Ok(states.graphs().iter().map(|graph| 0.1 * graph.n_edges() as f64).collect())
    }
    fn partial_log_reward(&self, states: &GraphStates, _: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        self.log_reward(states, None).map(Some)
    }
}

/// The largest relative difference between the gradients on the two devices that counts as equal.
const ALLOWED: f64 = 1e-4;
/// The pairs of batch size and network width at which speed is measured.
const SPEEDS: [(usize, i64); 4] = [(16, 64), (128, 128), (1_024, 256), (4_096, 512)];

impl Task for Devices {
    fn run(&self) -> Result<()> {
        let device = Runtime::new(self.threads, self.device)?.device();
        let mut rows = Vec::new();
        let mut worst = 0.0f64;
        for objective in selections(OBJECTIVES) {
            let perceptron = gap(&mut grid(objective, Device::Cpu)?, &mut grid(objective, device)?)?;
            // Graph networks don't estimate the number of paths, so objectives that need it are skipped.
            let mut messages = None;
            if !objective.needs(Quantity::LogPaths) {
                let mut here = rings(objective, Device::Cpu, 16, 32)?;
                let mut there = rings(objective, device, 16, 32)?;
                messages = Some(gap(&mut here, &mut there)?);
            }
            worst = worst.max(perceptron).max(messages.unwrap_or_default());
            let shown = messages.map_or("-".to_owned(), |gap| format!("{gap:.1e}"));
            tell(format_args!(
                "{:<14} gradients differ by {perceptron:.1e} (perceptron), {shown} (messages)",
                objective.name
            ));
            rows.push(
                json!({ "objective": objective.words(), "perceptron": perceptron, "messages": messages }),
            );
        }
        let there = resumed(Device::Cpu, device)?;
        let back = resumed(device, Device::Cpu)?;
        tell(format_args!(
            "gradients of a resumed checkpoint differ by {there:.1e} on the device, {back:.1e} on the CPU"
        ));
        // Large batches take minutes on a CPU, so they are measured only if the compared device isn't a CPU.
        let sizes = SPEEDS.iter().filter(|(batch, _)| *batch <= 128 || device != Device::Cpu);
        let speeds =
            sizes.map(|&(batch, width)| self.speed(device, batch, width)).collect::<Result<Vec<Value>>>()?;
        if self.json {
            print(json!({ "example": "devices", "device": self.device.to_string(), "threads": self.threads,
                "gradients": rows, "worst": worst, "resumed": there, "resumed_back": back,
                "its_per_s": speeds }))?;
        }
        let worst = worst.max(there).max(back);
        if worst > ALLOWED {
            let remedy =
                format!("at most {ALLOWED:e}: check the objective above whose gradients differ most");
            return Err(Error::contract(
                "gradients on the device must equal those on the CPU",
                format!("the gradients differ by {worst:.1e}, expected {remedy}"),
            ));
        }
        Ok(())
    }
}

impl Devices {
    /// Returns the training steps per second on the CPU and on `device`.
    fn speed(&self, device: Device, batch: usize, width: i64) -> Result<Value> {
        let cpu = self.rate(Device::Cpu, batch, width)?;
        let there = self.rate(device, batch, width)?;
        let name = self.device;
        tell(format_args!(
            "rings, batch {batch}, width {width}: {cpu:.1} steps a second on the CPU, {there:.1} on {name}"
        ));
        Ok(json!({ "batch": batch, "width": width, "cpu": cpu, "device": there }))
    }

    fn rate(&self, device: Device, batch: usize, width: i64) -> Result<f64> {
        let mut trainer = rings(BALANCE, device, batch, width)?;
        (0..3).try_for_each(|_| trainer.step().map(|_| ()))?;
        let started = Instant::now();
        let mut steps = 0;
        while started.elapsed().as_secs_f64() < self.seconds {
            trainer.step()?;
            steps += 1;
        }
        Ok(f64::from(steps) / started.elapsed().as_secs_f64())
    }
}

/// The objective that is used to measure speed and to test resumed runs: trajectory balance, which is the
/// first entry of `OBJECTIVES`.
const BALANCE: ObjectiveName = Selection { name: OBJECTIVES[0].0, value: OBJECTIVES[0].1 };

fn grid(objective: ObjectiveName, device: Device) -> Result<Grid> {
    let env = HyperGrid::new(2, 8)?.env();
    let mut rng = Rng::seeded(0);
    let network =
        objective.perceptron(MlpConfig { hidden: vec![64; 2], ..MlpConfig::default() }, backward(objective));
    let policy = MlpPolicy::new(&env, KHot::new(2, 8), network, device, Kind::Float, &mut rng)?;
    let config = TrainerConfig { batch: 16, ..TrainerConfig::default() };
    Trainer::new(env, Sums, policy, objective.build()?, config, rng)
}

fn rings(objective: ObjectiveName, device: Device, batch: usize, width: i64) -> Result<Rings> {
    let env = Ring::new(4, GraphKind::Directed)?.into_env();
    let mut rng = Rng::seeded(0);
    let network = GraphNetConfig {
        conv: ConvKind::Directed,
        layers: 1,
        embedding: width,
        identity: true,
        backward: backward(objective),
        estimators: objective.estimators(),
        ..GraphNetConfig::default()
    };
    let policy = GraphPolicy(GraphNet::new(&env, network, device, Kind::Float, &mut rng)?);
    let config = TrainerConfig { batch, ..TrainerConfig::default() };
    Trainer::new(env, Sums, policy, objective.build()?, config, rng)
}

fn backward(objective: ObjectiveName) -> BackwardPolicy {
    if objective.trains_backward() { BackwardPolicy::SharedTorso } else { BackwardPolicy::Uniform }
}

/// Returns the norm of the difference between two trainers' gradients on equal batches, divided by the norm
/// of the first trainer's gradient.
fn gap<E: TrainEnv + DiscreteEnv>(one: &mut Trainer<E>, other: &mut Trainer<E>) -> Result<f64> {
    let (ours, theirs) = if one.context().objective.origin() == Origin::OnPolicy {
        // The trainers have equal seeds, so they draw equal batches.
        (one.draw()?, other.draw()?)
    } else {
        let walks = || Sampler::new(one.env(), &UniformPolicy).forward(16, &mut Rng::seeded(1));
        (Batch::from(walks()?), Batch::from(walks()?))
    };
    let ours = gradient(one, ours)?;
    let theirs = gradient(other, theirs)?;
    let apart: f64 =
        ours.iter().zip(&theirs).map(|(a, b)| (a - b).square().sum(Kind::Double).double_value(&[])).sum();
    let norm: f64 = ours.iter().map(|a| a.square().sum(Kind::Double).double_value(&[])).sum();
    Ok((apart / norm.max(f64::MIN_POSITIVE)).sqrt())
}

fn gradient<E: TrainEnv>(trainer: &mut Trainer<E>, mut batch: Batch<E>) -> Result<Vec<Tensor>> {
    let scores = trainer.score(&mut batch)?;
    trainer.loss(&scores)?.backward();
    let parameters = trainer.policy().parameters().ok_or(Error::missing(
        "a gradient",
        "parameters",
        "use a policy with parameters",
    ))?;
    let trained = parameters.iter().filter(|parameter| parameter.tensor.requires_grad());
    let of = |tensor: &Tensor| {
        let gradient = tensor.grad();
        let gradient = if gradient.defined() { gradient } else { tensor.zeros_like() };
        gradient.to_device(Device::Cpu).to_kind(Kind::Double)
    };
    Ok(trained.map(|parameter| of(&parameter.tensor)).collect())
}

/// Trains on the device `from` and resumes the checkpoint on the device `to`. Returns the relative difference
/// between the gradients of the two trainers.
fn resumed(from: Device, to: Device) -> Result<f64> {
    let mut one = rings(BALANCE, from, 16, 32)?;
    let mut other = rings(BALANCE, to, 16, 32)?;
    (0..5).try_for_each(|_| one.step().map(|_| ()))?;
    let folder = std::env::temp_dir().join(format!("gfn-devices-{}", std::process::id()));
    one.save(&folder)?;
    let resumed = other.resume(&folder);
    std::fs::remove_dir_all(&folder).map_err(|source| Error::io(&folder, source))?;
    resumed?;
    gap(&mut one, &mut other)
}
