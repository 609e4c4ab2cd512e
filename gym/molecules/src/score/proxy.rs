use std::path::Path;
use std::sync::{Mutex, PoisonError};

use gfn::nn::load_torch_script;
use gfn::{Error, Result};
use tch::{CModule, Device, Kind, Tensor};

use super::MoleculeScore;
use crate::Molecule;

/// The meaning of a proxy's output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProxyOutput {
    /// The output is a score of 0 or more. Its logarithm is used.
    Score,
    /// The output is the natural logarithm of a score and is used unchanged. Minus infinity means a score
    /// of 0.
    LogScore,
}

/// Returns the error for a proxy whose output isn't one score per molecule.
fn refused(detail: impl ToString) -> Error {
    Error::contract("a proxy returns one score for each molecule", detail)
}

/// A score computed by a network in a TorchScript file (`torch.jit.save`). The molecules are passed to the
/// network as one sparse batch: the atoms of all molecules are concatenated.
///
/// The method `forward` of the network receives four tensors of 64-bit integers, in the order of this table,
/// and returns floating-point numbers of shape `[B]`. B is the number of molecules. N and E are the total
/// numbers of their heavy atoms and of their bonds. Each bond is listed in both directions:
///
/// | input | shape | is |
/// |---|---|---|
/// | `atoms` | `[N, 3]` | atomic number, formal charge, number of hydrogens |
/// | `bond_index` | `[2, 2 E]` | the source and the target atom of each directed bond; atoms are numbered through the whole batch |
/// | `bond_types` | `[2 E]` | 1 single, 2 double, 3 triple, 4 aromatic |
/// | `batch` | `[N]` | the molecule of each atom, from 0 to B - 1, ascending; every molecule has atoms |
///
/// Aromatic bonds have a separate type, so all Kekule forms of a molecule give the same input, except for
/// the order of atoms. The output must not depend on this order. RDKit returns the same numbers for atoms
/// (`GetAtomicNum`, `GetFormalCharge`, `GetTotalNumHs`), but its type of aromatic bonds is 12. RDKit's
/// detection of aromaticity also differs slightly from [this library's](crate::Molecule).
///
/// ```no_run
/// use gfn_molecules::{MoleculeConfig, MoleculeEnv, MoleculeReward, ProxyOutput, TorchScriptProxy};
/// let env = MoleculeEnv::new(MoleculeConfig::new(20))?;
/// let proxy = TorchScriptProxy::load("proxy.pt".as_ref(), ProxyOutput::LogScore, tch::Device::Cpu)?;
/// let reward = MoleculeReward::new(env.codec(), proxy);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct TorchScriptProxy {
    /// The network. The lock ensures that only one thread uses it at a time.
    script: Mutex<CModule>,
    output: ProxyOutput,
    device: Device,
}

/// The molecules on which a network is tested when it is loaded. The two molecules have nine atoms in all, so
/// that a network with one output per atom is detected.
const TRIED: [&str; 2] = ["CCO", "c1ccccc1"];

impl TorchScriptProxy {
    /// Loads a network from a file, switches it to evaluation mode (no dropout), and tests it on ethanol and
    /// benzene.
    ///
    /// # Errors
    /// [`Error::File`] for a file that is missing or isn't TorchScript; [`Error::Torch`] if the network
    /// can't process the inputs; [`Error::Contract`] if the network doesn't return one number per molecule.
    pub fn load(path: &Path, output: ProxyOutput, device: Device) -> Result<Self> {
        let proxy = Self { script: Mutex::new(load_torch_script(path, device)?), output, device };
        let [ethanol, benzene] = TRIED.map(Molecule::from_smiles);
        proxy.ask(&[ethanol?, benzene?])?;
        Ok(proxy)
    }

    /// Returns the network's output for each molecule.
    fn ask(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        let inputs = encode(molecules).map(|tensor| tensor.to_device(self.device));
        let script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = tch::no_grad(|| script.forward_ts(&inputs))?;
        let n = molecules.len();
        if answer.size() != [n as i64] {
            let first = molecules.first().map(Molecule::smiles).unwrap_or_default();
            let got = answer.size();
            return Err(refused(format!(
                "the proxy returned a tensor of shape {got:?} for {n} molecules, of which {first} is the \
                 first, but [{n}] was expected: let it return one number per molecule, without further \
                 dimensions"
            )));
        }
        Ok(Vec::try_from(answer.to_kind(Kind::Double).to_device(Device::Cpu))?)
    }
}

/// Encodes molecules as the four input tensors of the network.
fn encode(molecules: &[Molecule]) -> [Tensor; 4] {
    const AROMATIC: i64 = 4;
    let mut atoms = vec![];
    let mut batch = vec![];
    let mut from = vec![];
    let mut to = vec![];
    let mut types = vec![];
    for (nth, molecule) in molecules.iter().enumerate() {
        let first = batch.len();
        for atom in molecule.atoms() {
            atoms.extend([
                i64::from(atom.element.number()),
                i64::from(atom.charge),
                i64::from(atom.hydrogens),
            ]);
            batch.push(nth as i64);
        }
        for bond in molecule.bonds() {
            let ends = [(first + bond.a) as i64, (first + bond.b) as i64];
            from.extend(ends);
            to.extend([ends[1], ends[0]]);
            types.extend([if bond.aromatic { AROMATIC } else { i64::from(bond.order.value()) }; 2]);
        }
    }
    let bonds = Tensor::from_slice(&[from, to].concat()).view([2, types.len() as i64]);
    let atoms = Tensor::from_slice(&atoms).view([batch.len() as i64, 3]);
    [atoms, bonds, Tensor::from_slice(&types), Tensor::from_slice(&batch)]
}

impl MoleculeScore for TorchScriptProxy {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        if molecules.is_empty() {
            return Ok(Vec::new());
        }
        let mut logs = self.ask(molecules)?;
        for (value, molecule) in logs.iter_mut().zip(molecules) {
            let is_log = self.output == ProxyOutput::LogScore;
            if value.is_nan() || *value == f64::INFINITY || !is_log && value.is_infinite() {
                let smiles = molecule.smiles();
                return Err(refused(format!(
                    "the proxy returned {value} for {smiles}: let it return a finite number for every \
                     molecule"
                )));
            }
            if !is_log && *value < 0.0 {
                let smiles = molecule.smiles();
                return Err(refused(format!(
                    "the proxy returned {value} for {smiles}, but a score of 0 or more was expected: if it \
                     is a logarithm, set `ProxyOutput::LogScore`"
                )));
            }
            *value = if is_log { *value } else { value.ln() };
        }
        Ok(logs)
    }
}
