//! A categorical distribution with one softmax per state across all of its legal slots of all action types.

mod actions;

use std::cell::OnceCell;

use tch::Tensor;

use super::behaviour::log_softmax;
use super::blocks::{check_blocks, check_scale, state_by_state};
use super::logits::Logits;
use super::tensor_masks::TensorMasks;
use crate::direction::Direction;
use crate::error::check_len;
use crate::rows::{Masks, Rows, Slots};
use crate::tensor::{from_host, segment_ids, segment_logsumexp, segment_max, segment_sum, select_rows};
use crate::{Error, Result};

/// The minimum number of states per thread when actions are sampled.
const MIN_ROWS_PER_THREAD: usize = 256;

/// A categorical distribution per state, over all of its legal slots of all action types at once.
///
/// Each action type has a block of logits `[rows, width]`. A state has some of these rows, for example one
/// per node. Its slots are the entries of its rows: first its rows in the first block, then its rows in the
/// second block, and so on. The softmax doesn't contain illegal slots, so their (finite) logits have no
/// effect. An environment with the same actions in every state has a single block `[n, A]`.
///
/// The class of the same name in recursionpharma/gflownet computes the same softmax across blocks, but takes
/// no masks; here the masks are a part of the distribution.
///
/// ```
/// use gfn::distribution::{Distribution, Exploration, GraphActionCategorical};
/// use gfn::{env::{Direction, Masks, Slots}, Rng};
/// let masks = Masks::dense(Direction::Forward, 3, vec![true, false, true], true)?;
/// let logits = tch::Tensor::from_slice(&[0f32, 9.0, 0.0]).view([1, 3]);
/// let dist = GraphActionCategorical::new(masks, &[logits])?;
/// let action = dist.sample(&[0], &Exploration::on_policy(), &mut Rng::seeded(0))?;
/// let log_prob = dist.log_prob(&[0], &action)?;
/// assert!((log_prob.double_value(&[0]) - 0.5f64.ln()).abs() < 1e-6);
/// assert!(dist.log_prob(&[0], &Slots(vec![1])).is_err());
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct GraphActionCategorical {
    /// The legal slots on the host. If they were given as a tensor, they are copied on demand.
    slots: OnceCell<LegalSlots>,
    /// The legal slots as a tensor on the device of the logits; `None` if they were given on the host.
    tensor_masks: Option<TensorMasks>,
    logits: Logits,
    /// Log-probabilities of the legal slots of all states on the host, without exploration, computed on
    /// demand.
    host_log_probs: OnceCell<Vec<f64>>,
    /// The log of the sum of exponentials of each state's legal logits, `[states]`, computed on demand.
    log_sum: OnceCell<Tensor>,
    /// Log-probabilities of all slots, legal or not, computed on demand. The result is `None` unless there is
    /// a single block with one row per state.
    dense: OnceCell<Option<Tensor>>,
}

/// The legal slots of a batch of states, on the host.
#[derive(Debug)]
struct LegalSlots {
    masks: Masks,
    /// The index of each state's first entry in `slot`, followed by the number of entries, `[states + 1]`.
    ptr: Vec<usize>,
    /// The legal slots of all states, state by state, computed on demand. The slots of each state are counted
    /// from 0.
    slot: OnceCell<Vec<u32>>,
}

impl LegalSlots {
    fn new(masks: Masks) -> Self {
        let mut ptr = Vec::with_capacity(masks.len() + 1);
        let mut n_legal = 0;
        ptr.push(0);
        for row in 0..masks.len() {
            n_legal += masks.n_legal(row);
            ptr.push(n_legal);
        }
        Self { masks, ptr, slot: OnceCell::new() }
    }
}

impl GraphActionCategorical {
    /// Creates the distribution from logits: a `[rows, width]` tensor per block (action type) of the masks.
    ///
    /// # Errors
    /// [`Error::Shape`] if a block is missing or has another shape than the masks require.
    pub fn new(masks: Masks, blocks: &[Tensor]) -> Result<Self> {
        check_blocks(&masks, blocks)?;
        let mut out = Self::uniform(masks);
        out.logits = Logits::blocks(blocks);
        Ok(out)
    }

    /// Creates the distribution with logits on the host: one number for each slot of each state, legal or
    /// not. Use this method to sample actions for a few states, because tensor operations would then cost
    /// more than the sampling itself.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of logits isn't the number of slots.
    pub fn on_host(masks: Masks, logits: Vec<f32>) -> Result<Self> {
        let remedy = "give one number for each slot of each state, legal or not";
        check_len("the logits", masks.legal.len(), logits.len(), remedy)?;
        let mut out = Self::uniform(masks);
        out.logits = Logits::on_host(logits);
        Ok(out)
    }

    /// Creates the distribution with logits on the host: a list of `rows * width` numbers, row by row, for
    /// each block (action type) of the masks.
    ///
    /// # Errors
    /// [`Error::Shape`] if a block is missing or has another length than the masks require.
    pub fn from_host_blocks(masks: Masks, blocks: &[Vec<f32>]) -> Result<Self> {
        let logits = state_by_state(&masks, blocks)?;
        Self::on_host(masks, logits)
    }

    /// Multiplies the logits of each state by a factor. `scale` is `[states]`, and gradients flow through it.
    /// A uniform distribution stays uniform.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of factors isn't the number of states.
    pub fn scaled(self, scale: &Tensor) -> Result<Self> {
        check_scale(self.len(), scale)?;
        Ok(Self::build(self.slots, self.tensor_masks, self.logits.scaled(scale)))
    }

    /// Creates the uniform distribution over the legal slots of each state, without any tensor.
    #[must_use]
    pub fn uniform(masks: Masks) -> Self {
        Self::build(OnceCell::from(LegalSlots::new(masks)), None, Logits::uniform())
    }

    fn build(slots: OnceCell<LegalSlots>, tensor_masks: Option<TensorMasks>, logits: Logits) -> Self {
        Self {
            slots,
            tensor_masks,
            logits,
            host_log_probs: OnceCell::new(),
            log_sum: OnceCell::new(),
            dense: OnceCell::new(),
        }
    }

    /// Creates the distribution with masks that are a tensor on the device of the logits, `[states, slots]`
    /// (bool). Actions are sampled on this device, and the masks are copied to the host only if a method
    /// needs them there. `logits` is `[states, slots]`; `None` gives the uniform distribution. If `has_exit`
    /// is `true`, the last slot is the exit.
    ///
    /// # Errors
    /// [`Error::Shape`] if the logits have another shape than the masks.
    pub fn from_tensors(
        direction: Direction,
        legal: Tensor,
        has_exit: bool,
        logits: Option<&Tensor>,
    ) -> Result<Self> {
        let logits = match logits {
            None => Logits::uniform(),
            Some(logits) if logits.size() == legal.size() => Logits::blocks(std::slice::from_ref(logits)),
            Some(logits) => {
                let remedy = "give one logit for each slot of each state";
                return Err(Error::shape("the logits", legal.size(), logits.size(), remedy));
            }
        };
        Ok(Self::build(OnceCell::new(), Some(TensorMasks { direction, legal, has_exit }), logits))
    }

    fn slots(&self) -> &LegalSlots {
        self.slots.get_or_init(|| {
            // Without tensor masks, the slots are set by the constructor.
            let none = || Masks::from_rows(Direction::Forward, 0, 0, Vec::new(), false);
            LegalSlots::new(self.tensor_masks.as_ref().map_or_else(none, TensorMasks::to_host))
        })
    }

    /// Returns the masks: the slots of each state, and which of them are legal.
    #[must_use]
    pub fn masks(&self) -> &Masks {
        &self.slots().masks
    }

    /// Returns the number of states.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tensor_masks.as_ref().map_or_else(|| self.slots().masks.len(), TensorMasks::len)
    }

    /// Returns `true` if there is no state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of legal actions of each state.
    #[must_use]
    pub fn n_actions(&self) -> Vec<usize> {
        self.slots().ptr.windows(2).map(|w| w[1] - w[0]).collect()
    }

    /// Returns the index of each state's first entry in [`legal_slots`](Self::legal_slots) and
    /// [`log_probs`](Self::log_probs), followed by the number of entries, `[states + 1]`.
    #[must_use]
    pub fn legal_offsets(&self) -> &[usize] {
        &self.slots().ptr
    }

    /// Returns the legal slots of all states, one state after another.
    #[must_use]
    pub fn legal_slots(&self) -> &[u32] {
        let LegalSlots { masks, slot, .. } = self.slots();
        slot.get_or_init(|| (0..masks.len()).flat_map(|row| masks.legal_slots(row)).collect())
    }

    fn legal_logits(&self) -> &Tensor {
        self.logits.legal(self.masks())
    }

    fn host_logits(&self) -> &[f64] {
        self.logits.host(self.masks())
    }

    fn ids(&self) -> Tensor {
        segment_ids(&self.slots().ptr, self.logits.device())
    }

    /// Returns the log of the sum of exponentials of each state's legal logits, `[states]`, with gradient; 0
    /// for a state without a legal slot.
    pub fn logsumexp(&self) -> Tensor {
        let logits = self.legal_logits();
        let empty = self.slots().ptr.windows(2).map(|ends| f64::from(u8::from(ends[0] == ends[1])));
        let empty = from_host(&empty.collect::<Vec<_>>(), logits.kind(), logits.device());
        segment_logsumexp(logits, &self.ids(), &segment_max(logits, &self.slots().ptr), &empty)
    }

    fn log_sum(&self) -> &Tensor {
        self.log_sum.get_or_init(|| self.logsumexp())
    }

    /// Returns the log-probability of every legal slot, `[legal]`, state by state, with gradient.
    pub fn log_probs(&self) -> Tensor {
        self.legal_logits() - self.log_sum().index_select(0, &self.ids())
    }

    /// Returns the log-probability of every legal slot, state by state, on the host in double precision.
    ///
    /// # Errors
    /// [`Error::NonFinite`] for a logit that is NaN or infinite.
    pub fn host_log_probs(&self) -> Result<&[f64]> {
        if let Some(log_probs) = self.host_log_probs.get() {
            return Ok(log_probs);
        }
        self.check_finite()?;
        let mut out = self.host_logits().to_vec();
        for ends in self.slots().ptr.windows(2) {
            log_softmax(&mut out[ends[0]..ends[1]]);
        }
        Ok(self.host_log_probs.get_or_init(|| out))
    }

    fn check_finite(&self) -> Result<()> {
        let host = self.host_logits();
        let Some(bad) = host.iter().position(|logit| !logit.is_finite()) else {
            return Ok(());
        };
        Err(Error::non_finite(
            "logit",
            self.slots().ptr.partition_point(|&start| start <= bad) - 1,
            host[bad],
            "lower the learning rate, clip gradients (`max_norm`), or check the inputs of the network",
        ))
    }

    /// Returns the most probable slot of each state; the first if several are equally probable.
    ///
    /// # Errors
    /// [`Error::NoLegalAction`] for a state without a legal slot; [`Error::NonFinite`] for a logit that is
    /// NaN or infinite.
    pub fn argmax(&self) -> Result<Slots> {
        let log_probs = self.host_log_probs()?;
        let best = (0..self.len()).map(|row| {
            let range = self.legal_range(row)?;
            let largest = log_probs[range.clone()].iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let position = log_probs[range.clone()].iter().position(|&p| p == largest).unwrap_or(0);
            self.nth_legal(row, position)
        });
        best.collect::<Result<_>>().map(Slots)
    }

    /// Returns the entropy of each state's distribution in nats, `[states]`, with gradient; 0 for a state
    /// without a legal slot.
    pub fn entropy(&self) -> Tensor {
        let log_probs = self.log_probs();
        -segment_sum(&(log_probs.exp() * &log_probs), &self.ids(), self.len())
    }

    /// Returns the Kullback-Leibler divergence KL(self || other) of each state in nats, `[states]`, with
    /// gradient.
    ///
    /// # Errors
    /// [`Error::Shape`] if the two distributions don't have the same legal slots.
    pub fn kl(&self, other: &Self) -> Result<Tensor> {
        if self.legal_offsets() != other.legal_offsets() || self.legal_slots() != other.legal_slots() {
            return Err(Error::shape(
                "the other distribution's legal slots",
                [self.len() as i64, self.legal_slots().len() as i64],
                [other.len() as i64, other.legal_slots().len() as i64],
                "compare two distributions over the same states and masks",
            ));
        }
        // The logits of a uniform distribution are on no particular device. The log-probabilities of both
        // distributions are therefore moved to the device of the distribution that isn't uniform.
        let device = if self.logits.is_uniform() { other.logits.device() } else { self.logits.device() };
        let log_p = self.log_probs().to_device(device);
        let log_q = other.log_probs().to_device(device);
        let terms = log_p.exp() * (&log_p - log_q);
        Ok(segment_sum(&terms, &segment_ids(&self.slots().ptr, device), self.len()))
    }

    /// Returns the range of the legal slots of state `row` among the legal slots of all states.
    fn range(&self, row: usize) -> Result<std::ops::Range<usize>> {
        if row < self.len() {
            Ok(self.slots().ptr[row]..self.slots().ptr[row + 1])
        } else {
            Err(Error::out_of_range(row, self.len()))
        }
    }

    /// Returns the range of the legal slots of state `row` among the legal slots of all states. Returns an
    /// error if the state has no legal slot.
    fn legal_range(&self, row: usize) -> Result<std::ops::Range<usize>> {
        let range = self.range(row)?;
        if range.is_empty() {
            return Err(Error::NoLegalAction { row, direction: self.masks().direction });
        }
        Ok(range)
    }

    /// Returns the legal slot of state `row` that has `n` legal slots below it.
    fn nth_legal(&self, row: usize, n: usize) -> Result<u32> {
        let direction = self.masks().direction;
        self.masks().nth_legal(row, n).ok_or(Error::NoLegalAction { row, direction })
    }

    /// Returns an error unless there is one action for each entry of `rows`, which is legal in this state.
    fn check_actions(&self, rows: &[usize], actions: &Slots) -> Result<()> {
        check_len("actions", rows.len(), actions.len(), "give one action for each row")?;
        for (&row, &slot) in rows.iter().zip(&actions.0) {
            self.range(row)?;
            let detail = || "its log-probability was requested; choose a slot that the mask allows".into();
            self.masks().check(row, slot, detail)?;
        }
        Ok(())
    }

    /// Returns the logit of each action. Action `i` is legal and belongs to state `rows[i]`.
    fn action_logits(&self, rows: &[usize], actions: &Slots) -> Tensor {
        let entry =
            |(&row, &slot): (&usize, &u32)| self.slots().ptr[row] + self.masks().n_legal_below(row, slot);
        let entries: Vec<usize> = rows.iter().zip(&actions.0).map(entry).collect();
        select_rows(self.legal_logits(), &entries)
    }
}
