use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tch::Tensor;

use super::diversity::{Cell, Neighbours};
use super::draw::no_object;
use super::priority::{Priority, StoredObject};
use super::ranking::{Rank, Ranking};
use super::sum_tree::SumTree;
use super::{Diversity, Draw, Eviction, RankBy, ReplayConfig};
use crate::condition::Conditions;
use crate::env::{EnumerableEnv, Env, Rows, check_log_rewards};
use crate::rollout::{Container, ReplayEnv, Walks};
use crate::tensor::to_host;
use crate::{Error, Result};

/// A replay buffer, which stores walks ([`Walks`]: a finished object and the actions that led to it) with
/// their log-rewards.
///
/// The states between the initial state and the object aren't stored. A drawn walk can be replayed with its
/// stored actions, or another trajectory to its object can be sampled backwards
/// ([`Sampler::backward`](crate::rollout::Sampler::backward)). A walk may have a condition vector, which the
/// buffer stores, too. Equal objects under different conditions are different entries.
pub struct ReplayBuffer<E: Env> {
    pub(super) config: ReplayConfig,
    pub(super) priority: Option<Arc<dyn Priority>>,
    /// The entries by serial number. An entry that was added earlier has a smaller serial number.
    pub(super) entries: BTreeMap<u64, Entry<E>>,
    /// The weights by which entries are drawn, in a tree whose nodes hold sums of weights. Uniform draws use
    /// only the number of entries.
    pub(super) weights: SumTree,
    /// The entries ranked by reward, and the entries ranked by loss ([`RankBy`]). A ranking that neither
    /// eviction nor drawing needs is empty.
    pub(super) rankings: [Ranking; 2],
    /// The sums of the weights of the first `k` ranks, for each `k`, from which draws by rank choose a rank.
    pub(super) rank_sums: Vec<f64>,
    distinct: Option<(Identity<E>, HashSet<[u64; 2]>)>,
    diversity: Option<(Diversity<E::States>, Neighbours)>,
    pub(super) keeps_paths: bool,
    /// `true` if entries store their actions. Entries may store actions even if draws return no actions.
    pub(super) stores_paths: bool,
    /// An empty list of conditions. It holds the width, dtype and device of the conditions that were added
    /// last. Conditions of drawn walks get the same dtype and device. `None` if the walks added last had no
    /// conditions.
    empty_conditions: Option<Conditions>,
    pub(super) added: u64,
}

/// An object stored in a buffer, with its actions, condition, reward and loss.
pub(super) struct Entry<E: Env> {
    /// The actions that lead to the object; empty if the buffer doesn't store actions.
    pub(super) actions: E::Actions,
    pub(super) terminal: E::States,
    pub(super) condition: Vec<f64>,
    /// The grid cell of the object's vector, in a buffer with a minimum distance between objects.
    cell: Cell,
    pub(super) object: StoredObject,
}

/// A function that returns a hash of an object and its condition.
type Identity<E> = fn(&E, &<E as Env>::States, &[f64]) -> [u64; 2];

/// Returns a hash of 128 bits for an object and its condition. The probability that any two among a million
/// objects have the same hash is about 1e-27.
fn identity<E: EnumerableEnv>(env: &E, state: &E::States, condition: &[f64]) -> [u64; 2] {
    let key = env.keys(state);
    [0u8, 1].map(|half| {
        let mut hasher = DefaultHasher::new();
        (half, &key).hash(&mut hasher);
        // Adding 0 turns -0 into 0, so that -0 and 0 have the same hash.
        for value in condition {
            (value + 0.0).to_bits().hash(&mut hasher);
        }
        hasher.finish()
    })
}

impl<E: Env> std::fmt::Debug for ReplayBuffer<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplayBuffer")
            .field("config", &self.config)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<E: Env> ReplayBuffer<E> {
    /// Creates an empty buffer that may hold the same object several times.
    ///
    /// # Errors
    /// [`Error::Config`] for a capacity of 0, for an exponent that isn't finite, and for a negative exponent
    /// of draws by rank; [`Error::Missing`] for draws by a custom rule, because a buffer with a custom rule
    /// is created by `by_priority`.
    pub fn new(config: ReplayConfig) -> Result<Self> {
        if config.draw == Draw::Custom {
            return Err(Error::missing(
                "a buffer that draws by a custom rule",
                "the rule",
                "create the buffer by `ReplayBuffer::by_priority`",
            ));
        }
        Self::with_rule(config, None)
    }

    pub(super) fn with_rule(config: ReplayConfig, priority: Option<Arc<dyn Priority>>) -> Result<Self> {
        config.check()?;
        Ok(Self {
            config,
            priority,
            entries: BTreeMap::new(),
            weights: SumTree::default(),
            rankings: Default::default(),
            rank_sums: vec![0.0],
            distinct: None,
            diversity: None,
            keeps_paths: true,
            stores_paths: true,
            empty_conditions: None,
            added: 0,
        })
    }

    /// Creates an empty buffer that holds each finished object at most once under each condition.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn distinct(config: ReplayConfig) -> Result<Self>
    where
        E: EnumerableEnv,
    {
        Ok(Self::new(config)?.without_duplicates())
    }

    /// Makes an empty buffer hold each finished object at most once under each condition.
    #[must_use]
    pub fn without_duplicates(self) -> Self
    where
        E: EnumerableEnv,
    {
        Self { distinct: Some((identity, HashSet::new())), ..self }
    }

    /// Makes a full buffer accept an object only if its distance to every stored object exceeds a cutoff.
    /// Objects that were added earlier in the same call count as stored. With
    /// [`Eviction::BestReward`](super::Eviction::BestReward) the objects of a batch are added in descending
    /// order of reward, so that the best of several close objects is stored.
    #[must_use]
    pub fn diverse(mut self, diversity: Diversity<E::States>) -> Self {
        let mut neighbours = Neighbours::default();
        for (&serial, entry) in &mut self.entries {
            let vector = diversity.vector(&entry.terminal, &entry.condition);
            entry.cell = diversity.cell(&vector);
            neighbours.insert(entry.cell, serial, &vector);
        }
        self.diversity = Some((diversity, neighbours));
        self
    }

    /// Makes draws return terminal states only, without actions. Trajectories to drawn objects must then be
    /// sampled backwards, and objects without actions can be added. In an environment up to isomorphism the
    /// buffer still stores actions for each object, because checkpoints need actions to restore the labels of
    /// nodes.
    #[must_use]
    pub fn terminal_only(mut self) -> Self {
        self.keeps_paths = false;
        self
    }

    /// Creates an empty buffer with the same settings.
    pub(super) fn emptied(&self) -> Result<Self> {
        Ok(Self {
            distinct: self.distinct.as_ref().map(|(identity, _)| (*identity, HashSet::new())),
            diversity: self
                .diversity
                .as_ref()
                .map(|(diversity, _)| (diversity.clone(), Neighbours::default())),
            keeps_paths: self.keeps_paths,
            ..Self::with_rule(self.config, self.priority.clone())?
        })
    }

    /// Returns the buffer's settings.
    #[must_use]
    pub fn config(&self) -> &ReplayConfig {
        &self.config
    }

    /// Returns `true` if drawn walks contain their actions.
    #[must_use]
    pub fn keeps_paths(&self) -> bool {
        self.keeps_paths
    }

    /// Returns the number of stored objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if the buffer holds no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the stored log-rewards, in the order in which their objects were added.
    pub fn log_rewards(&self) -> impl Iterator<Item = f64> + '_ {
        self.entries.values().map(|entry| entry.object.log_reward)
    }

    /// Returns all stored walks, the oldest first; `None` if the buffer is empty.
    #[must_use]
    pub fn walks(&self) -> Option<Walks<E>> {
        self.gather(self.entries.values(), self.keeps_paths).ok()
    }

    /// Returns the condition of each walk, which is an empty vector for walks without conditions. Checks that
    /// the conditions are finite and have the width of the stored conditions.
    pub(super) fn take_conditions(&mut self, walks: &Walks<E>) -> Result<Vec<Vec<f64>>> {
        let n = walks.len();
        let known = self.empty_conditions.as_ref().filter(|_| !self.is_empty());
        Conditions::join((known, self.len()), (walks.conditions.as_ref(), n))?;
        let values = walks.conditions().map_or(Vec::new(), to_host);
        let width = values.len() / n.max(1);
        if let Some(place) = values.iter().position(|value| !value.is_finite()) {
            let remedy = "give conditions that are finite numbers";
            return Err(Error::non_finite("condition", place / width, values[place], remedy));
        }
        self.empty_conditions = walks.conditions.as_ref().map(|conditions| conditions.pick(&[]));
        Ok((0..n).map(|i| values[i * width..(i + 1) * width].to_vec()).collect())
    }

    /// Adds one walk if the buffer accepts it, and evicts an entry if the buffer is full. Returns `true` if
    /// the walk was added.
    pub(super) fn admit(&mut self, env: &E, walk: Walks<E>, condition: Vec<f64>, log_reward: f64) -> bool {
        let Walks { actions, terminal, .. } = walk;
        let serial = self.added;
        let full = self.len() >= self.config.capacity;
        let best = self.config.eviction == Eviction::BestReward;
        if full && best && self.rankings[0].nth(0).is_some_and(|least| Rank::new(log_reward, serial) < least)
        {
            return false;
        }
        let vector = self.diversity.as_ref().map(|(diversity, _)| diversity.vector(&terminal, &condition));
        if full
            && let (Some((diversity, neighbours)), Some(vector)) = (&self.diversity, &vector)
            && diversity.is_near(vector, neighbours)
        {
            return false;
        }
        if let Some((identity, known)) = &mut self.distinct
            && !known.insert(identity(env, &terminal, &condition))
        {
            return false;
        }
        if full {
            self.evict(env);
        }
        let mut cell = Cell::default();
        if let (Some((diversity, neighbours)), Some(vector)) = (&mut self.diversity, vector) {
            cell = diversity.cell(&vector);
            neighbours.insert(cell, serial, &vector);
        }
        let stored = StoredObject { log_reward, loss: None };
        self.index(serial, stored, true);
        let actions = if self.stores_paths { actions } else { actions.select(&[]) };
        self.entries.insert(serial, Entry { actions, terminal, condition, cell, object: stored });
        let held = self.len();
        if let Draw::RankPrioritised { exponent, .. } = self.config.draw
            && self.rank_sums.len() == held
        {
            self.rank_sums.push(self.rank_sums[held - 1] + (held as f64).powf(-exponent));
        }
        self.added += 1;
        true
    }

    /// Adds an entry to the weights and rankings, by which entries are drawn and evicted. If `adds` is
    /// `false`, the entry is removed from them instead.
    pub(super) fn index(&mut self, serial: u64, stored: StoredObject, adds: bool) {
        let weights = adds.then(|| self.weights_of(stored));
        self.weights.set(serial, weights);
        let best = self.config.eviction == Eviction::BestReward;
        // An object without a recorded loss gets an infinite loss here, so it ranks first by loss.
        let values =
            [(RankBy::Reward, stored.log_reward), (RankBy::Loss, stored.loss.unwrap_or(f64::INFINITY))];
        for (ranking, (by, value)) in self.rankings.iter_mut().zip(values) {
            let rank = Rank::new(value, serial);
            if self.config.draw.ranks_by() == Some(by) || best && by == RankBy::Reward {
                if adds { ranking.insert(rank) } else { ranking.remove(rank) }
            }
        }
    }

    fn evict(&mut self, env: &E) {
        let serial = match self.config.eviction {
            Eviction::Fifo => self.entries.first_key_value().map(|(&serial, _)| serial),
            Eviction::BestReward => self.rankings[0].nth(0).map(Rank::serial),
        };
        let Some((serial, gone)) = serial.and_then(|serial| self.entries.remove_entry(&serial)) else {
            return;
        };
        self.index(serial, gone.object, false);
        if let Some((_, neighbours)) = &mut self.diversity {
            neighbours.remove(gone.cell, serial);
        }
        if let Some((identity, known)) = &mut self.distinct {
            known.remove(&identity(env, &gone.terminal, &gone.condition));
        }
    }

    /// Returns the walks of these entries, with their actions if `with_paths` is `true`.
    pub(super) fn gather<'a>(
        &'a self,
        entries: impl Iterator<Item = &'a Entry<E>>,
        with_paths: bool,
    ) -> Result<Walks<E>> {
        let any =
            self.entries.values().next().ok_or(no_object("taking trajectories from a replay buffer"))?;
        let mut actions = any.actions.select(&[]);
        let mut terminal = any.terminal.select(&[]);
        let mut offsets = vec![0];
        let mut values = Vec::new();
        for entry in entries {
            if with_paths {
                actions.append(entry.actions.clone());
            }
            offsets.push(actions.len());
            terminal.append(entry.terminal.clone());
            values.extend_from_slice(&entry.condition);
        }
        let conditions = self.empty_conditions.as_ref().map(|Conditions(empty)| {
            let rows = Tensor::from_slice(&values).f_view([terminal.len() as i64, empty.size()[1]])?;
            Ok::<_, Error>(Conditions(rows.f_to_kind(empty.kind())?.f_to_device(empty.device())?))
        });
        Ok(Walks { actions, offsets, terminal, conditions: conditions.transpose()? })
    }
}

impl<E: ReplayEnv> ReplayBuffer<E> {
    /// Adds walks with their log-rewards, and returns the number of walks that were added.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one log-reward per walk and the conditions have the width of the
    /// stored conditions; [`Error::NonFinite`] for a log-reward or a condition that isn't finite;
    /// [`Error::Missing`] for walks without actions if draws return actions, and if only some walks have
    /// conditions. If it fails, no walk is added.
    pub fn add(&mut self, env: &E, walks: &Walks<E>, log_rewards: &[f64]) -> Result<usize> {
        check_log_rewards(log_rewards, &walks.terminal)?;
        if self.keeps_paths && !walks.has_paths() {
            return Err(Error::missing(
                "a replay buffer that keeps paths",
                "trajectories with their actions",
                "add trajectories with actions, or let the buffer return only terminal states \
                 (`terminal_only`)",
            ));
        }
        self.check_priorities(log_rewards.iter().map(|&log_reward| StoredObject { log_reward, loss: None }))?;
        self.choose_paths(env)?;
        let default_paths = || -> Result<Walks<E>> {
            Ok(Walks { conditions: walks.conditions.clone(), ..Walks::default_paths(env, &walks.terminal)? })
        };
        let found = (self.stores_paths && !walks.has_paths()).then(default_paths).transpose()?;
        let walks = found.as_ref().unwrap_or(walks);
        let mut conditions = self.take_conditions(walks)?;
        let mut order: Vec<usize> = (0..walks.len()).collect();
        if self.diversity.is_some() && self.config.eviction == Eviction::BestReward {
            order.sort_by(|&i, &j| log_rewards[j].total_cmp(&log_rewards[i]));
        }
        let mut stayed = 0;
        for i in order {
            let condition = std::mem::take(&mut conditions[i]);
            stayed += usize::from(self.admit(env, walks.select([i])?, condition, log_rewards[i]));
        }
        Ok(stayed)
    }

    /// Adds finished objects without trajectories, to a buffer that returns only terminal states.
    ///
    /// # Errors
    /// The errors of [`add`](Self::add).
    pub fn add_objects(&mut self, env: &E, objects: E::States, log_rewards: &[f64]) -> Result<usize> {
        let offsets = vec![0; objects.len() + 1];
        let actions = env.no_actions();
        self.add(env, &Walks { actions, offsets, terminal: objects, conditions: None }, log_rewards)
    }

    /// Decides if entries store actions: they do if draws return actions, or if the environment works up to
    /// isomorphism, because a checkpoint then needs actions to restore the labels of nodes.
    pub(super) fn choose_paths(&mut self, env: &E) -> Result<()> {
        let states = env.initial(&[]);
        let actions = env.no_actions();
        self.stores_paths = self.keeps_paths
            || env.symmetry().to_insertion_order(&states, &actions, &actions, &[0])?.is_some();
        Ok(())
    }
}
