use gfn::env::{Reward, VectorRules, VectorStates};
use gfn::runtime::Threads;
use gfn::tensor::log_sum_exp;
use gfn::{Error, Result};

use super::PhyloTree;
use crate::rewards;

/// A reward `log R = (offset - parsimony) / temperature`. The parsimony is the smallest number of mutations
/// by which a tree explains its species' sequences (Fitch, *Toward Defining the Course of Evolution*, 1971).
///
/// A forest's parsimony is the sum over its trees, so that unfinished states have a partial reward, too
/// ([`partial_log_reward`](Reward::partial_log_reward)). Each join of two trees adds the mutations at the new
/// root.
///
/// ```
/// use gfn::env::Reward;
/// use gfn_gym::phylo_tree::{ParsimonyReward, PhyloTree};
/// let rules = PhyloTree::new(4)?;
/// let reward = ParsimonyReward::dna(&rules, &["AC", "AC", "GC", "GT"], 0.0, 1.0)?;
/// let fewest = reward.parsimony(&rules.all_trees().unwrap())?.into_iter().min();
/// assert_eq!(fewest, Some(2));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct ParsimonyReward {
    env: PhyloTree,
    /// The set of characters that each species may have at each site (position in its sequence), a bit per
    /// character. The table is `[n, sites]`, row by row.
    sets: Vec<u8>,
    sites: usize,
    offset: f64,
    temperature: f64,
}

impl ParsimonyReward {
    /// Builds the reward from sequences of equal length, one per species. Each byte of a sequence is the set
    /// of the characters that the site may have, a bit per character.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one sequence per species, all of the same length, which is at least
    /// 1; [`Error::Config`] for a site without a possible character, and unless `offset` is finite and
    /// `temperature` is positive and finite.
    pub fn new<S: AsRef<[u8]>>(
        env: &PhyloTree,
        sequences: &[S],
        offset: f64,
        temperature: f64,
    ) -> Result<Self> {
        let sites = sequences.first().map_or(0, |sequence| sequence.as_ref().len());
        let other = sequences.iter().map(|sequence| sequence.as_ref().len()).find(|&len| len != sites);
        if sequences.len() != env.n() || other.is_some() || sites == 0 {
            return Err(Error::shape(
                "the sequences",
                [env.n() as i64, sites.max(1) as i64],
                [sequences.len() as i64, other.unwrap_or(sites) as i64],
                "give one sequence per species, all of one length of at least one site",
            ));
        }
        let sets: Vec<u8> = sequences.iter().flat_map(|sequence| sequence.as_ref().iter().copied()).collect();
        if let Some(place) = sets.iter().position(|&set| set == 0) {
            return Err(Error::config(
                "a site of a sequence",
                format!("no state for species {} at site {}", place / sites, place % sites),
                "at least one state; if nothing is known about a site, all states",
            ));
        }
        if !offset.is_finite() {
            return Err(Error::config("offset", offset, "a finite number"));
        }
        Ok(Self {
            env: *env,
            sets,
            sites,
            offset,
            temperature: rewards::positive("temperature", temperature)?,
        })
    }

    /// Builds the reward from sequences of DNA or RNA in the letters of IUPAC. An ambiguous letter means the
    /// set of its bases. A gap (`-`), `?` and `N` mean the set of all bases.
    ///
    /// # Errors
    /// [`Error::Config`] for another letter, and the errors of [`new`](Self::new).
    pub fn dna<S: AsRef<str>>(
        env: &PhyloTree,
        sequences: &[S],
        offset: f64,
        temperature: f64,
    ) -> Result<Self> {
        let sequence = |text: &S| text.as_ref().chars().map(nucleotides).collect::<Result<Vec<u8>>>();
        let sets = sequences.iter().map(sequence).collect::<Result<Vec<_>>>()?;
        Self::new(env, &sets, offset, temperature)
    }

    /// Returns for each state the smallest number of mutations that explains its forest, which is the sum
    /// over the trees of the forest.
    ///
    /// # Errors
    /// [`Error::Shape`] for states of another number of species; [`Error::Contract`] for a row that is no
    /// forest of these species.
    pub fn parsimony(&self, states: &VectorStates) -> Result<Vec<u64>> {
        rewards::check_width(states, self.env.entries())?;
        let rows: Vec<&[u16]> = states.rows().collect();
        Threads::try_map(&rows, 64, |row| {
            let children = self.env.children(row).ok_or_else(|| {
                Error::contract(
                    "states must be forests that the environment builds: use states of this environment or \
                     of its files",
                    format!("{row:?} isn't such a forest"),
                )
            })?;
            let mut total = 0;
            for species in (0..self.env.n()).filter(|&species| super::env::is_smallest(row, species)) {
                self.fitch(&children, self.env.root(row, species), &mut total);
            }
            Ok(total)
        })
    }

    /// Returns for each site the set of characters that the node may have if as few mutations as possible are
    /// to occur below it. Adds the number of these mutations to `total`.
    fn fitch(&self, children: &[Vec<usize>], node: usize, total: &mut u64) -> Vec<u8> {
        let Some(name) = self.env.name(node) else {
            return self.sets[node * self.sites..(node + 1) * self.sites].to_vec();
        };
        let mut below =
            children[name].iter().map(|&child| self.fitch(children, child, total)).collect::<Vec<_>>();
        let (Some(right), Some(mut left)) = (below.pop(), below.pop()) else {
            return Vec::new();
        };
        let mut mutations = 0u32;
        for (a, b) in left.iter_mut().zip(right) {
            let common = *a & b;
            mutations += u32::from(common == 0);
            *a = if common == 0 { *a | b } else { common };
        }
        *total += u64::from(mutations);
        left
    }

    fn log_of(&self, parsimony: u64) -> f64 {
        (self.offset - parsimony as f64) / self.temperature
    }

    /// Returns log Z by enumeration of all trees; `None` for more than 8 species.
    #[must_use]
    pub fn log_z(&self) -> Option<f64> {
        let parsimony = self.parsimony(&self.env.all_trees()?).ok()?;
        Some(log_sum_exp(parsimony.iter().map(|&mutations| self.log_of(mutations))))
    }
}

/// Returns the set of bases that a letter means, as bits. The bases A, C, G and T are the bits 0 to 3.
fn nucleotides(letter: char) -> Result<u8> {
    Ok(match letter.to_ascii_uppercase() {
        'A' => 0b0001,
        'C' => 0b0010,
        'G' => 0b0100,
        'T' | 'U' => 0b1000,
        'M' => 0b0011,
        'R' => 0b0101,
        'W' => 0b1001,
        'S' => 0b0110,
        'Y' => 0b1010,
        'K' => 0b1100,
        'V' => 0b0111,
        'H' => 0b1011,
        'D' => 0b1101,
        'B' => 0b1110,
        'N' | '-' | '?' => 0b1111,
        _ => {
            return Err(Error::config(
                "a letter of a sequence",
                format!("{letter:?}"),
                "a base (A, C, G, T, U), another letter of IUPAC for several of them, a gap (-) or ?",
            ));
        }
    })
}

impl Reward<VectorStates> for ParsimonyReward {
    fn log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        let forest = states.rows().find(|row| !VectorRules::can_end(&self.env, row));
        match forest.filter(|_| states.width() == self.env.entries()) {
            Some(row) => Err(Error::config(
                "a state to be rewarded",
                self.env.newick(row),
                "one tree; use the partial reward for forests of several trees",
            )),
            None => Ok(self.parsimony(states)?.into_iter().map(|mutations| self.log_of(mutations)).collect()),
        }
    }
    fn partial_log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Option<Vec<f64>>> {
        Ok(Some(self.parsimony(states)?.into_iter().map(|mutations| self.log_of(mutations)).collect()))
    }
}
