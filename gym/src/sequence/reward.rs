use std::collections::HashMap;
use std::path::Path;

use gfn::env::{Reward, TensorReward, VectorStates};
use gfn::tensor::log_sum_exp;
use gfn::{Error, Result};
use tch::{Kind, Tensor};

use super::{Alphabet, TokenSequence};
use crate::rewards::{self, DeviceTables};

/// A reward of sequences that a table lists.
///
/// The table is text with the header `sequence,reward`, and below it a line `SEQUENCE,REWARD` per sequence.
/// Empty lines are skipped. Rewards are above 0 and finite.
///
/// ```
/// use gfn::env::Reward;
/// use gfn_gym::sequence::{Alphabet, TableReward, TokenSequence};
/// let sequence = TokenSequence::fixed(2, 2)?;
/// let table = "sequence,reward\nab,2\nbb,1\n";
/// let reward = TableReward::parse(&sequence, &Alphabet::new("ab")?, table, Some(0.5))?;
/// let states = sequence.states_of(&[[0, 1], [0, 0]])?;
/// assert_eq!(reward.log_reward(&states, None)?, [2f64.ln(), 0.5f64.ln()]);
/// assert!((reward.log_z() - 4f64.ln()).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct TableReward {
    env: TokenSequence,
    /// The log-reward of each listed sequence. The keys are the entries of the sequence's state.
    log_rewards: HashMap<Vec<u16>, f64>,
    /// The log-reward of every sequence that the table doesn't list; `None` if the table lists all sequences.
    log_floor: Option<f64>,
    tables: DeviceTables<3>,
}

/// The first line of a table of rewards.
const HEADER: &str = "sequence,reward";

impl TableReward {
    /// Reads a table from a file; `floor` is the reward of sequences that the table doesn't list.
    ///
    /// # Errors
    /// [`Error::Io`] if the file can't be read; [`Error::File`] if [`parse`](Self::parse) refuses its text.
    pub fn read(env: &TokenSequence, alphabet: &Alphabet, path: &Path, floor: Option<f64>) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
        Self::parse(env, alphabet, &text, floor).map_err(|error| {
            Error::file(
                path,
                error,
                "write `sequence,reward` on the first line, and a sequence with its reward on each other \
                 line",
            )
        })
    }

    /// Reads a table from a text; `floor` is the reward of sequences that the table doesn't list.
    ///
    /// # Errors
    /// [`Error::Parse`] with the line number for a line in another format, for a sequence that is repeated or
    /// that no trajectory of the environment ends in, and for a reward that isn't above 0 and finite.
    /// [`Error::Config`] for an alphabet of another size than the environment's, for an invalid floor, and
    /// for a table without a floor that doesn't list all sequences.
    pub fn parse(env: &TokenSequence, alphabet: &Alphabet, text: &str, floor: Option<f64>) -> Result<Self> {
        if alphabet.n_tokens() != env.n_tokens() {
            return Err(Error::config(
                "the alphabet of a table",
                format!("{} characters for {} tokens", alphabet.n_tokens(), env.n_tokens()),
                "one character for each token",
            ));
        }
        let log_floor =
            floor.map(|floor| rewards::positive("the reward of unlisted sequences", floor)).transpose()?;
        let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let refuse = |line, problem| Err(Error::parse(line, problem, "a line `sequence,reward`"));
        match lines.next() {
            Some((_, header)) if header.trim_start_matches('\u{feff}').trim() == HEADER => {}
            Some((line, other)) => return refuse(line, format!("the header is {other:?}")),
            None => return refuse(1, "there is no header".into()),
        }
        let mut log_rewards = HashMap::new();
        for (line, content) in lines {
            let Some((sequence, reward)) = content.split_once(',') else {
                return refuse(line, format!("{content:?} has no comma"));
            };
            let tokens = match alphabet.encode(sequence.trim()) {
                Ok(tokens) => tokens,
                Err(error) => return refuse(line, error.to_string()),
            };
            if !env.lengths().contains(&tokens.len()) {
                return refuse(
                    line,
                    format!(
                        "{sequence:?} has {} tokens, but sequences of this environment have {:?}",
                        tokens.len(),
                        env.lengths()
                    ),
                );
            }
            let value = match reward.trim().parse::<f64>() {
                Ok(value) if value > 0.0 && value.is_finite() => value,
                _ => return refuse(line, format!("the reward {reward:?} is not a finite number above 0")),
            };
            let state = env.states_of(&[tokens])?;
            if log_rewards.insert(state.row(0).to_vec(), value.ln()).is_some() {
                return refuse(line, format!("{sequence:?} is listed twice"));
            }
        }
        if log_floor.is_none() && env.n_terminal() != Some(log_rewards.len() as u64) {
            let all = env.n_terminal().map_or("more than 2^64".into(), |n| n.to_string());
            return Err(Error::config(
                "the number of sequences in the table",
                format!("{} of {all}", log_rewards.len()),
                "every sequence in which a trajectory can end, or a floor for the other sequences",
            ));
        }
        let log_floor = log_floor.map(f64::ln);
        Ok(Self { env: *env, log_rewards, log_floor, tables: DeviceTables::default() })
    }

    /// Raises every reward R to the power `exponent`, an inverse temperature. The floor is raised, too.
    ///
    /// # Errors
    /// [`Error::Config`] unless the exponent is above 0 and finite.
    pub fn with_exponent(mut self, exponent: f64) -> Result<Self> {
        let exponent = rewards::positive("the reward exponent", exponent)?;
        self.log_rewards.values_mut().chain(&mut self.log_floor).for_each(|value| *value *= exponent);
        self.tables = DeviceTables::default();
        Ok(self)
    }

    /// Returns the place value of each entry of a state, if a state is read as a number whose digits are its
    /// entries. `None` if a state gives a number of 2^63 or more.
    fn place_values(&self) -> Option<Vec<i64>> {
        let base = self.env.values() as i64;
        let n = self.env.entries() as u32;
        base.checked_pow(n)?;
        Some((0..n).rev().map(|place| base.pow(place)).collect())
    }

    /// Returns the place values, the numbers of the listed sequences in ascending order, and their
    /// log-rewards. A last number, which no sequence has, ends the list.
    fn sorted(&self) -> [Tensor; 3] {
        let places = self.place_values().unwrap_or_default();
        let number =
            |row: &[u16]| row.iter().zip(&places).map(|(&entry, place)| i64::from(entry) * place).sum();
        let mut listed: Vec<(i64, f64)> =
            self.log_rewards.iter().map(|(row, &log_reward)| (number(row), log_reward)).collect();
        listed.push((i64::MAX, f64::NAN));
        listed.sort_unstable_by_key(|(number, _)| *number);
        let (numbers, log_rewards): (Vec<i64>, Vec<f64>) = listed.into_iter().unzip();
        [Tensor::from_slice(&places), Tensor::from_slice(&numbers), Tensor::from_slice(&log_rewards)]
    }

    /// The number of sequences that the table lists.
    #[must_use]
    pub fn n_listed(&self) -> usize {
        self.log_rewards.len()
    }

    /// Returns log Z. Z is the sum of the rewards of all finished sequences; sequences that the table doesn't
    /// list have the floor as reward.
    #[must_use]
    pub fn log_z(&self) -> f64 {
        let n_tokens = self.env.n_tokens() as f64;
        // The number of all sequences is computed in f64, because it may be above 2^64. If f64 overflows, the
        // logarithm of the number is computed.
        let n_all: f64 = self.env.lengths().map(|len| n_tokens.powi(len as i32)).sum();
        let log_others = if n_all.is_finite() {
            (n_all - self.log_rewards.len() as f64).max(0.0).ln()
        } else {
            // The number of all sequences overflows f64. The number of listed sequences isn't subtracted from
            // it, because the difference would be lost in rounding.
            log_sum_exp(self.env.lengths().map(|len| len as f64 * n_tokens.ln()))
        };
        let others = self.log_floor.map_or(f64::NEG_INFINITY, |floor| floor + log_others);
        // Rewards are sorted before they are summed. Otherwise the order of the hash map, which differs from
        // run to run, would change the last digit of the sum.
        let mut listed: Vec<f64> = self.log_rewards.values().copied().collect();
        listed.sort_by(f64::total_cmp);
        log_sum_exp(listed.into_iter().chain([others]))
    }
}

impl Reward<VectorStates> for TableReward {
    fn log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        rewards::score_rows(states, self.env.entries(), |row| {
            let ended = self.env.lengths().contains(&super::env::filled(row));
            ended.then(|| self.log_rewards.get(row).copied().or(self.log_floor)).flatten()
        })
    }
    fn on_tensors(&self) -> Option<&dyn TensorReward> {
        self.place_values().map(|_| self as &dyn TensorReward)
    }
}

impl TensorReward for TableReward {
    fn log_rewards(&self, states: &Tensor) -> Result<Tensor> {
        let [places, numbers, log_rewards] = self.tables.get(states.device(), || self.sorted());
        let number = (states * places).sum_dim_intlist(1, false, Kind::Int64);
        let index = number.searchsorted(&numbers, false, false, "left", None::<Tensor>);
        let is_listed = numbers.take(&index).eq_tensor(&number);
        let floor = self.log_floor.unwrap_or(f64::NAN);
        Ok(log_rewards.take(&index).where_scalarother(&is_listed, floor))
    }
}
