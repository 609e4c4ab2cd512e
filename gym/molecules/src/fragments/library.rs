use std::path::Path;
use std::sync::Arc;

use gfn::{Error, Result};

use super::Fragment;

/// Common rings and groups, one per line: `SMILES stem,stem,...`.
const STANDARD: &str = include_str!("standard.txt");
/// The published fragments, in the same form.
const BENGIO: &str = include_str!("bengio2021.txt");
const BENGIO_REDUCED: &str = include_str!("bengio2021_18.txt");
/// Lines that are named in an error.
const NAMED: usize = 10;
/// Fragments of a library, and their stems in all: both are columns of logits.
const MAX_COLUMNS: usize = 4_096;

fn refused(got: String, expected: &'static str) -> Error {
    Error::config("a library of fragments", got, expected)
}

/// The fragments that trees are made of; cheap to clone.
///
/// ```
/// use gfn_molecules::fragments::FragmentLibrary;
/// let library = FragmentLibrary::parse("# rings\nc1ccccc1 0,1,2,3,4,5\nN 0,0\n\nC 0\n")?;
/// assert_eq!(library.fragments().len(), 3);
/// let message = FragmentLibrary::parse("C 0\nCl 1").unwrap_err().to_string();
/// assert_eq!(message, "line 2: Cl has 1 atoms, from 0 on, and no stem 1; expected SMILES stem,stem,...");
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FragmentLibrary(Arc<Contents>);

#[derive(PartialEq, Eq, Debug)]
struct Contents {
    fragments: Vec<Fragment>,
    /// Every stem of every fragment: what a new fragment can be attached by.
    ports: Vec<Port>,
    max_stems: usize,
}

/// A stem of a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Port {
    pub(super) fragment: u16,
    pub(super) stem: u8,
}

impl FragmentLibrary {
    /// A library of these fragments.
    ///
    /// # Errors
    /// [`Error::Config`] for none, more than 4,096, more than 4,096 stems in all, or two that are the same:
    /// one tree would be two.
    pub fn new(fragments: Vec<Fragment>) -> Result<Self> {
        let library = Self::of(fragments)?;
        let fragments = library.fragments();
        for (k, fragment) in fragments.iter().enumerate() {
            if let Some(same) = fragments[..k].iter().position(|other| other.is_same(fragment)) {
                let got = format!("one with fragments {same} and {k} the same ({})", fragment.smiles());
                return Err(refused(got, "each fragment, with its stems, once"));
            }
        }
        Ok(library)
    }

    /// Creates a library of fragments that are known to differ.
    fn of(fragments: Vec<Fragment>) -> Result<Self> {
        if !(1..=MAX_COLUMNS).contains(&fragments.len()) {
            return Err(refused(fragments.len().to_string(), "1 to 4,096 fragments"));
        }
        let n_stems: usize = fragments.iter().map(|fragment| fragment.stems().len()).sum();
        if n_stems > MAX_COLUMNS {
            return Err(refused(format!("one of {n_stems} stems"), "at most 4,096 stems in all"));
        }
        let stems = |(k, fragment): (usize, &Fragment)| {
            (0..fragment.stems().len()).map(move |stem| Port { fragment: k as u16, stem: stem as u8 })
        };
        let ports = fragments.iter().enumerate().flat_map(stems).collect();
        let max_stems = fragments.iter().map(|fragment| fragment.stems().len()).max().unwrap_or(0);
        Ok(Self(Arc::new(Contents { fragments, ports, max_stems })))
    }

    /// Common rings and groups: benzene, pyridine and other aromatic rings, saturated ones, amide, ether,
    /// amine, halogens, ...
    ///
    /// # Errors
    /// None in practice: the list is tested.
    pub fn standard() -> Result<Self> {
        Self::parse(STANDARD)
    }

    /// The 72 fragments of Bengio et al. (*Flow Network based Generative Models for Non-Iterative Diverse
    /// Candidate Generation*, NeurIPS 2021), with the atoms that bonds are attached to, as
    /// recursionpharma/gflownet lists them: what `seh_frag` is made of, nine of them at most. Three of
    /// phosphorus and sulphur stand with the hydrogens that RDKit gives them once something is attached, and
    /// one for that.
    ///
    /// # Errors
    /// None in practice: the list is tested.
    pub fn bengio2021() -> Result<Self> {
        Self::parse(BENGIO)
    }

    /// The reduced list of 18 of these in recursionpharma/gflownet, each with one or two stems.
    ///
    /// # Errors
    /// None in practice: the list is tested.
    pub fn bengio2021_reduced() -> Result<Self> {
        Self::parse(BENGIO_REDUCED)
    }

    /// A library from text: on each line a SMILES, a blank, and the stems with commas between them, as
    /// [`Fragment::new`] takes them. Empty lines and those that begin with `#` are read over.
    ///
    /// Stems are atoms, counted from 0 as the SMILES has them, each listed as often as something may be
    /// attached there: an attachment takes the place of a hydrogen, which is why `C 0,0,0` is a carbon with
    /// room for three and one hydrogen left.
    ///
    /// # Errors
    /// [`Error::Parse`] with the lines (ten at most) and what is wrong there: no molecule, no stems, a stem
    /// that is no atom or is listed more often than it has hydrogens, a fragment that is there already.
    /// [`Error::Config`] for no fragment, more than 4,096, or more than 4,096 stems in all.
    pub fn parse(text: &str) -> Result<Self> {
        let mut fragments: Vec<Fragment> = Vec::new();
        let (mut lines, mut wrong) = (Vec::new(), Vec::new());
        for (line, content) in (1..).zip(text.lines().map(str::trim)) {
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let fragment = parse_line(content).and_then(|fragment| {
                match fragments.iter().position(|other| other.is_same(&fragment)) {
                    Some(k) => Err(format!("{} with these stems is that of line {}", fragment.smiles(), lines[k])),
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
        let Some((first, mut problem)) = wrong.first().cloned() else { return Self::of(fragments) };
        for (line, more) in wrong.iter().take(NAMED).skip(1) {
            problem += &format!("; line {line}: {more}");
        }
        if wrong.len() > NAMED {
            problem += &format!("; and {} lines more", wrong.len() - NAMED);
        }
        Err(Error::parse(first, problem, "SMILES stem,stem,..."))
    }

    /// A library from a file, written as [`parse`](Self::parse) takes it.
    ///
    /// # Errors
    /// [`Error::Io`], and those of [`parse`](Self::parse).
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
        Self::parse(&text)
    }

    /// The fragments; a node of a tree has the place of its fragment as its class.
    #[must_use]
    pub fn fragments(&self) -> &[Fragment] {
        &self.0.fragments
    }

    /// Every stem of every fragment.
    pub(super) fn ports(&self) -> &[Port] {
        &self.0.ports
    }

    /// The most stems that a fragment has.
    #[must_use]
    pub fn max_stems(&self) -> usize {
        self.0.max_stems
    }
}

fn parse_line(line: &str) -> std::result::Result<Fragment, String> {
    let mut parts = line.split_whitespace();
    let (Some(smiles), Some(stems), None) = (parts.next(), parts.next(), parts.next()) else {
        return Err(format!("{line:?} isn't two words"));
    };
    let number = |stem: &str| stem.parse().map_err(|_| format!("{stem:?} isn't the number of an atom"));
    let stems: Vec<usize> = stems.split(',').map(number).collect::<std::result::Result<_, _>>()?;
    Fragment::new(smiles, &stems).map_err(|error| error.to_string())
}
