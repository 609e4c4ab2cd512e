//! Markov chains that propose, accept and exchange finished objects.

use gfn::env::{DiscreteEnv, Reward, Rows};
use gfn::policy::UniformPolicy;
use gfn::rollout::Sampler;
use gfn::{Error, Result, Rng};

use super::moves::{LegalMoves, log_corrections};
use super::propose::{ProposalBatch, check_proposals, default_proposals};
use super::{ChainConfig, Proposal};

/// Objects whose log-reward is known.
#[derive(Clone, Debug)]
pub struct ScoredObjects<S> {
    /// The finished objects.
    pub objects: S,
    /// The log-reward of each object.
    pub log_rewards: Vec<f64>,
}

impl<S: Rows> ScoredObjects<S> {
    /// Returns an empty list. `like` is any batch of the same environment.
    pub(super) fn empty(like: &S) -> Self {
        Self { objects: like.select(&[]), log_rewards: Vec::new() }
    }

    pub(super) fn append(&mut self, objects: S, log_rewards: &[f64]) {
        self.objects.append(objects);
        self.log_rewards.extend_from_slice(log_rewards);
    }

    /// Returns the objects at these indices.
    pub(super) fn select(&self, rows: &[usize]) -> Self {
        let log_rewards = rows.iter().map(|&row| self.log_rewards[row]).collect();
        Self { objects: self.objects.select(rows), log_rewards }
    }

    /// Returns each object `n` times.
    pub(super) fn repeated(&self, n: usize) -> Self {
        let rows: Vec<usize> = (0..self.log_rewards.len()).flat_map(|row| vec![row; n]).collect();
        self.select(&rows)
    }
}

/// What chains have done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChainCounts {
    /// The number of rounds.
    pub rounds: u64,
    /// The number of objects for which the reward was computed.
    pub reward_calls: u64,
    /// The number of changes of the log-reward that were computed instead
    /// ([`ChainConfig::score_changes`]).
    pub changes: u64,
    /// The number of proposed objects, without proposals of the chain's own object.
    pub proposed: u64,
    /// The number of proposed objects that were accepted.
    pub accepted: u64,
    /// The number of pairs of neighbours that exchanged their objects.
    pub exchanged: u64,
}

/// Markov chains over the finished objects of an environment. A chain samples objects in proportion to R to
/// the power of the chain, corrected for symmetry and for objects of several states like the target of
/// training. All chains make one proposal per [`round`](Self::round), as one batch.
///
/// Chains are divided into ladders, which have one chain for each power ([`ChainConfig::powers`]). One power
/// gives Metropolis-Hastings. With several powers, neighbours k, k + 1 of a ladder exchange objects x, y with
/// the acceptance probability `min(1, (R(y) / R(x))^(b_k - b_(k+1)))` (replica exchange, or parallel
/// tempering), which keeps the product of the chains' distributions. With more than two powers even and odd k
/// take turns.
///
/// If a chain starts at a sample of its distribution, it stays a sample. Otherwise its distribution
/// approaches the target, provided that proposals lead from every object to every other in some number of
/// steps.
///
/// ```
/// use gfn::env::{Env, Rows, Slots};
/// use gfn::{Rng, examples::{Chain, Positions}, policy::UniformPolicy, rollout::Sampler};
/// use gfn_extras::chains::{ChainConfig, Chains};
/// let (env, mut rng) = (Chain::new(5), Rng::seeded(0));
/// let reward = |s: &Positions, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> {
///     Ok(s.0.iter().map(|&x| f64::from(x)).collect())
/// };
/// // Two ladders of two chains, which sample R and the square root of R.
/// let config = ChainConfig { powers: vec![1.0, 0.5], ..ChainConfig::default() };
/// let start = Sampler::new(&env, &UniformPolicy).walks(4, &mut rng)?.terminal;
/// let mut chains = Chains::new(&env, config, start, None)?;
/// for _ in 0..20 {
///     chains.round(&env, &reward, None, &mut rng)?;
/// }
/// assert_eq!(chains.objects().0.len(), 4);
/// assert_eq!(chains.counts().rounds, 20);
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct Chains<E: DiscreteEnv> {
    pub(super) config: ChainConfig,
    /// The object of each chain. The chain of power `k` of ladder `l` is row `l * powers.len() + k`.
    pub(super) objects: E::States,
    /// The log-reward of each object; `None` if it isn't known, which occurs in chains of power 0.
    pub(super) log_rewards: Vec<Option<f64>>,
    /// The correction of each object's log-reward for symmetry and for objects of several states.
    corrections: Vec<f64>,
    /// The legal moves of each object; `None` if they weren't listed since the object was accepted.
    pub(super) moves: Vec<Option<LegalMoves>>,
    pub(super) counts: ChainCounts,
}

impl<E: DiscreteEnv> std::fmt::Debug for Chains<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Chains");
        out.field("config", &self.config).field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl<E: DiscreteEnv> Chains<E> {
    /// Creates chains that start at these finished objects, one object per chain, ladder by ladder.
    /// `log_rewards` are the log-rewards of the objects if they are known; otherwise the first round computes
    /// them.
    ///
    /// # Errors
    /// [`Error::Config`] for bad settings and for a number of objects that isn't a positive multiple of the
    /// number of powers, and for proposals that can't change the first entries of objects
    /// ([`Proposal::BackAndForth`]); [`Error::Contract`] for an object that isn't finished, and for a ladder
    /// with objects of several instances; [`Error::Shape`] unless there is one log-reward per object.
    pub fn new(
        env: &E,
        config: ChainConfig,
        start: E::States,
        log_rewards: Option<Vec<f64>>,
    ) -> Result<Self> {
        config.check()?;
        let n = start.len();
        let n_powers = config.powers.len();
        if n == 0 || !n.is_multiple_of(n_powers) {
            let expected = "a positive multiple of the number of powers, one object per chain";
            return Err(Error::config("the number of objects at which chains start", n, expected));
        }
        let n_known = log_rewards.as_ref().map_or(n, Vec::len);
        if n_known != n {
            let remedy = "give one log-reward per object, or none at all";
            return Err(Error::shape(
                "log-rewards of the chains' objects",
                [n as i64],
                [n_known as i64],
                remedy,
            ));
        }
        let is_mixed = |ladder: &[u32]| ladder.iter().any(|instance| *instance != ladder[0]);
        if env.instances(&start).chunks(n_powers).any(is_mixed) {
            let detail = "a ladder has objects of different instances; give its chains objects of the same \
                instance";
            return Err(Error::contract("the chains of a ladder have the same target", detail));
        }
        let log_rewards = log_rewards.map_or(vec![None; n], |known| known.into_iter().map(Some).collect());
        let mut out = Self {
            corrections: Vec::new(),
            moves: Vec::new(),
            config,
            objects: start,
            log_rewards,
            counts: ChainCounts::default(),
        };
        out.refresh(env)?;
        if out.config.proposals.is_empty() {
            out.config.proposals = default_proposals(env, &out.objects)?;
        }
        check_proposals(env, &out.objects, &out.config.proposals)?;
        Ok(out)
    }

    /// Checks that all objects are finished, and computes what is stored besides objects and log-rewards.
    pub(super) fn refresh(&mut self, env: &E) -> Result<()> {
        let moves = LegalMoves::list(env, &self.objects);
        if let Some(row) = moves.iter().position(|moves| !moves.is_finished) {
            let state = env.describe_state(&self.objects, row).unwrap_or_else(|| format!("state {row}"));
            let detail = format!("{state} isn't finished; start chains at terminal states");
            return Err(Error::contract("chains are at finished objects", detail));
        }
        self.moves = moves.into_iter().map(Some).collect();
        self.corrections = log_corrections(env, &self.objects)?;
        Ok(())
    }

    /// Returns the settings, with the proposals that are used.
    #[must_use]
    pub fn config(&self) -> &ChainConfig {
        &self.config
    }

    /// Returns the object of each chain, ladder by ladder, in the order of the powers.
    #[must_use]
    pub fn objects(&self) -> &E::States {
        &self.objects
    }

    /// Returns the log-reward of each chain's object; `None` if it isn't known, which occurs in chains of
    /// power 0.
    #[must_use]
    pub fn log_rewards(&self) -> &[Option<f64>] {
        &self.log_rewards
    }

    /// Returns what the chains have done so far.
    #[must_use]
    pub fn counts(&self) -> ChainCounts {
        self.counts
    }

    /// Returns the number of chains.
    pub(super) fn len(&self) -> usize {
        self.log_rewards.len()
    }

    /// Returns the power of a chain.
    pub(super) fn power(&self, row: usize) -> f64 {
        self.config.powers[row % self.config.powers.len()]
    }

    /// Replaces the objects of the chains `rows`.
    pub(super) fn replace(&mut self, env: &E, rows: &[usize], new: ScoredObjects<E::States>) -> Result<()> {
        self.put(rows, new.objects);
        for (&row, log_reward) in rows.iter().zip(new.log_rewards) {
            self.log_rewards[row] = Some(log_reward);
        }
        self.refresh(env)
    }

    /// Replaces the objects of the chains `rows`, and nothing else.
    fn put(&mut self, rows: &[usize], new: E::States) {
        let n = self.len();
        let mut order: Vec<usize> = (0..n).collect();
        for (k, &row) in rows.iter().enumerate() {
            order[row] = n + k;
        }
        self.objects.append(new);
        self.objects = self.objects.select(&order);
    }

    /// Makes one proposal in each chain, and exchanges objects between neighbours of each ladder if it is
    /// their turn. Returns all objects whose log-reward was computed, accepted or not. `policy` is the
    /// sampler of [`Proposal::Policy`].
    ///
    /// # Errors
    /// [`Error::Missing`] for proposals of a policy without `policy`, and for changes that the reward can't
    /// score; [`Error::Contract`] if the sum of scored changes differs from the change of the reward; the
    /// errors of environment, reward and policy.
    pub fn round(
        &mut self,
        env: &E,
        reward: &dyn Reward<E::States>,
        policy: Option<&Sampler<'_, E>>,
        rng: &mut Rng,
    ) -> Result<ScoredObjects<E::States>> {
        let mut scored = ScoredObjects::empty(&self.objects);
        let unknown: Vec<usize> = (0..self.len()).filter(|&row| self.power(row) > 0.0).collect();
        self.score_current(reward, unknown, &mut scored)?;
        let proposed = match self.draw_proposal(rng) {
            Proposal::OneMove => self.propose_move(env, rng)?,
            Proposal::BackAndForth { max_back } => {
                self.propose_paths(&Sampler::new(env, &UniformPolicy), max_back, rng)?
            }
            Proposal::Policy { max_back } => {
                let remedy = "give `Chains::round` a sampler, or choose other proposals";
                let missing = || Error::missing("chains that propose by a policy", "a policy", remedy);
                self.propose_paths(policy.ok_or_else(missing)?, max_back, rng)?
            }
        };
        let new = self.score_proposed(reward, &proposed)?;
        let known: Vec<usize> = (0..new.len()).filter(|&k| new[k].is_some()).collect();
        scored.append(proposed.objects.select(&known), &new.iter().flatten().copied().collect::<Vec<_>>());
        self.accept(env, proposed, &new, rng)?;
        if self.config.score_changes {
            self.check_changes(env, reward)?;
        }
        self.counts.rounds += 1;
        if self.config.powers.len() > 1
            && self.counts.rounds.is_multiple_of(self.config.exchange_every as u64)
        {
            self.exchange(reward, &mut scored, rng)?;
        }
        Ok(scored)
    }

    /// Accepts or rejects proposals by the Metropolis-Hastings rule. `new` are the log-rewards of the
    /// proposals.
    fn accept(
        &mut self,
        env: &E,
        proposed: ProposalBatch<E::States>,
        new: &[Option<f64>],
        rng: &mut Rng,
    ) -> Result<()> {
        let n = proposed.rows.len();
        let corrections = log_corrections(env, &proposed.objects)?;
        let mut accepted = Vec::new();
        for (k, &row) in proposed.rows.iter().enumerate() {
            let gain =
                new[k].zip(self.log_rewards[row]).map_or(0.0, |(new, old)| self.power(row) * (new - old));
            let log_ratio = gain + corrections[k] - self.corrections[row] + proposed.log_ratios[k];
            if rng.uniform().ln() < log_ratio {
                accepted.push(k);
            }
        }
        let rows: Vec<usize> = accepted.iter().map(|&k| proposed.rows[k]).collect();
        self.put(&rows, proposed.objects.select(&accepted));
        let mut moves: Vec<Option<LegalMoves>> =
            proposed.moves.into_iter().map(|(_, moves)| Some(moves)).collect();
        moves.resize(n, None);
        for (&k, &row) in accepted.iter().zip(&rows) {
            self.log_rewards[row] = new[k];
            self.corrections[row] = corrections[k];
            self.moves[row] = moves[k].take();
        }
        self.counts.proposed += n as u64;
        self.counts.accepted += accepted.len() as u64;
        Ok(())
    }

    /// Exchanges objects between neighbours of each ladder, for even and odd pairs in turn if there are both.
    fn exchange(
        &mut self,
        reward: &dyn Reward<E::States>,
        scored: &mut ScoredObjects<E::States>,
        rng: &mut Rng,
    ) -> Result<()> {
        let n_powers = self.config.powers.len();
        let n_turns = if n_powers == 2 { 1 } else { 2 };
        let turn = (self.counts.rounds / self.config.exchange_every as u64) % n_turns;
        let lower: Vec<usize> = (0..self.len())
            .filter(|row| row % n_powers + 1 < n_powers && (row % n_powers) as u64 % 2 == turn)
            .collect();
        self.score_current(reward, lower.iter().flat_map(|&row| [row, row + 1]).collect(), scored)?;
        let mut order: Vec<usize> = (0..self.len()).collect();
        for row in lower {
            let (Some(one), Some(other)) = (self.log_rewards[row], self.log_rewards[row + 1]) else {
                continue;
            };
            if rng.uniform().ln() < (self.power(row) - self.power(row + 1)) * (other - one) {
                self.counts.exchanged += 1;
                order.swap(row, row + 1);
                self.log_rewards.swap(row, row + 1);
                self.corrections.swap(row, row + 1);
                self.moves.swap(row, row + 1);
            }
        }
        self.objects = self.objects.select(&order);
        Ok(())
    }
}
