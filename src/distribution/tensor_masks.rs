//! Masks that are a tensor on a device, and the sampling of actions on this device.

use tch::{Device, Kind, Tensor};

use super::Exploration;
use crate::direction::Direction;
use crate::rows::{Masks, Slots};
use crate::tensor::{index_tensor, select_rows};
use crate::{Error, Result};

/// The fault of a state without a legal slot.
pub(crate) const NO_LEGAL_ACTION: i64 = 1;
/// The fault of a state with a logit that isn't finite.
pub(crate) const NOT_FINITE: i64 = 2;

/// The legal slots of a batch of states, all with the same number of slots, on a device.
#[derive(Debug)]
pub(super) struct TensorMasks {
    pub(super) direction: Direction,
    /// `true` for each legal slot, `[states, slots]` (bool).
    pub(super) legal: Tensor,
    /// `true` if the last slot is the exit.
    pub(super) has_exit: bool,
}

impl TensorMasks {
    pub(super) fn len(&self) -> usize {
        self.legal.size()[0] as usize
    }

    fn width(&self) -> usize {
        self.legal.size()[1] as usize
    }

    /// Copies the masks to the host.
    pub(super) fn to_host(&self) -> Masks {
        let mut legal = vec![0u8; self.legal.numel()];
        let on_host = self.legal.to_device(Device::Cpu).to_kind(Kind::Uint8).contiguous();
        on_host.copy_data(&mut legal, self.legal.numel());
        let legal = legal.into_iter().map(|legal| legal != 0).collect();
        Masks::from_rows(self.direction, self.len(), self.width(), legal, self.has_exit)
    }

    /// Returns minus infinity for each illegal slot and 0 for each legal slot, `[states, slots]`. In a state
    /// without a legal slot, all slots have 0, because the gradient of its logits would be NaN otherwise. The
    /// log-probabilities of such a state are never used.
    pub(super) fn penalties(&self) -> Tensor {
        let illegal = self.legal.logical_not().logical_and(&self.legal.any_dim(1, true));
        illegal.zeros_like().to_kind(Kind::Float).masked_fill(&illegal, f64::NEG_INFINITY)
    }

    /// Returns the index of each action among all slots of all states, `[actions]`. Action `i` belongs to
    /// state `rows[i]`.
    pub(super) fn positions(&self, rows: &[usize], actions: &Slots) -> Result<Tensor> {
        let width = self.width();
        let mut positions = Vec::with_capacity(rows.len());
        for (&row, &slot) in rows.iter().zip(&actions.0) {
            if row >= self.len() {
                return Err(Error::out_of_range(row, self.len()));
            }
            if slot as usize >= width {
                return Err(self.illegal_action(row, slot, 0));
            }
            positions.push(row * width + slot as usize);
        }
        let positions = index_tensor(&positions, self.legal.device());
        // On a device this check would wait for all queued operations. An illegal action has the
        // log-probability minus infinity, so that the check of the loss finds it there.
        if self.legal.device() == Device::Cpu {
            let legal = Vec::<bool>::try_from(self.legal.reshape([-1]).index_select(0, &positions))?;
            if let Some(k) = legal.iter().position(|legal| !legal) {
                let n_legal = self.legal.get(rows[k] as i64).sum(Kind::Int64).int64_value(&[]);
                return Err(self.illegal_action(rows[k], actions.0[k], n_legal as usize));
            }
        }
        Ok(positions)
    }

    fn illegal_action(&self, row: usize, slot: u32, n_legal: usize) -> Error {
        Error::IllegalAction {
            row,
            direction: self.direction,
            slot: slot as usize,
            n_slots: self.width(),
            n_legal,
            detail: "its log-probability was requested; choose a slot that the mask allows".into(),
        }
    }

    /// Returns the log-probability of actions under the uniform distribution over the legal slots; minus
    /// infinity for an illegal action. Action `i` belongs to state `rows[i]` and has the index `positions[i]`
    /// among all slots of all states.
    pub(super) fn uniform_log_prob(&self, rows: &[usize], positions: &Tensor) -> Tensor {
        let counts = self.legal.sum_dim_intlist(1, false, Kind::Float);
        self.penalties().view(-1).index_select(0, positions) - select_rows(&counts, rows).log()
    }

    /// Samples a slot of each state by inverse transform, `[states]` (i64), from `draws`, which are numbers
    /// in `[0, 1)`, `[states]` (f64). `logits` is `[states, slots]`; `None` stands for equal logits. The
    /// second result is as [`Distribution::sample_tensor`](super::Distribution::sample_tensor) says.
    pub(super) fn sample(
        &self,
        logits: Option<&Tensor>,
        exploration: &Exploration,
        draws: &Tensor,
    ) -> (Tensor, Tensor) {
        let legal = &self.legal;
        let counts = legal.sum_dim_intlist(1, true, Kind::Double);
        let uniform = legal.to_kind(Kind::Double) / counts.clamp_min(1.0);
        let has_bias = self.has_exit && exploration.exit_bias() != 0.0;
        let mut fault = counts.squeeze_dim(1).eq(0.0).to_kind(Kind::Int64) * NO_LEGAL_ACTION;
        if let Some(logits) = logits {
            let is_wrong = logits.isfinite().logical_not().logical_and(legal).any_dim(1, false);
            fault = fault.maximum(&(is_wrong.to_kind(Kind::Int64) * NOT_FINITE));
        }
        let probs = if logits.is_none() && !has_bias {
            uniform
        } else {
            let mut logits = match logits {
                Some(logits) => logits.to_kind(Kind::Double),
                None => uniform.zeros_like(),
            };
            if has_bias {
                let exit = self.width() as i64 - 1;
                let biased = logits.select(1, exit) + exploration.exit_bias();
                logits = logits.select_scatter(&biased, 1, exit);
            }
            let masked = logits + self.penalties();
            let shifted = &masked - masked.amax([1], true);
            let probs = (shifted / exploration.temperature()).softmax(1, Kind::Double);
            let epsilon = exploration.epsilon_value();
            if epsilon > 0.0 { probs * (1.0 - epsilon) + uniform * epsilon } else { probs }
        };
        // The result is the first slot of positive probability whose cumulative probability exceeds the draw.
        // The draw is below 1, but rounding may make its product with the total equal to the total.
        let cumulative = probs.cumsum(1, Kind::Double);
        let total = cumulative.select(1, -1);
        let threshold = (draws * &total).minimum(&(&total * (1.0 - 1e-12)));
        let exceeds = cumulative.gt_tensor(&threshold.unsqueeze(1)).logical_and(&probs.gt(0.0));
        (exceeds.to_kind(Kind::Uint8).argmax(1, false), fault)
    }
}
