use std::path::Path;
use std::sync::Arc;

use gfn::{Error, Result};

use super::Fragment;

/// The text of the standard library of common rings and groups. Each line describes one fragment as `SMILES
/// stem,stem,...`.
const STANDARD: &str = include_str!("standard.txt");
/// The text of the library of Bengio et al., in the format of [`STANDARD`].
const BENGIO: &str = include_str!("bengio2021.txt");
/// The text of the library of 18 of the fragments of Bengio et al., in the format of [`STANDARD`].
const BENGIO_REDUCED: &str = include_str!("bengio2021_18.txt");
/// The largest number of invalid lines that an error describes.
const NAMED: usize = 10;
/// The limit for the number of fragments of a library, and also for the number of stems of all its fragments
/// together. The policy has logits for each fragment and for each stem, so a larger library would need too
/// many.
const MAX_COLUMNS: usize = 4_096;

fn refused(got: String, expected: &'static str) -> Error {
    Error::config("a library of fragments", got, expected)
}

/// A library of the fragments that trees are built from. A clone is cheap, because it shares the fragments.
///
/// ```
/// use gfn_molecules::fragments::FragmentLibrary;
/// let library = FragmentLibrary::parse("# rings\nc1ccccc1 0,1,2,3,4,5\nN 0,0\n\nC 0\n")?;
/// assert_eq!(library.fragments().len(), 3);
/// let message = FragmentLibrary::parse("C 0\nCl 1").unwrap_err().to_string();
/// assert!(message.starts_with("line 2: Cl has no atom 1 that could be a stem: its 1 atoms are"));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FragmentLibrary(Arc<Contents>);

#[derive(PartialEq, Eq, Debug)]
struct Contents {
    fragments: Vec<Fragment>,
    /// The stems of all fragments. Each stem is a possible attachment point of a new fragment.
    ports: Vec<Port>,
    max_stems: usize,
}

/// A stem (attachment atom) of a library: the index of its fragment in the library, and the index of the stem
/// in the fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Port {
    pub(super) fragment: u16,
    pub(super) stem: u8,
}

impl FragmentLibrary {
    /// Creates a library from a list of fragments.
    ///
    /// # Errors
    /// [`Error::Config`] for an empty list, for more than 4,096 fragments, and for more than 4,096 stems of
    /// all fragments together. Two equal fragments are an error, too, because equal trees would then be
    /// different states.
    pub fn new(fragments: Vec<Fragment>) -> Result<Self> {
        let library = Self::from_fragments(fragments)?;
        let fragments = library.fragments();
        for (k, fragment) in fragments.iter().enumerate() {
            if let Some(same) = fragments[..k].iter().position(|other| other.is_same(fragment)) {
                let got =
                    format!("a library whose fragments {same} and {k} are the same ({})", fragment.smiles());
                return Err(refused(
                    got,
                    "fragments that differ from each other in their molecule or their stems",
                ));
            }
        }
        Ok(library)
    }

    /// Creates a library of fragments that are known to be different from each other.
    fn from_fragments(fragments: Vec<Fragment>) -> Result<Self> {
        if !(1..=MAX_COLUMNS).contains(&fragments.len()) {
            return Err(refused(fragments.len().to_string(), "1 to 4,096 fragments"));
        }
        let n_stems: usize = fragments.iter().map(|fragment| fragment.stems().len()).sum();
        if n_stems > MAX_COLUMNS {
            return Err(refused(format!("a library with {n_stems} stems"), "at most 4,096 stems in all"));
        }
        let stems = |(k, fragment): (usize, &Fragment)| {
            (0..fragment.stems().len()).map(move |stem| Port { fragment: k as u16, stem: stem as u8 })
        };
        let ports = fragments.iter().enumerate().flat_map(stems).collect();
        let max_stems = fragments.iter().map(|fragment| fragment.stems().len()).max().unwrap_or(0);
        Ok(Self(Arc::new(Contents { fragments, ports, max_stems })))
    }

    /// Returns the standard library of common rings and groups: benzene, pyridine and other aromatic rings,
    /// saturated rings, amide, ether, amine, halogens, ...
    ///
    /// # Errors
    /// None in practice: a test checks that the standard library can be parsed.
    pub fn standard() -> Result<Self> {
        Self::parse(STANDARD)
    }

    /// Returns the 72 fragments of Bengio et al. (*Flow Network based Generative Models for Non-Iterative
    /// Diverse Candidate Generation*, NeurIPS 2021), with the attachment atoms that
    /// recursionpharma/gflownet lists. In the published task `seh_frag`, a molecule has at most nine
    /// fragments. Three fragments contain phosphorus or sulphur. These fragments have the hydrogens that
    /// RDKit gives them after an attachment, and one further hydrogen that the attachment replaces.
    ///
    /// # Errors
    /// None in practice: a test checks that this library can be parsed.
    pub fn bengio2021() -> Result<Self> {
        Self::parse(BENGIO)
    }

    /// Returns those 18 fragments of Bengio et al. that are on the reduced list of recursionpharma/gflownet.
    /// Each has one or two stems.
    ///
    /// # Errors
    /// None in practice: a test checks that this library can be parsed.
    pub fn bengio2021_reduced() -> Result<Self> {
        Self::parse(BENGIO_REDUCED)
    }

    /// Parses a library from a text. Each line has a SMILES, a blank, and the fragment's stems, separated
    /// by commas. Empty lines and lines that begin with `#` are skipped.
    ///
    /// A stem is the index of an atom, counted from 0 in the order of the SMILES. An atom is listed once
    /// for each attachment that it has room for. An attachment replaces a hydrogen, so `C 0,0,0` is a
    /// carbon that has room for three attachments and keeps one hydrogen.
    ///
    /// # Errors
    /// [`Error::Parse`] with the invalid lines (at most ten) and their problems: the SMILES isn't a
    /// molecule, there are no stems, a stem isn't an atom or is listed more often than the atom has
    /// hydrogens, or the fragment occurs twice. [`Error::Config`] for a text without fragments, for more
    /// than 4,096 fragments, and for more than 4,096 stems of all fragments together.
    pub fn parse(text: &str) -> Result<Self> {
        let mut fragments: Vec<Fragment> = Vec::new();
        let mut lines = Vec::new();
        let mut wrong = Vec::new();
        for (line, content) in (1..).zip(text.lines().map(str::trim)) {
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let fragment = parse_line(content).and_then(|fragment| {
                match fragments.iter().position(|other| other.is_same(&fragment)) {
                    Some(k) => Err(format!(
                        "{} with these stems is listed twice, first in line {}",
                        fragment.smiles(),
                        lines[k]
                    )),
                    None => Ok(fragment),
                }
            });
            match fragment {
                Err(problem) => wrong.push((line, problem)),
                Ok(fragment) => {
                    fragments.push(fragment);
                    lines.push(line);
                }
            }
        }
        let Some((first, mut problem)) = wrong.first().cloned() else {
            return Self::from_fragments(fragments);
        };
        for (line, more) in wrong.iter().take(NAMED).skip(1) {
            problem += &format!("; line {line}: {more}");
        }
        if wrong.len() > NAMED {
            problem += &format!("; and {} more lines have problems", wrong.len() - NAMED);
        }
        Err(Error::parse(first, problem, "a SMILES, then the numbers of its stems: SMILES stem,stem,..."))
    }

    /// Reads a library from a file in the format of [`parse`](Self::parse).
    ///
    /// # Errors
    /// [`Error::Io`] if the file can't be read; errors of [`parse`](Self::parse).
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
        Self::parse(&text)
    }

    /// Returns the fragments of the library. In a state (a tree of fragments) the class of a node is the
    /// index of its fragment in this list.
    #[must_use]
    pub fn fragments(&self) -> &[Fragment] {
        &self.0.fragments
    }

    /// Returns the stems (attachment atoms) of all fragments of the library.
    pub(super) fn ports(&self) -> &[Port] {
        &self.0.ports
    }

    /// Returns the largest number of stems (attachment atoms) that a fragment of the library has.
    #[must_use]
    pub fn max_stems(&self) -> usize {
        self.0.max_stems
    }
}

fn parse_line(line: &str) -> std::result::Result<Fragment, String> {
    let mut parts = line.split_whitespace();
    let (Some(smiles), Some(stems), None) = (parts.next(), parts.next(), parts.next()) else {
        return Err(format!("{line:?} doesn't have two words"));
    };
    let number = |stem: &str| stem.parse().map_err(|_| format!("{stem:?} isn't the number of an atom"));
    let stems: Vec<usize> = stems.split(',').map(number).collect::<std::result::Result<_, _>>()?;
    Fragment::new(smiles, &stems).map_err(|error| error.to_string())
}
