//! The published proxy of binding to soluble epoxide hydrolase (Bengio et al. 2021).

mod weights;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use gfn::{Error, Result};
use tch::{Device, Kind, Tensor};

use weights::read_arrays;

use super::{MoleculeScore, check_all};
use crate::Molecule;
use crate::molecule::Hybridization;

/// The number of input features of an atom.
const FEATURES: i64 = 71;
/// The width of the network's hidden layers.
const WIDTH: i64 = 64;
/// The number of rounds of message passing.
const ROUNDS: usize = 12;
/// The number of rounds of Set2Set pooling.
const POOLING: usize = 3;
/// The number of bond types: single, double, triple, aromatic, and the loop that a molecule with a single
/// atom gets.
const KINDS: usize = 5;
/// The index of the aromatic bond type.
const AROMATIC_BOND: usize = 3;
/// The index of the bond type of the loop that a molecule with a single atom gets.
const LOOP: usize = 4;
/// The feature column that is 1 for all elements other than C, N, O and F. These four have columns 1 to 4.
const OTHER: usize = 5;
/// The feature column that is 1 for aromatic atoms.
const AROMATIC: usize = 9;
/// The first of the three feature columns for the hybridizations sp, sp2 and sp3.
const SP: usize = 10;
/// The feature column for the number of hydrogens.
const HYDROGENS: usize = 13;
/// The offset of the feature columns for atomic numbers: atomic number `k` has the column `NUMBER + k`.
const NUMBER: usize = 13;

/// The index and the shape of each published array that the proxy uses. The other published arrays belong to
/// outputs that choose actions, which the proxy doesn't need.
const SHAPES: [(usize, &[i64]); 18] = [
    (0, &[WIDTH, FEATURES]),
    (1, &[WIDTH]),
    (2, &[WIDTH, WIDTH]),
    (3, &[WIDTH]),
    (4, &[128, 4]),
    (5, &[128]),
    (6, &[WIDTH * WIDTH, 128]),
    (7, &[WIDTH * WIDTH]),
    (8, &[3 * WIDTH, WIDTH]),
    (9, &[3 * WIDTH, WIDTH]),
    (10, &[3 * WIDTH]),
    (11, &[3 * WIDTH]),
    (16, &[4 * WIDTH, 2 * WIDTH]),
    (17, &[4 * WIDTH, WIDTH]),
    (18, &[4 * WIDTH]),
    (19, &[4 * WIDTH]),
    (20, &[1, 2 * WIDTH]),
    (21, &[1]),
];

/// The weights of the network, rearranged for inference.
#[derive(Debug)]
struct Weights {
    /// The published arrays, in the published order.
    arrays: Vec<Tensor>,
    /// The matrix of each bond type, of shape `[W, W]`, where `W` is the width of the hidden layers. The
    /// matrix is applied to the states of neighbours.
    kinds: Vec<Tensor>,
    /// The weights that are applied to an atom's state, of shape `[W, (1 + 3) W]`. The first `W` columns
    /// compute the contribution of the atom itself to its message. The other columns belong to the GRU's
    /// three gates.
    state: Tensor,
    /// The weights of the GRU's three gates that are applied to the message, of shape `[W, 3 W]`.
    message: Tensor,
}

/// The proxy of the affinity to soluble epoxide hydrolase (sEH) by Bengio et al. (*Flow Network based
/// Generative Models for Non-Iterative Diverse Candidate Generation*, NeurIPS 2021), a common benchmark of
/// GFlowNets on molecules. It has 12 rounds of message passing with bond-dependent weights (`NNConv`, mean)
/// and a GRU, then three rounds of Set2Set.
///
/// The weights aren't part of this library. They are `mols/data/pretrained_proxy/best_params.pkl.gz` of
/// `github.com/GFNOrg/gflownet` (MIT; MD5 `ed07c7524344c7abeb3b853530625b83`).
///
/// As a [`MoleculeScore`], the proxy returns the reward of the task `seh_frag` of recursionpharma/gflownet:
/// the network's output divided by 8, clamped to 1e-4 to 100. The contribution of an atom itself to its
/// message is multiplied by the transpose of the trained matrix. The same happens in
/// recursionpharma/gflownet, because the format of the layer changed after training. Rewards are therefore
/// comparable with those of that library.
///
/// ```no_run
/// use gfn_molecules::{Molecule, SehProxy};
/// let proxy = SehProxy::load("best_params.pkl.gz", tch::Device::Cpu)?;
/// println!("{}", proxy.outputs(&[Molecule::from_smiles("CC(C)NC(=O)c1ccccc1")?])?[0]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct SehProxy {
    /// The weights of the network. The lock ensures that only one thread uses them at a time.
    weights: Mutex<Weights>,
    device: Device,
}

impl SehProxy {
    /// The divisor that converts the network's output into the reward.
    const SCALE: f64 = 8.0;
    /// The smallest and the largest reward.
    const BOUNDS: [f64; 2] = [1e-4, 100.0];

    /// Loads the published file, or an `.npz` file that holds its 22 arrays, named `p00` to `p21` in the
    /// published order.
    ///
    /// # Errors
    /// [`Error::Io`] for a file that can't be read; [`Error::File`] for a file with arrays of other shapes.
    pub fn load(path: impl AsRef<Path>, device: Device) -> Result<Self> {
        let path = path.as_ref();
        let arrays = read_arrays(path)?;
        let wrong = |problem: String| {
            let remedy = "give `best_params.pkl.gz` of Bengio et al. 2021, or its 22 arrays as `.npz` in the \
                same order";
            Error::file(path, problem, remedy)
        };
        for (place, shape) in SHAPES {
            let Some(array) = arrays.get(place) else {
                return Err(wrong(format!("the file has {} arrays, but 22 are needed", arrays.len())));
            };
            if array.size() != shape || array.isfinite().all().int64_value(&[]) == 0 {
                return Err(wrong(format!(
                    "array {place} has shape {:?}, but {shape:?} is needed, or it isn't finite",
                    array.size()
                )));
            }
        }
        let arrays = arrays.iter().map(|array| array.to_kind(Kind::Float).to_device(device)).collect();
        Ok(Self { weights: Mutex::new(Weights::new(arrays)), device })
    }

    /// Returns the network's output for each molecule, usually between -1 and 10. Higher outputs mean a
    /// stronger predicted binding.
    ///
    /// # Errors
    /// [`Error::NonFinite`] if an output isn't finite, which no molecule should cause.
    pub fn outputs(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        if molecules.is_empty() {
            return Ok(Vec::new());
        }
        let batch = Batch::new(molecules, self.device);
        let weights = self.weights.lock().unwrap_or_else(PoisonError::into_inner);
        let output = tch::no_grad(|| weights.forward(&batch));
        let out = Vec::<f64>::try_from(output.to_kind(Kind::Double).to_device(Device::Cpu))?;
        let remedy = "check the weights that were loaded";
        check_all("the sEH proxy's output of a molecule", &out, f64::is_finite, remedy)?;
        Ok(out)
    }
}

impl MoleculeScore for SehProxy {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        let [least, most] = Self::BOUNDS;
        Ok(self
            .outputs(molecules)?
            .into_iter()
            .map(|output| (output / Self::SCALE).clamp(least, most).ln())
            .collect())
    }
}

/// A batch of molecules as one graph. Each bond is stored as two directed bonds (arrows), which are grouped
/// by their target atom.
struct Batch {
    /// The features of the atoms, of shape `[N, 71]` for `N` atoms.
    features: Tensor,
    /// The distinct source atoms of the arrows (directed bonds) of each bond type. One message is computed
    /// for each of these atoms, with the matrix of the bond type.
    of_kind: Vec<Tensor>,
    /// The index of the message of each arrow (directed bond) in the tensor of all messages. This tensor
    /// concatenates the messages of all bond types.
    sources: Tensor,
    /// The index of the first arrow (directed bond) that leads to each atom.
    arrows: Tensor,
    /// The indices of all atoms, 0 to `N - 1`, molecule after molecule. Pooling takes them as the indices of
    /// the rows that it combines.
    atoms: Tensor,
    /// The index of each molecule's first atom.
    first: Tensor,
    /// The index of the molecule that each atom of the batch belongs to.
    molecule: Tensor,
    n: i64,
}

impl Batch {
    fn new(molecules: &[Molecule], device: Device) -> Self {
        let mut features = Vec::new();
        let mut arrows = Vec::new();
        let mut of = Vec::new();
        let mut firsts = Vec::new();
        // The bond type and the source atom of each arrow (directed bond).
        let mut links: Vec<(usize, i64)> = Vec::new();
        for (nth, molecule) in molecules.iter().enumerate() {
            let first = of.len();
            let kinds = molecule.bond_kinds();
            firsts.push(first as i64);
            for (a, hybridization) in molecule.hybridizations().into_iter().enumerate() {
                features.extend(row(molecule, a, hybridization));
                arrows.push(links.len() as i64);
                of.push(nth as i64);
                for &k in molecule.bonds_at(a) {
                    let kind = kinds[k].map_or(AROMATIC_BOND, |order| usize::from(order.value()) - 1);
                    links.push((kind, (first + molecule.bonds()[k].other_end(a)) as i64));
                }
                if molecule.bonds_at(a).is_empty() {
                    links.push((LOOP, (first + a) as i64));
                }
            }
        }
        let mut rows = links.clone();
        rows.sort_unstable();
        rows.dedup();
        let sources: Vec<i64> =
            links.iter().map(|link| rows.partition_point(|row| row < link) as i64).collect();
        let to = |numbers: &[i64]| Tensor::from_slice(numbers).to_device(device);
        let of_kind =
            |kind: usize| rows.iter().filter(|row| row.0 == kind).map(|row| row.1).collect::<Vec<i64>>();
        Self {
            features: Tensor::from_slice(&features).view([-1, FEATURES]).to_device(device),
            of_kind: (0..KINDS).map(|kind| to(&of_kind(kind))).collect(),
            sources: to(&sources),
            arrows: to(&arrows),
            atoms: Tensor::arange(of.len() as i64, (Kind::Int64, device)),
            first: to(&firsts),
            molecule: to(&of),
            n: molecules.len() as i64,
        }
    }
}

/// Returns the features of an atom (one row of the feature tensor).
fn row(molecule: &Molecule, a: usize, hybridization: Hybridization) -> [f32; FEATURES as usize] {
    let atom = molecule.atoms()[a];
    let number = usize::from(atom.element.number());
    let mut row = [0.0; FEATURES as usize];
    row[match number {
        6..=9 => number - 5,
        _ => OTHER,
    }] = 1.0;
    row[AROMATIC] = f32::from(u8::from(atom.aromatic));
    if hybridization != Hybridization::Other {
        row[SP + hybridization as usize] = 1.0;
    }
    row[HYDROGENS] = f32::from(atom.hydrogens);
    row[NUMBER + number] = 1.0;
    row
}

/// The pooling mode of `embedding_bag`. The discriminants are libtorch's numbers for the modes.
#[derive(Clone, Copy)]
enum Pool {
    Sum = 0,
    Mean = 1,
    Max = 2,
}

/// Pools groups of rows of the matrix `rows`. `members` holds the indices of the rows, group by group. Group
/// `k` begins at index `first[k]` of `members`.
fn bags(rows: &Tensor, members: &Tensor, first: &Tensor, pool: Pool) -> Tensor {
    Tensor::embedding_bag(rows, members, first, false, pool as i64, false, None::<&Tensor>, false).0
}

fn leaky(x: &Tensor) -> Tensor {
    // The slope 0.01 is the default of PyTorch's LeakyReLU.
    x.maximum(&(x * 0.01))
}

impl Weights {
    fn new(arrays: Vec<Tensor>) -> Self {
        let turned = |place: usize| arrays[place].transpose(0, 1);
        // A column of `arrays[4]` holds the weights for the one-hot input of a bond type. The loop of a
        // molecule with a single atom has an input of zeros, so its column is zero.
        let columns = Tensor::cat(&[&arrays[4], &arrays[5].zeros_like().unsqueeze(1)], 1);
        let kinds = leaky(&(columns.transpose(0, 1) + &arrays[5])).matmul(&turned(6)) + &arrays[7];
        let kinds = kinds.view([KINDS as i64, WIDTH, WIDTH]).unbind(0);
        let state = Tensor::cat(&[turned(2), turned(9)], 1).contiguous();
        let message = turned(8).contiguous();
        Self { arrays, kinds, state, message }
    }

    fn forward(&self, batch: &Batch) -> Tensor {
        let mut state = leaky(&batch.features.linear(&self.arrays[0], Some(&self.arrays[1])));
        for _ in 0..ROUNDS {
            let made = state.matmul(&self.state);
            let seen = |(atoms, kind): (&Tensor, &Tensor)| state.index_select(0, atoms).matmul(kind);
            let rows = Tensor::cat(&batch.of_kind.iter().zip(&self.kinds).map(seen).collect::<Vec<_>>(), 0);
            let mean = bags(&rows, &batch.sources, &batch.arrows, Pool::Mean);
            let own = made.narrow(1, 0, WIDTH);
            let message = leaky(&(mean + own + &self.arrays[3]));
            let from_message = message.matmul(&self.message) + &self.arrays[10];
            let from_state = made.narrow(1, WIDTH, 3 * WIDTH) + &self.arrays[11];
            let message = from_message.chunk(3, 1);
            let kept = from_state.chunk(3, 1);
            let reset = (&message[0] + &kept[0]).sigmoid();
            let update = (&message[1] + &kept[1]).sigmoid();
            let new = (&message[2] + reset * &kept[2]).tanh();
            state = &new + update * (state - &new);
        }
        self.pooled(&state, batch).linear(&self.arrays[20], Some(&self.arrays[21])).squeeze_dim(1)
    }

    /// Pools the atoms of each molecule by Set2Set (Vinyals et al. 2016). In each round an LSTM computes a
    /// query, and attention over the atoms computes the result that the next round starts from.
    fn pooled(&self, state: &Tensor, batch: &Batch) -> Tensor {
        let options = (Kind::Float, state.device());
        let none = || Tensor::zeros([batch.n, WIDTH], options);
        let mut asked = [none(), none()];
        let mut out = Tensor::zeros([batch.n, 2 * WIDTH], options);
        let lstm = &self.arrays[16..20];
        for _ in 0..POOLING {
            let [h, c] = &asked;
            let (h, c) = out.lstm_cell(&[h, c], &lstm[0], &lstm[1], Some(&lstm[2]), Some(&lstm[3]));
            let fit =
                (state * h.index_select(0, &batch.molecule)).sum_dim_intlist([1i64].as_slice(), true, None);
            let most = bags(&fit, &batch.atoms, &batch.first, Pool::Max);
            let weight = (fit - most.index_select(0, &batch.molecule)).exp();
            let of_molecules = |rows: &Tensor| bags(rows, &batch.atoms, &batch.first, Pool::Sum);
            let answer = of_molecules(&(state * &weight)) / of_molecules(&weight);
            out = Tensor::cat(&[&h, &answer], 1);
            asked = [h, c];
        }
        out
    }
}
