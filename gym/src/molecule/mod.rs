//! Molecules: what they are, how they are read and written, building them atom by atom, and rewards on them.
//!
//! | item | is |
//! |---|---|
//! | [`Molecule`] | heavy atoms with charges and hydrogens, bonds in one Kekule form, and what is aromatic; SMILES in and out |
//! | [`ValenceTable`] | how many bonds atoms have |
//! | [`MoleculeEnv`] | growth atom by atom, up to isomorphism, with exact masks |
//! | [`MoleculeCodec`] | states as molecules, molecules as states |
//! | [`MoleculeReward`] | a score as the environment's reward, divided between Kekule forms |
//! | [`MoleculeScore`] | a score: a closure, a descriptor, [`Product`], [`WeightedSum`], a power, bounds |
//! | [`ExternalScorer`] | a program as a score, such as `examples/rdkit_scorer.py` |
//! | [`TorchScriptProxy`] | a network from a TorchScript file as a score |
//! | [`Fingerprint`], [`internal_diversity`], [`diverse_top_k`], [`n_modes`] | how alike molecules are |
//! | [`uniqueness`], [`KnownMolecules`], [`Molecule::scaffold`] | how many are different, new, of another scaffold |
//! | [`Molecule::coordinates`], [`Molecule::drawing`] | places in the plane, skeletal formulas as SVG or PNG |
//! | [`Molecule::molfile`], [`Molecule::sdf_record`] | V2000 molfiles and SD files |
//!
//! A molecule is its atoms and bonds with aromatic bonds as such: [`Molecule::key`] and [`Molecule::smiles`] are the same for all
//! of its Kekule forms, while a state of the environment is one of them. No isotopes, no stereochemistry, no radicals: the reader refuses
//! the first and the last, and leaves stereochemistry out ([`Molecule::read_noting`] says so), so stereoisomers are one molecule in keys,
//! texts, uniqueness and novelty, and a score can't tell them apart.
//!
//! ```
//! use gfn::{env::Reward, policy::UniformPolicy, rollout::Sampler, Rng};
//! use gfn_gym::molecule::{LogWindow, Molecule, MoleculeConfig, MoleculeEnv, MoleculeReward, MoleculeScore, Product};
//!
//! let env = MoleculeEnv::new(MoleculeConfig { max_ring_size: Some(7), ..MoleculeConfig::new(10) })?;
//! let weight = LogWindow::new(Molecule::weight, 100.0, 150.0, 20.0)?;
//! let polar = |molecule: &Molecule| 0.1 + molecule.heteroatom_share();
//! let reward = MoleculeReward::new(env.codec(), Product::new().times(weight).times(polar.to_the(2.0)?));
//! let samples = Sampler::new(&env, &UniformPolicy).forward(4, &mut Rng::seeded(0))?;
//! assert!(reward.log_reward(samples.terminal_states(), None)?.iter().all(|log| log.is_finite()));
//! # Ok::<(), gfn::Error>(())
//! ```

mod aromaticity;
mod building;
mod drawing;
mod element;
mod error;
mod kekule;
mod matching;
mod model;
mod placements;
mod score;
mod similarity;
mod smiles;
mod symmetry;
mod valence;

pub use building::{MoleculeCodec, MoleculeConfig, MoleculeEnv};
pub use element::Element;
pub use error::{MoleculeError, NotRead};
pub use model::{Atom, AtomSpec, Bond, BondOrder, Molecule};
pub(crate) use score::checked_logs;
pub use score::{
    Clamped, ExternalScorer, ExternalScorerConfig, LogWindow, MoleculeReward, MoleculeScore, Power, Product,
    ProxyError, ProxyOutput, RingTarget, ScorerError, ScorerUsage, TorchScriptProxy, WeightedSum,
};
pub use similarity::{
    Fingerprint, KnownMolecules, ReadReport, SkipReason, Skipped, SkippedLine, diverse_top_k, internal_diversity,
    n_modes, uniqueness,
};
pub use smiles::LeftOut;
pub use valence::ValenceTable;
