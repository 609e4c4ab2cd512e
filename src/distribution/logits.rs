//! The logits of a categorical distribution. The logits are stored as tensors or on the host, and returned
//! for all slots or for legal slots only. A block holds the logits of one action type for all states of a
//! batch.

use std::cell::OnceCell;

use tch::{Device, Kind, Tensor};

use super::blocks::positions;
use crate::rows::Masks;
use crate::tensor::{fetch_all, to_host, upload};

/// The logits of all slots of a batch of states, legal or not.
#[derive(Debug)]
pub(super) struct Logits {
    source: LogitSource,
    /// A factor for the logits of each state, `[states]`; `None` for factors of 1.
    scale: Option<Tensor>,
    /// The logits of the legal slots, state by state, `[legal]`. This tensor is computed on demand, because
    /// sampling actions doesn't need it.
    legal: OnceCell<Tensor>,
    /// The logits of the legal slots on the host, computed on demand.
    host: OnceCell<Vec<f64>>,
}

#[derive(Debug)]
enum LogitSource {
    /// The uniform distribution, which needs no logits.
    Uniform,
    /// The logits as one tensor per block, in the order of the masks' blocks (action types).
    Blocks(Vec<Tensor>),
    /// The logit of each slot, legal or not, on the host, in the order of the masks.
    Host(Vec<f32>),
}

impl Logits {
    fn new(source: LogitSource) -> Self {
        Self { source, scale: None, legal: OnceCell::new(), host: OnceCell::new() }
    }

    pub(super) fn uniform() -> Self {
        Self::new(LogitSource::Uniform)
    }

    pub(super) fn blocks(blocks: &[Tensor]) -> Self {
        Self::new(LogitSource::Blocks(blocks.iter().map(Tensor::shallow_clone).collect()))
    }

    pub(super) fn on_host(logits: Vec<f32>) -> Self {
        Self::new(LogitSource::Host(logits))
    }

    /// Returns the logits, with the logits of each state multiplied by its entry in `scale`, `[states]`. If
    /// the logits already have factors, they keep these, too.
    pub(super) fn scaled(self, scale: &Tensor) -> Self {
        let scale = self.scale.map_or_else(|| scale.shallow_clone(), |before| before * scale);
        Self { scale: Some(scale), ..Self::new(self.source) }
    }

    pub(super) fn is_uniform(&self) -> bool {
        matches!(self.source, LogitSource::Uniform)
    }

    fn first_block(&self) -> Option<&Tensor> {
        match &self.source {
            LogitSource::Blocks(blocks) => blocks.first(),
            LogitSource::Uniform | LogitSource::Host(_) => None,
        }
    }

    pub(super) fn device(&self) -> Device {
        self.first_block().map_or(Device::Cpu, Tensor::device)
    }

    pub(super) fn kind(&self) -> Kind {
        self.first_block().map_or(Kind::Float, Tensor::kind)
    }

    /// Returns the logits of the legal slots, `[legal]`, with gradient.
    pub(super) fn legal(&self, masks: &Masks) -> &Tensor {
        self.legal.get_or_init(|| {
            let plain = match &self.source {
                LogitSource::Uniform => {
                    return Tensor::zeros([n_legal(masks) as i64], (Kind::Float, Device::Cpu));
                }
                LogitSource::Host(logits) => Tensor::from_slice(&legal_of(masks, logits, |logit| logit)),
                LogitSource::Blocks(blocks) => legal_of_blocks(masks, blocks),
            };
            match &self.scale {
                Some(scale) => plain * scale.index_select(0, &states(masks, scale.device())),
                None => plain,
            }
        })
    }

    /// Returns the log-probability of every slot, `[slots]`, if there is a single block with one row per
    /// state; otherwise `None`. For such a block `log_softmax` needs a third of the operations that sums over
    /// each state's legal slots need. Illegal slots get minus infinity. For a state without a legal slot the
    /// log-probabilities have no meaning.
    pub(super) fn dense_log_probs(&self, masks: &Masks) -> Option<Tensor> {
        let (LogitSource::Blocks(blocks), [block]) = (&self.source, masks.blocks.as_slice()) else {
            return None;
        };
        if block.width == 0
            || masks.is_empty()
            || block.row_ptr.iter().enumerate().any(|(i, &start)| i != start)
        {
            return None;
        }
        // A penalty of minus infinity is added to illegal logits. Writing the value through a mask would take
        // ten times as long, and as long again in the backward pass.
        let penalty = |&legal: &bool| if legal { 0.0 } else { f32::NEG_INFINITY };
        let mut penalties: Vec<f32> = masks.legal.iter().map(penalty).collect();
        for (row, penalties) in penalties.chunks_exact_mut(block.width).enumerate() {
            if masks.n_legal(row) == 0 {
                // The log-probabilities of a state without a legal slot are never used. If all its slots had
                // a penalty, the gradient of its logits would be NaN and reach the network's weights.
                penalties.fill(0.0);
            }
        }
        let penalties = upload(&penalties, blocks[0].device()).view_as(&blocks[0]);
        self.log_probs_with(&penalties)
    }

    /// Returns the log-probability of every slot, `[slots]`, for logits in one block, `[states, width]`;
    /// `None` for equal logits. `penalties` is `[states, width]`: minus infinity for illegal slots, otherwise
    /// 0.
    pub(super) fn log_probs_with(&self, penalties: &Tensor) -> Option<Tensor> {
        let logits = self.scaled_block()?;
        Some((&logits + penalties.to_kind(logits.kind())).log_softmax(1, None).view(-1))
    }

    /// Returns the first block of logits, multiplied by the scale; `None` for equal logits.
    pub(super) fn scaled_block(&self) -> Option<Tensor> {
        let logits = self.first_block()?;
        let scaled = self.scale.as_ref().map(|scale| logits * scale.unsqueeze(1));
        Some(scaled.unwrap_or_else(|| logits.shallow_clone()))
    }

    /// Returns the logits of the legal slots on the host. Whole blocks are copied to the host, and the legal
    /// slots are selected there.
    pub(super) fn host(&self, masks: &Masks) -> &[f64] {
        self.host.get_or_init(|| match (&self.source, self.legal.get()) {
            (LogitSource::Uniform, _) => vec![0.0; n_legal(masks)],
            (_, None) if self.scale.is_some() => to_host(self.legal(masks)),
            (_, Some(logits)) => to_host(logits),
            (LogitSource::Host(logits), None) => legal_of(masks, logits, f64::from),
            (LogitSource::Blocks(blocks), None) => {
                let mut flat = Vec::new();
                for block in fetch_all(&blocks.iter().collect::<Vec<_>>()) {
                    flat.append(&mut to_host(&block));
                }
                positions(masks).into_iter().map(|position| flat[position as usize]).collect()
            }
        })
    }
}

fn n_legal(masks: &Masks) -> usize {
    (0..masks.len()).map(|row| masks.n_legal(row)).sum()
}

/// Returns the logits of the legal slots, selected from `logits`, which has one number per slot, and
/// converted by `convert`.
fn legal_of<T: Copy + Default>(masks: &Masks, logits: &[f32], convert: impl Fn(f32) -> T) -> Vec<T> {
    let n = n_legal(masks);
    // Each logit is written, and the next one overwrites it if it isn't legal. This needs no branch, which
    // would be mispredicted often. The additional entry is for illegal slots after the last legal one.
    let mut out = vec![T::default(); n + 1];
    let mut next = 0;
    for (&logit, &legal) in logits.iter().zip(&masks.legal) {
        out[next] = convert(logit);
        next += usize::from(legal);
    }
    out.truncate(n);
    out
}

/// Returns the logits of the legal slots, `[legal]`, selected from one tensor per block.
fn legal_of_blocks(masks: &Masks, blocks: &[Tensor]) -> Tensor {
    let flat: Vec<Tensor> = blocks.iter().map(|block| block.reshape([-1])).collect();
    let flat = if flat.len() == 1 { flat[0].shallow_clone() } else { Tensor::cat(&flat, 0) };
    let positions = positions(masks);
    let whole = positions.len() == flat.numel() && positions.iter().enumerate().all(|(k, &p)| k as i64 == p);
    if whole { flat } else { flat.index_select(0, &upload(&positions, flat.device())) }
}

/// Returns the index of the state of each legal slot, `[legal]`.
fn states(masks: &Masks, device: Device) -> Tensor {
    let states = (0..masks.len()).flat_map(|row| std::iter::repeat_n(row as i64, masks.n_legal(row)));
    upload(&states.collect::<Vec<_>>(), device)
}
