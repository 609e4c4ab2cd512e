//! Writing of molfiles (V2000) and of records of SD files, as specified in BIOVIA's "CTfile formats".

use std::fmt::Write;

use super::wedges::Wedge;
use crate::{Molecule, MoleculeError, ValenceTable};

/// The limit that the counts line of a molfile sets for the number of atoms, and also for the number of
/// bonds.
const MOST: usize = 999;
/// The length of a bond in a molfile. It is about the length of a carbon-carbon bond in angstrom.
const BOND: f64 = 1.5;
/// The stereochemistry code of a double bond that may be cis or trans ("either").
const EITHER: u8 = 3;
/// The stereochemistry code of a bond that points towards the reader. The bond's first atom is the
/// stereocentre.
const UP: u8 = 1;
/// The stereochemistry code of a bond that points behind the paper. The bond's first atom is the
/// stereocentre.
const DOWN: u8 = 6;
/// The line that ends each record of an SD file.
const RECORD_END: &str = "$$$$";
impl Molecule {
    /// Returns the molecule as a molfile (V2000). The atoms are at their
    /// [`coordinates`](Self::coordinates), scaled to a bond length of 1.5. Bonds have their orders in the
    /// molecule's current Kekule form, and charges are in `M  CHG` lines.
    ///
    /// The molfile gives the valence of an atom if readers couldn't infer the atom's hydrogens without it.
    /// Marked centres have a wedge, and marked double bonds are drawn as cis or trans. Double bonds that
    /// can be cis or trans but have no mark are written as "either". Otherwise, readers would infer a mark
    /// from the coordinates.
    ///
    /// # Errors
    /// [`MoleculeError::Molfile`] for a molecule that can't be drawn flat (a trans double bond in a ring;
    /// phosphorus with two neighbours, a hydrogen and a lone pair), and for more than 999 atoms or bonds.
    /// The same error is returned for a title that has more than 80 characters or a line break, and for a
    /// title that starts with `$$$$`, which ends a record of an SD file.
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// let molfile = Molecule::from_smiles("C[NH3+]")?.molfile("methylammonium")?;
    /// let lines: Vec<&str> = molfile.lines().collect();
    /// assert_eq!(lines[0], "methylammonium");
    /// assert_eq!(lines[3], "  2  1  0  0  0  0  0  0  0  0999 V2000");
    /// assert_eq!(lines[6..], ["  1  2  1  0", "M  CHG  1   2   1", "M  END"]);
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    pub fn molfile(&self, title: &str) -> Result<String, MoleculeError> {
        let refuse = |problem: String| Err(MoleculeError::Molfile { problem });
        let n = self.atoms().len();
        let m = self.bonds().len();
        if n.max(m) > MOST {
            return refuse(format!("{n} atoms and {m} bonds, but only {MOST} of each: write SMILES instead"));
        }
        if title.chars().count() > 80 || title.contains(['\n', '\r']) || title.starts_with(RECORD_END) {
            return refuse(format!(
                "the title {title:?}: give one line of at most 80 characters that doesn't start with \
                 `{RECORD_END}`"
            ));
        }
        let places = self.coordinates();
        let no_bond = |a: usize| {
            format!(
                "the sign of atom {a}, because it has no bond that can be drawn as a wedge: write SMILES \
                 instead"
            )
        };
        let wedges = self.wedges(&places).map_err(|a| MoleculeError::Molfile { problem: no_bond(a) })?;
        if let Some(k) = (0..m).find(|&k| !self.shows_sign(&places, k)) {
            return refuse(format!(
                "the double bond {k}, because it is trans within its ring: write SMILES instead"
            ));
        }
        let table = ValenceTable::default();
        // The second line of a molfile has initials, program, date and dimension in fixed columns. The date
        // is omitted, so that equal molecules give equal texts.
        let mut out =
            format!("{title}\n  gfn-gym           2D\n\n{n:3}{m:3}  0  0  0  0  0  0  0  0999 V2000\n");
        for (a, (atom, &(x, y))) in self.atoms().iter().zip(&places).enumerate() {
            let valence = match self.valence(a) {
                full if atom.charge == 0 && table.valences(atom.element, 0).first() == Some(&full) => 0,
                // The format's code for a valence of 0 is 15.
                0 => 15,
                full => full,
            };
            // Adding 0 changes -0 to 0.
            let [x, y] = [x, y].map(|value| (BOND * value * 1e4).round() / 1e4 + 0.0);
            let symbol = atom.element.symbol();
            // Writing to a string can't fail.
            let _ = writeln!(
                out,
                "{x:10.4}{y:10.4}{:10.4} {symbol:<3} 0  0  0  0  0{valence:3}  0  0  0  0  0  0",
                0.0
            );
        }
        for (k, bond) in self.bonds().iter().enumerate() {
            let (from, stereo) = match wedges[k] {
                Some(Wedge { from, up }) => (from, if up { UP } else { DOWN }),
                None => {
                    (bond.a, if self.is_open(k) && self.double_bond_sign(k).is_none() { EITHER } else { 0 })
                }
            };
            let _ = writeln!(
                out,
                "{:3}{:3}{:3}{stereo:3}",
                from + 1,
                bond.other_end(from) + 1,
                bond.order.value()
            );
        }
        let charged: Vec<_> = self.atoms().iter().enumerate().filter(|(_, atom)| atom.charge != 0).collect();
        for line in charged.chunks(8) {
            let _ = write!(out, "M  CHG{:3}", line.len());
            for (a, atom) in line {
                let _ = write!(out, " {:3} {:3}", a + 1, atom.charge);
            }
            out.push('\n');
        }
        out.push_str("M  END\n");
        Ok(out)
    }

    /// Returns the molecule as a record of an SD file. The record consists of the
    /// [`molfile`](Self::molfile), the data items with their names, and the line `$$$$`. The concatenation
    /// of such records is an SD file.
    ///
    /// # Errors
    /// Errors of [`molfile`](Self::molfile); [`MoleculeError::Molfile`] for a name that doesn't consist of
    /// letters, digits and underscores or doesn't begin with a letter, and for a value that isn't one line of
    /// text.
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// let ethanol = Molecule::from_smiles("CCO")?;
    /// let record = ethanol.sdf_record("ethanol", &[("smiles", "CCO"), ("score", "0.5")])?;
    /// assert!(record.ends_with("M  END\n>  <smiles>\nCCO\n\n>  <score>\n0.5\n\n$$$$\n"));
    /// # Ok::<(), gfn_molecules::MoleculeError>(())
    /// ```
    pub fn sdf_record(&self, title: &str, data: &[(&str, &str)]) -> Result<String, MoleculeError> {
        let mut out = self.molfile(title)?;
        for (name, value) in data {
            let named = name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !named || value.is_empty() || value.contains(['\n', '\r']) || value.starts_with(RECORD_END) {
                let problem = format!(
                    "{value:?} as the data item {name:?}: give one line of text, and a name of letters, \
                     digits and `_`"
                );
                return Err(MoleculeError::Molfile { problem });
            }
            let _ = write!(out, ">  <{name}>\n{value}\n\n");
        }
        out.push_str(RECORD_END);
        out.push('\n');
        Ok(out)
    }
}
