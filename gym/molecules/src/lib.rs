//! Molecules for [`gfn`]: data structures, reading and writing, environments that build them atom by atom or
//! fragment by fragment, and rewards.
//!
//! | item | description |
//! |---|---|
//! | [`Molecule`] | heavy atoms with charges and hydrogens, bonds in one Kekule form, aromaticity; SMILES in and out |
//! | [`ValenceTable`] | the valences of atoms |
//! | [`MoleculeEnv`] | growth atom by atom, up to isomorphism, with exact masks |
//! | [`MoleculeCodec`] | conversion of states into molecules, and of molecules into states |
//! | [`MoleculeReward`] | a score as the environment's reward |
//! | [`MoleculeScore`] | a score: a closure, a descriptor, [`Product`], a power, bounds |
//! | [`ScoreConfig`] | a product of powers of properties, read from a file: QED, log P, synthetic accessibility, substructures, similarity |
//! | `Molecule::qed` and others, `Patterns` | drug-likeness and SMARTS, with the feature `descriptors` |
//! | [`ExternalScorer`] | a program as a score, such as `examples/rdkit_scorer.py` |
//! | [`TorchScriptProxy`] | a network from a TorchScript file as a score |
//! | [`SehProxy`] | the published proxy of binding to soluble epoxide hydrolase, as a score |
//! | [`Fingerprint`], [`internal_diversity`], [`diverse_top_k`], [`n_modes`] | similarity of molecules |
//! | [`Ranking`] | the best molecules by score, diversity and scaffold, as a table, an SD file and pictures |
//! | [`uniqueness`], [`KnownMolecules`], [`Molecule::scaffold`] | shares of distinct and of novel molecules, scaffolds |
//! | [`Molecule::coordinates`], [`Molecule::drawing`] | coordinates in the plane, skeletal formulas as SVG or PNG |
//! | [`Molecule::molfile`], [`Molecule::sdf_record`] | V2000 molfiles and SD files |
//! | [`MoleculeReader`], [`Cleanup`], [`ReadReport`] | streams of SMILES, tables and SD files, gzipped or not: removal of salts, isotopes and charges, and a report on skipped lines |
//! | [`fragments`] | junction trees of fragments, as an environment of its own |
//! | [`qm9str`] | strings of five blocks with a table of scores |
//!
//! | environment | states | reward | log Z known | modes known | semantics | enumerable |
//! |---|---|---|---|---|---|---|
//! | [`MoleculeEnv`] | molecules, grown atom by atom, as Kekule forms | yours: [`MoleculeReward`] of a score, an external program's too | no | no | up to isomorphism | C, N, O to 4 atoms: 571 molecules |
//! | [`fragments::Fragments`] | junction trees: fragments of molecules joined at attachment points | yours: [`fragments::FragmentReward`] of a score | no | no | up to isomorphism and the fragments' own symmetries | small libraries or few fragments |
//! | [`qm9str::Qm9Str`] | strings of five of 11 blocks, added at either end | a table of scores | yes | no | each string is one object | 177,156 states |
//!
//! Molecules are compared by their atoms and bonds, where all aromatic bonds count as equal.
//! [`Molecule::key`] and [`Molecule::smiles`] are therefore the same for all Kekule forms of a molecule,
//! while a state of the environment is one Kekule form. Stereochemistry is included: [`Molecule::marks`] of
//! tetrahedral centres and double bonds appear in keys, texts and symmetries. A molecule without marks
//! represents all of its stereoisomers. By default, molecules of the environment and in [`KnownMolecules`]
//! have no marks. Fingerprints, scaffolds and fragments ignore stereochemistry. Isotopes and radicals
//! aren't supported: the reader returns an error for them. Canonical SMILES differ from RDKit's. To compare
//! with molecules of another program, read the SMILES of that program and compare [`Molecule::key`]s.
//!
//! ```
//! use gfn::{Rng, env::Reward, policy::UniformPolicy, rollout::Sampler};
//! use gfn_molecules::{Molecule, MoleculeConfig, MoleculeEnv, MoleculeReward, MoleculeScore, Product};
//!
//! let molecules = MoleculeEnv::new(MoleculeConfig { max_ring_size: Some(7), ..MoleculeConfig::new(10) })?;
//! let weight = |molecule: &Molecule| molecule.weight();
//! let polar = |molecule: &Molecule| 0.1 + molecule.heteroatom_share();
//! let reward =
//!     MoleculeReward::new(molecules.codec(), Product::new().times(weight).times(polar.to_the(2.0)?));
//! let samples = Sampler::new(molecules.env(), &UniformPolicy).forward(4, &mut Rng::seeded(0))?;
//! assert!(reward.log_reward(samples.terminal_states(), None)?.iter().all(|log| log.is_finite()));
//! # Ok::<(), gfn::Error>(())
//! ```

mod building;
mod drawing;
pub mod fragments;
mod molecule;
pub mod qm9str;
mod ranking;
mod reading;
mod score;
mod similarity;

pub use building::{MoleculeCodec, MoleculeConfig, MoleculeEnv};
pub use molecule::{
    Atom, AtomSpec, Bond, BondOrder, Element, Hybridization, LeftOut, Molecule, MoleculeError, NotRead,
    StereoElement, StereoMark, ValenceTable,
};
pub use ranking::{Ranked, Ranking};
pub use reading::{
    Cleaned, Cleanup, MoleculeFormat, MoleculeReader, ReadReport, SkipReason, Skipped, SkippedLine,
};
#[cfg(feature = "descriptors")]
pub use score::{AccessibilityTable, PatternError, Patterns};
pub use score::{
    ExternalScorer, Factor, FactoredScore, GraphReader, MoleculeReward, MoleculeScore, Product, Property,
    ProxyOutput, ScoreConfig, ScorerError, SehProxy, Shape, TorchScriptProxy, TransformedScore,
};
pub use similarity::{Fingerprint, KnownMolecules, diverse_top_k, internal_diversity, n_modes, uniqueness};
