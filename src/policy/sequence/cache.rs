//! A cache of a sequence network's rows for the prefixes that it has read.

use std::collections::{BTreeMap, HashMap};

use tch::{Device, Kind, Tensor, no_grad};

use super::prefixes::Prefixes;
use crate::nn::SequenceNet;
use crate::tensor::index_tensor;

/// The parent of the prefix that contains only the start symbol.
const NOTHING: u32 = u32::MAX;
/// Initial capacity, in rows.
const FIRST_ROOM: usize = 256;

/// The rows that a [`SequenceNet`] computed for prefixes, in a tree in which a child has one more input than
/// its parent.
///
/// A prefix is read once and kept with its rows, so results don't depend on the order, the number or the
/// batch mates of requests. It lives for one roll-out, in which the parameters stay as they are.
#[derive(Debug)]
pub(super) struct PrefixCache {
    /// The child of a prefix for each next input.
    children: HashMap<(u32, u32), u32>,
    /// Parent and last input of each prefix; a parent comes before its children.
    prefixes: Vec<(u32, u32)>,
    /// The prefixes' rows, `[room, row_width]`.
    rows: Option<Tensor>,
    /// Largest number of prefixes.
    limit: usize,
    /// Kind and device of the rows.
    options: (Kind, Device),
    /// Number of network steps, and number of prefixes read in them, since they were last taken.
    pub(super) steps: (u64, u64),
}

/// The positions of a batch of prefixes in the cache, now or once they are read.
struct Plan {
    /// Known prefixes by their number, new ones by their index in `new`.
    places: Vec<Result<u32, usize>>,
    new: Vec<New>,
}

struct New {
    parent: u32,
    input: u32,
    position: usize,
}

impl PrefixCache {
    /// An empty cache for rows of a kind on a device, with room for `limit` prefixes.
    pub(super) fn new(limit: usize, options: (Kind, Device)) -> Self {
        let limit = limit.min(NOTHING as usize);
        let (children, prefixes) = (HashMap::new(), Vec::new());
        Self { children, prefixes, rows: None, limit, options, steps: (0, 0) }
    }

    /// The rows of these prefixes, `[n, row_width]`.
    ///
    /// `None` if a prefix is more than one input longer than any known one, or if there is no room for all of
    /// them and their ancestors. Then it is cheaper to read whole sequences.
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
            let places = plan.places.iter().map(|place| match *place {
                Ok(known) => known as usize,
                Err(new) => numbers[new],
            });
            let places: Vec<usize> = places.collect();
            self.rows.as_ref().map(|rows| rows.index_select(0, &index_tensor(&places, rows.device())))
        })
    }

    fn plan(&self, prefixes: &Prefixes<'_>) -> Option<Plan> {
        let mut plan = Plan { places: Vec::with_capacity(prefixes.len()), new: Vec::new() };
        let mut places: HashMap<(u32, u32), usize> = HashMap::new();
        for row in 0..prefixes.len() {
            let mut at = NOTHING;
            let mut missing = None;
            for input in prefixes.inputs(row) {
                if missing.is_some() {
                    return None;
                }
                match self.children.get(&(at, input)) {
                    Some(&child) => at = child,
                    None => missing = Some(input),
                }
            }
            plan.places.push(match missing {
                None => Ok(at),
                Some(input) => Err(*places.entry((at, input)).or_insert_with(|| {
                    plan.new.push(New { parent: at, input, position: prefixes.position(row) });
                    plan.new.len() - 1
                })),
            });
        }
        Some(plan)
    }

    /// Reads new prefixes, all of one length in one step, and returns the number of each.
    fn read(&mut self, net: &dyn SequenceNet, new: &[New]) -> Vec<usize> {
        let mut by_position: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        new.iter().enumerate().for_each(|(k, prefix)| by_position.entry(prefix.position).or_default().push(k));
        let mut numbers = vec![0; new.len()];
        for (position, members) in by_position {
            let inputs: Vec<i64> = members.iter().map(|&k| i64::from(new[k].input)).collect();
            let reach = net.reach(position);
            let mut before = vec![0; members.len() * reach];
            for (line, &k) in before.chunks_exact_mut(reach.max(1)).zip(&members) {
                let mut at = new[k].parent;
                for place in line.iter_mut().rev() {
                    *place = at as usize;
                    at = self.prefixes[at as usize].0;
                }
            }
            let memory = self.memory(net, &before, members.len(), reach);
            let inputs = Tensor::from_slice(&inputs).to_device(memory.device());
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

    /// The rows with these numbers, `[n, reach, row_width]`.
    fn memory(&self, net: &dyn SequenceNet, numbers: &[usize], n: usize, reach: usize) -> Tensor {
        let size = [n as i64, reach as i64, net.row_width()];
        match &self.rows {
            Some(rows) if reach > 0 => rows.index_select(0, &index_tensor(numbers, rows.device())).view(size),
            _ => Tensor::zeros(size, self.options),
        }
    }

    /// Appends rows.
    fn store(&mut self, new: &Tensor) {
        let (used, n, width) = (self.prefixes.len() as i64, new.size()[0], new.size()[1]);
        let room = self.rows.as_ref().map_or(0, |rows| rows.size()[0]);
        let rows = match self.rows.take() {
            Some(rows) if used + n <= room => rows,
            old => {
                let more = (2 * room).max(FIRST_ROOM as i64).min(self.limit as i64).max(used + n);
                let rows = Tensor::empty([more, width], (new.kind(), new.device()));
                if let Some(old) = old {
                    rows.narrow(0, 0, used).copy_(&old.narrow(0, 0, used));
                }
                rows
            }
        };
        rows.narrow(0, used, n).copy_(new);
        self.rows = Some(rows);
    }

    /// Drops all prefixes but those of a plan and their ancestors.
    fn keep_only(&mut self, plan: &Plan) {
        let mut kept = vec![false; self.prefixes.len()];
        for place in &plan.places {
            let mut at = place.map_or_else(|new| plan.new[new].parent, |known| known);
            while at != NOTHING && !std::mem::replace(&mut kept[at as usize], true) {
                at = self.prefixes[at as usize].0;
            }
        }
        let old = std::mem::take(&mut self.prefixes);
        self.children.clear();
        let mut renamed = vec![NOTHING; old.len()];
        let mut order = Vec::new();
        for (number, (parent, input)) in old.into_iter().enumerate().filter(|(number, _)| kept[*number]) {
            let parent = if parent == NOTHING { NOTHING } else { renamed[parent as usize] };
            renamed[number] = self.prefixes.len() as u32;
            self.children.insert((parent, input), renamed[number]);
            self.prefixes.push((parent, input));
            order.push(number);
        }
        if let Some(rows) = &mut self.rows {
            no_grad(|| {
                let moved = rows.index_select(0, &index_tensor(&order, rows.device()));
                rows.narrow(0, 0, order.len() as i64).copy_(&moved);
            });
        }
    }
}
