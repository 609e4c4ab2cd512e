//! Tests of the hybridisation of atoms.

use gfn_molecules::{Hybridization, Molecule};

/// Tests that the hybridisation of each atom equals RDKit's `GetHybridization`.
#[test]
fn atoms_are_hybridised_as_in_rdkit() {
    use Hybridization::{Other, Sp, Sp2, Sp3};
    let cases: [(&str, &[Hybridization]); 12] = [
        ("CC#N", &[Sp3, Sp, Sp]),
        ("CC(=O)N", &[Sp3, Sp2, Sp2, Sp2]),
        ("CC(=S)N", &[Sp3, Sp2, Sp2, Sp2]),
        ("COC", &[Sp3; 3]),
        ("C=CO", &[Sp2; 3]),
        ("Pc1ccccc1", &[Sp3, Sp2, Sp2, Sp2, Sp2, Sp2, Sp2]),
        ("c1ccsc1", &[Sp2; 5]),
        ("C=C=C", &[Sp2, Sp, Sp2]),
        ("C[N+](C)(C)C", &[Sp3; 5]),
        ("CP(=O)(O)O", &[Sp3, Sp3, Sp2, Sp3, Sp3]),
        ("FS(F)(F)(F)(F)F", &[Sp3, Other, Sp3, Sp3, Sp3, Sp3, Sp3]),
        ("CC(=O)[O-]", &[Sp3, Sp2, Sp2, Sp2]),
    ];
    for (smiles, expected) in cases {
        assert_eq!(Molecule::from_smiles(smiles).unwrap().hybridizations(), expected, "{smiles}");
    }
}
