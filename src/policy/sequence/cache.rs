//! A cache of a sequence network's results (output and memory), with one row of numbers per prefix (beginning
//! of a sequence).

use std::collections::{BTreeMap, HashMap};

use tch::{Device, Kind, Tensor, no_grad};

use super::prefixes::Prefixes;
use crate::nn::SequenceNet;
use crate::tensor::{select_rows, upload};

/// The number that stands for "no parent". The prefix that contains only the start symbol has this number as
/// its parent.
const ROOT: u32 = u32::MAX;
/// The smallest number of prefixes for which the cache allocates memory, unless its limit is smaller.
const MIN_CAPACITY: usize = 256;

/// The results of a [`SequenceNet`] (a row of numbers each) for prefixes. Prefixes form a tree, in which a
/// child is its parent followed by one more input. Prefixes are numbered in the order in which they were
/// added.
///
/// The network evaluates each prefix once, so every request for a prefix gets the same result. The cache is
/// used for one roll-out, during which the parameters don't change.
#[derive(Debug)]
pub(super) struct PrefixCache {
    /// A map from the number of a prefix and one more input to the number of the prefix with this input
    /// appended.
    children: HashMap<(u32, u32), u32>,
    /// The parent of each prefix, as a number, and the last input of the prefix. A parent has a smaller
    /// number than its children.
    prefixes: Vec<(u32, u32)>,
    /// The network's results for the prefixes, `[capacity, row_width]`, one row per prefix in the order of
    /// their numbers; `None` while the cache is empty.
    rows: Option<Tensor>,
    /// The maximum number of prefixes in the cache.
    limit: usize,
    /// The dtype and the device of the network's results.
    options: (Kind, Device),
    /// The number of network evaluations, and the number of prefixes in these evaluations. The caller may
    /// reset both.
    pub(super) steps: (u64, u64),
}

/// A plan for a requested batch of prefixes: the number of each prefix in the cache, and the prefixes that
/// the network must evaluate first because they aren't in the cache.
struct Plan {
    /// An entry per requested prefix: `Ok` with its number if the cache holds the prefix, otherwise `Err`
    /// with its index in `new`.
    positions: Vec<Result<u32, usize>>,
    new: Vec<NewPrefix>,
}

/// A prefix that isn't in the cache.
struct NewPrefix {
    parent: u32,
    input: u32,
    position: usize,
}

impl PrefixCache {
    /// Creates an empty cache of at most `limit` prefixes. `options` are the dtype and the device of the
    /// network's results.
    pub(super) fn new(limit: usize, options: (Kind, Device)) -> Self {
        let limit = limit.min(ROOT as usize);
        Self { children: HashMap::new(), prefixes: Vec::new(), rows: None, limit, options, steps: (0, 0) }
    }

    /// Returns the network's results for these prefixes, `[n, row_width]`. The network evaluates the prefixes
    /// that aren't in the cache.
    ///
    /// Returns `None` if the cache holds neither one of the prefixes nor that prefix's parent, or if `limit`
    /// is too small for the prefixes and their ancestors. The caller should then evaluate whole sequences.
    pub(super) fn rows(&mut self, net: &dyn SequenceNet, prefixes: &Prefixes<'_>) -> Option<Tensor> {
        let mut plan = self.plan(prefixes)?;
        if self.prefixes.len() + plan.new.len() > self.limit {
            self.keep_only(&plan);
            plan = self.plan(prefixes)?;
            if self.prefixes.len() + plan.new.len() > self.limit {
                return None;
            }
        }
        no_grad(|| {
            let numbers = self.read(net, &plan.new);
            let mut indices = Vec::with_capacity(plan.positions.len());
            for position in &plan.positions {
                indices.push(match *position {
                    Ok(number) => number as usize,
                    Err(new) => numbers[new],
                });
            }
            self.rows.as_ref().map(|rows| select_rows(rows, &indices))
        })
    }

    /// Looks up prefixes in the cache. Returns `None` if the cache holds neither one of the prefixes nor that
    /// prefix's parent (the prefix without its last input).
    fn plan(&self, prefixes: &Prefixes<'_>) -> Option<Plan> {
        let mut plan = Plan { positions: Vec::with_capacity(prefixes.len()), new: Vec::new() };
        let mut new_indices: HashMap<(u32, u32), usize> = HashMap::new();
        for row in 0..prefixes.len() {
            let mut prefix = ROOT;
            let mut missing = None;
            for input in prefixes.inputs(row) {
                if missing.is_some() {
                    return None;
                }
                match self.children.get(&(prefix, input)) {
                    Some(&child) => prefix = child,
                    None => missing = Some(input),
                }
            }
            plan.positions.push(match missing {
                None => Ok(prefix),
                Some(input) => Err(*new_indices.entry((prefix, input)).or_insert_with(|| {
                    plan.new.push(NewPrefix { parent: prefix, input, position: prefixes.position(row) });
                    plan.new.len() - 1
                })),
            });
        }
        Some(plan)
    }

    /// Evaluates new prefixes, with one network evaluation per prefix length, and adds them to the cache.
    /// Returns their numbers in the cache.
    fn read(&mut self, net: &dyn SequenceNet, new: &[NewPrefix]) -> Vec<usize> {
        let mut by_position: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (k, prefix) in new.iter().enumerate() {
            by_position.entry(prefix.position).or_default().push(k);
        }
        let mut numbers = vec![0; new.len()];
        for (position, members) in by_position {
            let inputs: Vec<i64> = members.iter().map(|&k| i64::from(new[k].input)).collect();
            let reach = net.reach(position);
            let mut ancestors = vec![0; members.len() * reach];
            for (line, &k) in ancestors.chunks_exact_mut(reach.max(1)).zip(&members) {
                let mut prefix = new[k].parent;
                for ancestor in line.iter_mut().rev() {
                    *ancestor = prefix as usize;
                    prefix = self.prefixes[prefix as usize].0;
                }
            }
            let memory = self.memory(net, &ancestors, members.len(), reach);
            let inputs = upload(&inputs, memory.device());
            let out = net.step(&inputs, position, &memory);
            self.steps.0 += 1;
            self.steps.1 += members.len() as u64;
            self.store(&out);
            for &k in &members {
                let number = self.prefixes.len();
                self.prefixes.push((new[k].parent, new[k].input));
                self.children.insert((new[k].parent, new[k].input), number as u32);
                numbers[k] = number;
            }
        }
        numbers
    }

    /// Returns the stored results that the network needs to evaluate the last inputs of `n` prefixes: the
    /// results for the `reach` ancestors before each prefix, `[n, reach, row_width]`. `numbers` holds the
    /// numbers of these ancestors, prefix by prefix.
    fn memory(&self, net: &dyn SequenceNet, numbers: &[usize], n: usize, reach: usize) -> Tensor {
        let size = [n as i64, reach as i64, net.row_width()];
        match &self.rows {
            Some(rows) if reach > 0 => select_rows(rows, numbers).view(size),
            _ => Tensor::zeros(size, self.options),
        }
    }

    /// Appends the network's results for new prefixes. If the capacity is too small, it is at least doubled.
    /// The capacity exceeds `limit` only if the stored results need more.
    fn store(&mut self, new: &Tensor) {
        let used = self.prefixes.len() as i64;
        let n = new.size()[0];
        let width = new.size()[1];
        let capacity = self.rows.as_ref().map_or(0, |rows| rows.size()[0]);
        let rows = match self.rows.take() {
            Some(rows) if used + n <= capacity => rows,
            old => {
                let new_capacity =
                    (2 * capacity).max(MIN_CAPACITY as i64).min(self.limit as i64).max(used + n);
                let rows = Tensor::empty([new_capacity, width], (new.kind(), new.device()));
                if let Some(old) = old {
                    rows.narrow(0, 0, used).copy_(&old.narrow(0, 0, used));
                }
                rows
            }
        };
        rows.narrow(0, used, n).copy_(new);
        self.rows = Some(rows);
    }

    /// Removes all prefixes from the cache except those that `plan` requests, and their ancestors.
    fn keep_only(&mut self, plan: &Plan) {
        let mut is_needed = vec![false; self.prefixes.len()];
        for position in &plan.positions {
            let mut prefix = position.unwrap_or_else(|new| plan.new[new].parent);
            while prefix != ROOT && !std::mem::replace(&mut is_needed[prefix as usize], true) {
                prefix = self.prefixes[prefix as usize].0;
            }
        }
        let old = std::mem::take(&mut self.prefixes);
        self.children.clear();
        let mut new_numbers = vec![ROOT; old.len()];
        let mut order = Vec::new();
        for (number, (parent, input)) in old.into_iter().enumerate().filter(|(number, _)| is_needed[*number])
        {
            let parent = if parent == ROOT { ROOT } else { new_numbers[parent as usize] };
            new_numbers[number] = self.prefixes.len() as u32;
            self.children.insert((parent, input), new_numbers[number]);
            self.prefixes.push((parent, input));
            order.push(number);
        }
        if let Some(rows) = &mut self.rows {
            no_grad(|| {
                let moved = select_rows(rows, &order);
                rows.narrow(0, 0, order.len() as i64).copy_(&moved);
            });
        }
    }
}
