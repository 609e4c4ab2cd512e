//! A search for substructures that are given as SMARTS, a pattern language for molecules.

use std::path::Path;

use chematic_smarts::{
    AtomPrimitive, AtomQuery, BondPrimitive, BondQuery, MatchConfig, MatchOutcome, QueryMolecule,
    RdkitParityConfig, RdkitRingCountModel, has_match_rdkit_parity_bounded, parse_smarts,
};
use gfn::{Error, Result};

use super::Subject;
use crate::Molecule;

/// The largest length of a SMARTS text, in bytes.
const MAX_LENGTH: usize = 2_000;
/// The limit for the depth of nested brackets in a SMARTS, and also for the number of consecutive
/// negations.
const MAX_DEPTH: usize = 40;
/// The largest number of steps of a search for one pattern in one molecule. A search takes some seconds for
/// this number of steps.
const MAX_STEPS: u64 = 5_000_000;

/// An error in a SMARTS, or a search that was stopped at a limit.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// The text isn't a SMARTS, or uses a feature that isn't supported.
    #[error("{smarts:?}: {problem}")]
    Syntax {
        /// The text that was given as a SMARTS.
        smarts: String,
        /// A description of the problem.
        problem: String,
    },
    /// The text is too long, or nested too deeply.
    #[error(
        "the SMARTS {start:?}... has {length} characters and a nesting depth of {depth}: give at most \
         {MAX_LENGTH} characters and a depth of at most {MAX_DEPTH}"
    )]
    TooLarge {
        /// The first characters of the text.
        start: String,
        /// The length of the text in bytes.
        length: usize,
        /// The maximum of two numbers: the depth of nested brackets, and the number of consecutive
        /// negations.
        depth: usize,
    },
    /// The search reached a limit before it was clear whether the molecule contains the pattern.
    #[error("the search for {smarts:?} in {smiles} was given up ({why}): make the pattern more specific")]
    GivenUp {
        /// The SMARTS of the pattern.
        smarts: String,
        /// The SMILES of the molecule.
        smiles: String,
        /// The limit that was reached.
        why: String,
    },
}

impl From<PatternError> for Error {
    fn from(error: PatternError) -> Self {
        let expected = "SMARTS as RDKit reads them, without directions of double bonds";
        Self::Config { setting: "a substructure", got: format!("not valid ({error})"), expected }
    }
}

/// A list of named substructures, defined by SMARTS: alerts to avoid, or groups to require.
///
/// Patterns match as in RDKit. `c` matches an aromatic carbon in every Kekule form of a molecule, and a
/// bond without a symbol matches single and aromatic bonds. A hydrogen that is written as an atom at the
/// end of a pattern, as in many PAINS patterns, means that its neighbour must have at least one more
/// hydrogen (RDKit's `MolFromSmarts` with `mergeHs`). A pattern with other hydrogen atoms (`[#1,#6]`) is
/// searched in a copy of the molecule whose hydrogens are atoms (RDKit's `AddHs`). Stereochemistry is
/// ignored: `@` in a pattern has no effect.
///
/// ```
/// use gfn_molecules::{Molecule, Patterns};
/// let alerts = Patterns::new([("aldehyde", "[CX3H1](=O)[#6]"), ("peroxide", "[#8][#8]")])?;
/// assert_eq!(alerts.found_in(&Molecule::from_smiles("O=Cc1ccccc1")?)?, ["aldehyde"]);
/// assert!(alerts.found_in(&Molecule::from_smiles("OCC1CC1")?)?.is_empty());
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Patterns(Vec<Pattern>);

#[derive(Clone, Debug)]
struct Pattern {
    name: String,
    smarts: String,
    query: QueryMolecule,
    /// `true` if the pattern has hydrogen atoms that can't be replaced by a hydrogen count of their
    /// neighbours. Such a pattern is searched in a copy of the molecule whose hydrogens are atoms.
    hydrogens: bool,
}

impl Patterns {
    /// Creates patterns from names and SMARTS.
    ///
    /// # Errors
    /// [`PatternError::Syntax`] and [`PatternError::TooLarge`] for the first invalid pattern.
    pub fn new<N: Into<String>, S: AsRef<str>>(
        named: impl IntoIterator<Item = (N, S)>,
    ) -> std::result::Result<Self, PatternError> {
        let read = |(name, smarts): (N, S)| Pattern::read(name.into(), smarts.as_ref());
        named.into_iter().map(read).collect::<std::result::Result<_, _>>().map(Self)
    }

    /// Reads the patterns of a file. Each line is a SMARTS, optionally followed by blanks and a name. Lines
    /// that begin with `#` are comments. CSV lines are accepted, too, if the SMARTS and the name are in
    /// quotes, as in RDKit's `Data/Pains/wehi_pains.csv`.
    ///
    /// # Errors
    /// [`Error::Io`] for a file that can't be read; [`Error::File`] for a line that isn't a pattern, and for
    /// a file without patterns.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
        let remedy = "give a SMARTS on each line, followed by a name if you like";
        let mut found = Vec::new();
        for (k, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (smarts, name) = match line.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
                Some((smarts, rest)) => (smarts, rest.trim_matches([',', '"', ' '])),
                None => line.split_once([' ', '\t']).unwrap_or((line, "")),
            };
            let name = if name.trim().is_empty() { smarts } else { name.trim() };
            let pattern = Pattern::read(name.to_owned(), smarts);
            found.push(
                pattern.map_err(|error| Error::file(path, format!("line {}: {error}", k + 1), remedy))?,
            );
        }
        if found.is_empty() {
            Err(Error::file(path, "the file has no patterns", remedy))
        } else {
            Ok(Self(found))
        }
    }

    /// Returns the number of patterns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if there are no patterns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends the patterns of another list, if there is one.
    pub(crate) fn extend(&mut self, more: Option<Self>) {
        self.0.extend(more.into_iter().flat_map(|more| more.0));
    }

    /// Returns the names of the patterns that occur in a molecule, in the order of this list.
    ///
    /// # Errors
    /// [`PatternError::GivenUp`] if the search for a pattern takes too many steps.
    pub fn found_in(&self, molecule: &Molecule) -> std::result::Result<Vec<&str>, PatternError> {
        self.matches(&Subject::new(molecule))
    }

    pub(crate) fn matches(&self, subject: &Subject<'_>) -> std::result::Result<Vec<&str>, PatternError> {
        let mut out = Vec::new();
        for pattern in &self.0 {
            if pattern.is_in(subject)? {
                out.push(pattern.name.as_str());
            }
        }
        Ok(out)
    }
}

impl Pattern {
    fn read(name: String, smarts: &str) -> std::result::Result<Self, PatternError> {
        let length = smarts.len();
        let depth = depth(smarts);
        if length > MAX_LENGTH || depth > MAX_DEPTH {
            let start = smarts.chars().take(40).collect();
            return Err(PatternError::TooLarge { start, length, depth });
        }
        let wrong = |problem: String| PatternError::Syntax { smarts: smarts.to_owned(), problem };
        if let Some(other) = smarts.chars().find(|c| !c.is_ascii_graphic()) {
            return Err(wrong(format!(
                "it has the character {other:?}, but a SMARTS consists of printable ASCII without blanks"
            )));
        }
        let query = parse_smarts(smarts).map_err(|error| wrong(error.to_string()))?;
        if query.atoms.is_empty() {
            return Err(wrong("it has no atom".into()));
        }
        let query = folded(&query);
        let hydrogens = names_hydrogen(&query);
        Ok(Self { name, smarts: smarts.to_owned(), query, hydrogens })
    }

    fn is_in(&self, subject: &Subject<'_>) -> std::result::Result<bool, PatternError> {
        let target = if self.hydrogens { subject.with_hydrogens() } else { subject.plain() };
        let config = RdkitParityConfig {
            base: MatchConfig { max_visit_budget: Some(MAX_STEPS), ..MatchConfig::default() },
            ring_count_model: RdkitRingCountModel::RelevantCycles,
            ..RdkitParityConfig::default()
        };
        let given_up = |why: String| {
            let smarts = self.smarts.clone();
            let smiles = subject.molecule.smiles();
            PatternError::GivenUp { smarts, smiles, why }
        };
        match has_match_rdkit_parity_bounded(&self.query, target, &config) {
            Ok(MatchOutcome::BudgetExhausted) => Err(given_up(format!("{MAX_STEPS} steps"))),
            Ok(outcome) => Ok(outcome == MatchOutcome::Found),
            Err(error) => Err(given_up(error.to_string())),
        }
    }
}

/// Returns the maximum of two numbers: the depth of nested brackets, and the number of consecutive
/// negations. The parser recurses once for each bracket and each negation, so both numbers must be limited.
fn depth(smarts: &str) -> usize {
    let mut open = 0usize;
    let mut negations = 0usize;
    let mut most = 0usize;
    for byte in smarts.bytes() {
        negations = if byte == b'!' { negations + 1 } else { 0 };
        match byte {
            b'(' | b'[' => open += 1,
            b')' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open).max(negations);
    }
    most
}

/// Returns the pattern without the hydrogen atoms at its ends. The neighbour of a removed hydrogen atom gets
/// the condition that it has at least as many hydrogens as were removed from it.
fn folded(query: &QueryMolecule) -> QueryMolecule {
    let end = |a: usize| match (&query.atoms[a], &query.adj[a][..]) {
        (atom, &[(bond, beside)]) if atom.atom_map.is_none() && is_hydrogen(&atom.query) => {
            let single = matches!(
                query.bonds[bond].query,
                BondQuery::Any | BondQuery::Primitive(BondPrimitive::Single)
            );
            (single && !is_hydrogen(&query.atoms[beside].query)).then_some(beside)
        }
        _ => None,
    };
    let ends: Vec<Option<usize>> = (0..query.atoms.len()).map(end).collect();
    let mut out = QueryMolecule::new();
    let mut places = vec![None; ends.len()];
    for (a, atom) in query.atoms.iter().enumerate().filter(|(a, _)| ends[*a].is_none()) {
        let count = ends.iter().filter(|beside| **beside == Some(a)).count();
        let asked = (0..count.min(usize::from(u8::MAX))).fold(folded_within(&atom.query), |asked, fewer| {
            let other = AtomQuery::Primitive(AtomPrimitive::HCount(fewer as u8));
            AtomQuery::And(Box::new(asked), Box::new(AtomQuery::Not(Box::new(other))))
        });
        places[a] = Some(out.add_atom_with_map(asked, atom.atom_map));
    }
    for bond in &query.bonds {
        if let (Some(a), Some(b)) = (places[bond.atom1], places[bond.atom2]) {
            out.add_bond(a, b, bond.query.clone());
        }
    }
    out
}

/// Removes hydrogen atoms from the recursive patterns (`$(...)`) inside of an atom's query, as [`folded`]
/// removes them from a pattern.
fn folded_within(query: &AtomQuery) -> AtomQuery {
    let within = |query: &AtomQuery| Box::new(folded_within(query));
    match query {
        AtomQuery::Primitive(AtomPrimitive::Recursive(inner)) => {
            AtomQuery::Primitive(AtomPrimitive::Recursive(Box::new(folded(inner))))
        }
        AtomQuery::Primitive(_) => query.clone(),
        AtomQuery::And(a, b) => AtomQuery::And(within(a), within(b)),
        AtomQuery::Or(a, b) => AtomQuery::Or(within(a), within(b)),
        AtomQuery::Not(a) => AtomQuery::Not(within(a)),
    }
}

/// Returns `true` if the query is `[#1]` or `[H]`, which match only hydrogen.
fn is_hydrogen(query: &AtomQuery) -> bool {
    match query {
        AtomQuery::Primitive(AtomPrimitive::AtomicNum(number)) => *number == 1,
        AtomQuery::And(a, b) => {
            matches!(&**a, AtomQuery::Primitive(AtomPrimitive::Symbol(symbol)) if symbol == "H")
                && matches!(&**b, AtomQuery::Primitive(AtomPrimitive::Aromatic(false)))
        }
        _ => false,
    }
}

/// Returns `true` if an atom of the pattern may match a hydrogen atom. Atoms of recursive patterns (`$(...)`)
/// count, too.
fn names_hydrogen(query: &QueryMolecule) -> bool {
    query.atoms.iter().any(|atom| may_be_hydrogen(&atom.query))
}

fn may_be_hydrogen(query: &AtomQuery) -> bool {
    match query {
        AtomQuery::Primitive(AtomPrimitive::AtomicNum(number)) => *number == 1,
        AtomQuery::Primitive(AtomPrimitive::Symbol(symbol)) => symbol == "H",
        AtomQuery::Primitive(AtomPrimitive::Recursive(inner)) => names_hydrogen(inner),
        AtomQuery::Primitive(_) => false,
        AtomQuery::And(a, b) | AtomQuery::Or(a, b) => may_be_hydrogen(a) || may_be_hydrogen(b),
        // A single negated property, such as `!#1`, matches the same heavy atoms whether hydrogens are atoms
        // or not, so it doesn't require hydrogen atoms. Negated recursive patterns (`$(...)`) and negated
        // combinations of properties are examined as if they weren't negated.
        AtomQuery::Not(inner) => match &**inner {
            AtomQuery::Primitive(AtomPrimitive::Recursive(inner)) => names_hydrogen(inner),
            AtomQuery::Primitive(_) => false,
            other => may_be_hydrogen(other),
        },
    }
}
