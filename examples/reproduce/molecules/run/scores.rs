//! The scores that the flags name.

use clap::ValueEnum;
use gfn::Result;
use gfn_molecules::{LogWindow, Molecule, MoleculeScore, Product, RingTarget};

/// What is rewarded.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RewardName {
    /// Every molecule alike
    Constant,
    /// 0.1 and the share of atoms that aren't carbon
    Heteroatoms,
    /// exp(number of rings)
    Rings,
    /// exp(donors + acceptors)
    HydrogenBonds,
    /// A weight of 100 to 300 and a polar surface of 40 to 90
    DrugLike,
}

/// The score of this name.
pub(crate) fn score(name: RewardName) -> Result<Box<dyn MoleculeScore>> {
    Ok(match name {
        RewardName::Constant => Box::new(|_: &Molecule| 1.0),
        RewardName::Heteroatoms => Box::new(|molecule: &Molecule| 0.1 + molecule.heteroatom_share()),
        RewardName::Rings => Box::new(RingTarget { most: usize::MAX }),
        RewardName::HydrogenBonds => {
            Box::new(|molecule: &Molecule| ((molecule.n_donors() + molecule.n_acceptors()) as f64).exp())
        }
        RewardName::DrugLike => {
            Box::new(Product::new().times(LogWindow::new(Molecule::weight, 100.0, 300.0, 50.0)?).times(LogWindow::new(
                Molecule::polar_surface,
                40.0,
                90.0,
                20.0,
            )?))
        }
    })
}
