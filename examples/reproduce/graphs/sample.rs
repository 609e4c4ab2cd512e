//! A task that samples graphs from a checkpoint of `ring --save` or `colored-graphs --save`, and writes them
//! to a file.

use gfn::graph::write_graphs;
use gfn_gym::colored_graphs::ColoredGraphs;

use crate::prelude::*;

/// Sample graphs from a trained policy, and write them to a file
#[derive(Args)]
pub(crate) struct Sample {
    /// Checkpoint of the policy: a folder that `ring --save` or `colored-graphs --save` wrote
    #[arg(long)]
    checkpoint: PathBuf,
    /// Number of graphs to sample
    #[arg(long, default_value_t = 1_000)]
    samples: usize,
    /// File to write. The extension selects the format: `.g6` is graph6 and `.d6` is digraph6, which store no
    /// classes of nodes; any other extension is an edge list
    #[arg(long)]
    out: PathBuf,
    #[command(flatten)]
    machine: Machine,
}

/// The description of a run, which the run has stored in its checkpoint.
#[derive(Deserialize)]
#[serde(tag = "example", rename_all = "snake_case")]
enum Saved {
    Ring { nodes: usize, kind: GraphKind, network: GraphNetConfig },
    ColoredGraphs { max_nodes: usize, network: GraphNetConfig },
}

/// The largest number of graphs that are sampled in one batch.
const CHUNK: usize = 4_096;

impl Task for Sample {
    fn run(&self) -> Result<()> {
        try_file(&self.out)?;
        let device = self.machine.device()?;
        let checkpoint = Checkpoint::load(&self.checkpoint)?;
        let (env, network) = match checkpoint.description()? {
            Saved::Ring { nodes, kind, network } => (Ring::new(nodes, kind)?.into_env(), network),
            Saved::ColoredGraphs { max_nodes, network } => {
                (ColoredGraphs::new(max_nodes)?.into_env(), network)
            }
        };
        let mut rng = Rng::seeded(self.machine.seed);
        let net = GraphNet::new(&env, network, device, Kind::Float, &mut rng)?;
        checkpoint.restore(net.parameters())?;
        let policy = GraphPolicy(net);
        let mut graphs = GraphStates::from(Vec::new());
        while graphs.len() < self.samples {
            let drawn =
                Sampler::new(&env, &policy).forward(CHUNK.min(self.samples - graphs.len()), &mut rng)?;
            graphs.append(drawn.terminal_states().clone());
        }
        write_graphs(&self.out, graphs.graphs())?;
        let distinct = env.keys(&graphs).into_iter().collect::<BTreeSet<_>>().len();
        let count = graphs.len();
        let step = checkpoint.manifest().step;
        report_file(&self.out);
        tell(format_args!("{count} graphs, {distinct} distinct, of a policy after {step} steps"));
        if self.machine.json {
            print(
                json!({ "example": "sample", "seed": self.machine.seed, "count": count, "distinct": distinct,
                "step": step, "out": self.out }),
            )?;
        }
        Ok(())
    }
}
