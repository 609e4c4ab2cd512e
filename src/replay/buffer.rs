use std::sync::Arc;

use tch::{Device, Kind, Tensor};

use super::diversity::{Cell, Near, cell_of};
use super::entry::{Entry, Offer, Rank};
use super::identity::{Distinct, SeenKeys};
use super::ordered::{Key, Ordered};
use super::priority::{Priority, Stored};
use super::weights::Weights;
use super::{Diversity, Draw, Eviction, RankBy, ReplayConfig};
use crate::condition::Conditions;
use crate::env::{EnumerableEnv, Env, Rows};
use crate::rollout::{Container, Walks};
use crate::tensor::to_host;
use crate::{Error, Result};

/// A replay buffer: finished objects with their log-rewards and the walks that led to them.
///
/// It stores terminal states and actions, not the states in between. A walk can be replayed as it was; or only its
/// object is used, and another path to it is drawn backwards with
/// [`Sampler::backward`](crate::rollout::Sampler::backward). A walk may have a condition vector, which is stored with
/// it; equal objects under different conditions are different entries.
pub struct ReplayBuffer<E: Env> {
    pub(super) config: ReplayConfig,
    pub(super) priority: Option<Arc<dyn Priority>>,
    /// By serial, the oldest first, with what they are drawn in proportion to.
    pub(super) entries: Ordered<u64, Entry<E>, Weights>,
    /// (log-reward, age) of each entry, the least first; kept only if eviction or drawing needs it.
    pub(super) by_reward: Ordered<Rank, (), ()>,
    /// (loss, age) of each entry, likewise.
    pub(super) by_loss: Ordered<Rank, (), ()>,
    distinct: Option<Box<dyn Distinct<E>>>,
    diversity: Option<Diversity<E>>,
    near: Near,
    pub(super) keeps_paths: bool,
    /// Width and kind of the conditions; unknown while the buffer is empty.
    form: Option<(usize, Kind)>,
    device: Device,
    pub(super) added: u64,
}

impl<E: Env> std::fmt::Debug for ReplayBuffer<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplayBuffer").field("config", &self.config).field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<E: Env> ReplayBuffer<E> {
    /// An empty buffer that accepts every walk.
    ///
    /// # Errors
    /// [`Error::Config`] for a capacity of 0 or an exponent that isn't finite.
    pub fn new(config: ReplayConfig) -> Result<Self> {
        if config.draw == Draw::Own {
            return Err(Error::missing("a buffer that draws by a rule of one's own", "the rule", "use `by_priority`"));
        }
        Self::with_weighing(config, None)
    }

    pub(super) fn with_weighing(config: ReplayConfig, priority: Option<Arc<dyn Priority>>) -> Result<Self> {
        config.check()?;
        Ok(Self {
            config,
            priority,
            entries: Ordered::new(config.draw.is_weighted()),
            by_reward: Ordered::counting(),
            by_loss: Ordered::counting(),
            distinct: None,
            diversity: None,
            near: Near::default(),
            keeps_paths: true,
            form: None,
            device: Device::Cpu,
            added: 0,
        })
    }

    /// An empty buffer that holds each finished object once, under each condition.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn distinct(config: ReplayConfig) -> Result<Self>
    where
        E: EnumerableEnv + 'static,
    {
        Ok(Self::new(config)?.keeping_each_once())
    }

    /// The same empty buffer, which holds each object once.
    pub(super) fn keeping_each_once(self) -> Self
    where
        E: EnumerableEnv + 'static,
    {
        Self { distinct: Some(Box::new(SeenKeys::<E::Key>::default())), ..self }
    }

    /// Once the buffer is full, accepts only objects that are further than a cutoff from all stored ones, including
    /// earlier ones of the same batch. With [`Eviction::BestReward`](super::Eviction::BestReward) the candidates of a
    /// batch are taken in descending order of reward, so that of several close ones the best is kept.
    #[must_use]
    pub fn diverse(mut self, diversity: Diversity<E>) -> Self {
        let near = &mut self.near;
        *near = Near::default();
        self.entries.for_each_mut(|serial, entry| {
            let vector = diversity.vector(&entry.terminal, &entry.condition);
            entry.cell = cell_of(diversity.place(&vector));
            near.add(entry.cell, serial, &vector);
        });
        self.diversity = Some(diversity);
        self
    }

    /// Stores terminal states only, without actions. Paths to drawn objects must then be drawn backwards.
    #[must_use]
    pub fn terminal_only(mut self) -> Self {
        self.keeps_paths = false;
        self.entries.for_each_mut(|_, entry| entry.actions = entry.actions.select(&[]));
        self
    }

    /// Puts the conditions of drawn walks on this device (default: the host). Stored ones are on the host.
    #[must_use]
    pub fn on_device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// An empty buffer with the same settings.
    pub(crate) fn emptied(&self) -> Self {
        Self {
            config: self.config,
            priority: self.priority.clone(),
            entries: Ordered::new(self.config.draw.is_weighted()),
            by_reward: Ordered::counting(),
            by_loss: Ordered::counting(),
            near: Near::default(),
            distinct: self.distinct.as_ref().map(|distinct| distinct.emptied()),
            diversity: self.diversity.clone(),
            keeps_paths: self.keeps_paths,
            form: None,
            device: self.device,
            added: 0,
        }
    }

    /// The buffer's settings.
    #[must_use]
    pub fn config(&self) -> &ReplayConfig {
        &self.config
    }

    /// Whether paths to objects are stored, too.
    #[must_use]
    pub fn keeps_paths(&self) -> bool {
        self.keeps_paths
    }

    /// The number of stored objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the buffer is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The raw log-rewards, in the order in which objects were added.
    pub fn log_rewards(&self) -> impl Iterator<Item = f64> + '_ {
        self.entries.iter().map(|(_, entry)| entry.log_reward)
    }

    /// All stored walks, oldest first; `None` from an empty buffer.
    #[must_use]
    pub fn walks(&self) -> Option<Walks<E>> {
        self.gather(self.entries.iter().map(|(_, entry)| entry)).ok()
    }

    /// Adds walks with their raw log-rewards, and returns how many of them are in the buffer afterwards.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one log-reward per walk and conditions have the width of the stored ones;
    /// [`Error::NonFinite`] for a log-reward or a condition that isn't finite; [`Error::Missing`] for walks without
    /// actions if paths are stored, and if only some walks have conditions. Nothing is added then.
    pub fn add(&mut self, env: &E, walks: &Walks<E>, log_rewards: &[f64]) -> Result<usize> {
        if walks.len() != log_rewards.len() {
            return Err(Error::shape(
                "log-rewards of walks",
                [walks.len() as i64],
                [log_rewards.len() as i64],
                "give one log-reward per walk",
            ));
        }
        if let Some(row) = log_rewards.iter().position(|value| !value.is_finite()) {
            return Err(Error::non_finite(
                "log-reward",
                row,
                log_rewards[row],
                "keep only objects whose log-reward is finite; or raise it to a floor (`Clipped`)",
            ));
        }
        if self.keeps_paths && !walks.has_paths() {
            return Err(Error::missing(
                "a replay buffer that keeps paths",
                "walks with actions",
                "add whole walks, or let the buffer store terminal states only (`terminal_only`)",
            ));
        }
        self.weighing().check(log_rewards.iter().map(|&log_reward| Stored { log_reward, loss: None }))?;
        let mut conditions = self.take_conditions(walks)?;
        let mut order: Vec<usize> = (0..walks.len()).collect();
        if self.diversity.is_some() && self.config.eviction == Eviction::BestReward {
            order.sort_by(|&i, &j| log_rewards[j].total_cmp(&log_rewards[i]));
        }
        let mut stayed = 0;
        for i in order {
            let condition = std::mem::take(&mut conditions[i]);
            let offer = Offer { walk: walks.select([i])?, condition, log_reward: log_rewards[i] };
            stayed += usize::from(self.offer(env, offer));
        }
        Ok(stayed)
    }

    /// Checks that the conditions fit the stored ones, and returns each walk's, empty without conditions.
    pub(super) fn take_conditions(&mut self, walks: &Walks<E>) -> Result<Vec<Vec<f64>>> {
        let n = walks.len();
        let Some(tensor) = walks.conditions() else {
            return match self.form {
                Some(_) if !self.is_empty() => Err(mixed_conditions()),
                _ => {
                    self.form = None;
                    Ok(vec![Vec::new(); n])
                }
            };
        };
        let Conditions(tensor) = Conditions::checked(tensor.shallow_clone(), n)?;
        let form = (tensor.size()[1] as usize, tensor.kind());
        match self.form {
            _ if self.is_empty() => {}
            None => return Err(mixed_conditions()),
            Some((width, _)) if width != form.0 => {
                return Err(Error::shape(
                    "conditions of walks",
                    [n as i64, width as i64],
                    tensor.size(),
                    "give conditions of the same width as those in the buffer",
                ));
            }
            Some(_) => {}
        }
        let values = to_host(&tensor);
        if let Some(place) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::non_finite(
                "condition",
                place / form.0.max(1),
                values[place],
                "give conditions that are finite numbers",
            ));
        }
        self.form = Some(form);
        Ok((0..n).map(|i| values[i * form.0..(i + 1) * form.0].to_vec()).collect())
    }

    /// Adds a candidate if it is accepted, and evicts an entry if necessary; returns whether it was added.
    pub(super) fn offer(&mut self, env: &E, offer: Offer<E>) -> bool {
        let Offer { walk: Walks { actions, terminal, .. }, condition, log_reward } = offer;
        let serial = self.added;
        let rank = Rank::new(log_reward, serial);
        let full = self.len() >= self.config.capacity;
        let best = self.config.eviction == Eviction::BestReward;
        if full && best && self.by_reward.nth(0).is_some_and(|(least, _)| rank.0 <= least.0) {
            return false;
        }
        let (mut vector, mut cell) = (Vec::new(), Cell::default());
        if let Some(diversity) = &self.diversity {
            vector = diversity.vector(&terminal, &condition);
            let place = diversity.place(&vector);
            cell = cell_of(place);
            if full && self.near.any(diversity.around(place), |held| diversity.too_close(held, &vector)) {
                return false;
            }
        }
        if let Some(distinct) = &mut self.distinct
            && !distinct.admit(env, &terminal, &condition)
        {
            return false;
        }
        if full {
            self.evict(env);
        }
        let actions = if self.keeps_paths { actions } else { actions.select(&[]) };
        let entry = Entry { actions, terminal, condition, cell, log_reward, loss: None };
        if self.diversity.is_some() {
            self.near.add(cell, serial, &vector);
        }
        if self.ranks_rewards() {
            self.by_reward.insert(rank, (), ());
        }
        if self.ranks_losses() {
            self.by_loss.insert(Rank::new(entry.ranking_loss(), serial), (), ());
        }
        let weights = self.weighing().of(entry.log_reward, entry.loss);
        self.entries.insert(serial, entry, weights);
        self.added += 1;
        true
    }

    fn ranks_rewards(&self) -> bool {
        self.config.eviction == Eviction::BestReward || self.config.draw.ranks_by() == Some(RankBy::Reward)
    }

    pub(super) fn ranks_losses(&self) -> bool {
        self.config.draw.ranks_by() == Some(RankBy::Loss)
    }

    fn evict(&mut self, env: &E) {
        let serial = match self.config.eviction {
            Eviction::Fifo => self.entries.nth(0).map(|(serial, _)| serial),
            Eviction::BestReward => self.by_reward.nth(0).map(|(rank, ())| rank.serial()),
        };
        let Some((serial, gone)) = serial.and_then(|serial| Some((serial, self.entries.remove(serial)?))) else {
            return;
        };
        if self.ranks_rewards() {
            self.by_reward.remove(Rank::new(gone.log_reward, serial));
        }
        if self.ranks_losses() {
            self.by_loss.remove(Rank::new(gone.ranking_loss(), serial));
        }
        if self.diversity.is_some() {
            self.near.forget(gone.cell, serial);
        }
        if let Some(distinct) = &mut self.distinct {
            distinct.forget(env, &gone.terminal, &gone.condition);
        }
    }

    /// The walks of these entries, joined.
    pub(super) fn gather<'a>(&'a self, entries: impl Iterator<Item = &'a Entry<E>>) -> Result<Walks<E>> {
        let (_, any) = self.entries.nth(0).ok_or(Error::missing(
            "taking walks from a replay buffer",
            "at least one object in it",
            "add trajectories or prefill the buffer first",
        ))?;
        let (mut actions, mut terminal) = (any.actions.select(&[]), any.terminal.select(&[]));
        let (mut offsets, mut values) = (vec![0], Vec::new());
        for entry in entries {
            actions.append(entry.actions.clone());
            offsets.push(actions.len());
            terminal.append(entry.terminal.clone());
            values.extend_from_slice(&entry.condition);
        }
        let conditions = match self.form {
            None => None,
            Some((width, kind)) => {
                let rows = Tensor::from_slice(&values).f_view([terminal.len() as i64, width as i64])?;
                Some(Conditions(rows.f_to_kind(kind)?.f_to_device(self.device)?))
            }
        };
        Ok(Walks { actions, offsets, terminal, conditions })
    }
}

fn mixed_conditions() -> Error {
    Error::missing(
        "adding to a replay buffer",
        "conditions on all of its walks or on none",
        "use separate buffers for conditional and unconditional walks",
    )
}
