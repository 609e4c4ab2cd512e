//! Paths to states. Files store states as paths, so that reading one only takes checked actions.

use super::run::Rollout;
use super::{ReplayEnv, Trajectories, Walks};
use crate::env::{Direction, Rows};
use crate::{Error, Result};

/// Number of steps after which the search for a backward path stops.
const MAX_STEPS: usize = 1_000_000;

/// Trajectories along some backward path of each of these states, in forward order. If there is an exit action, it is
/// their last.
fn first_ways<E: ReplayEnv>(env: &E, states: E::States) -> Result<Trajectories<E>> {
    let rollout = Rollout { direction: Direction::Backward, max_steps: MAX_STEPS, keep_states: true };
    let recorded = rollout.run(env, states, |states, _, _| env.way_back(states))?;
    Ok(recorded.into_trajectories())
}

/// A walk to each of these finished objects. Up to isomorphism it uses labels in the order of insertion.
pub(crate) fn first_walks<E: ReplayEnv>(env: &E, terminal: &E::States) -> Result<Walks<E>> {
    let ways = if terminal.is_empty() { Trajectories::none(env) } else { first_ways(env, terminal.clone())? };
    ways.walks(env)
}

/// Actions that lead from the initial state to each of these states, finished or not. With `last`, one further action
/// of each state (given with its reverse) is appended to its path.
///
/// Up to isomorphism all actions, the appended one included, use labels in the order of insertion.
pub(super) fn paths_to<E: ReplayEnv>(
    env: &E,
    states: &E::States,
    last: Option<(&E::Actions, &E::Actions)>,
) -> Result<(E::Actions, Vec<usize>)> {
    let initial = env.is_initial(states);
    let away: Vec<usize> = (0..states.len()).filter(|&row| !initial[row]).collect();
    let mut ways = match away.is_empty() {
        true => Trajectories::none(env),
        false => first_ways(env, states.select(&away))?,
    };
    let n = ways.n_transitions();
    let (mut order, mut offsets) = (Vec::new(), vec![0]);
    let mut ends = ways.offsets.windows(2);
    for (row, initial) in initial.into_iter().enumerate() {
        if !initial && let Some(ends) = ends.next() {
            order.extend((ends[0]..ends[1]).filter(|&way| !ways.exit[way]));
        }
        if last.is_some() {
            order.push(n + row);
        }
        offsets.push(order.len());
    }
    if let Some((actions, reverse)) = last {
        ways.states.append(states.clone());
        ways.actions.append(actions.clone());
        ways.reverse.append(reverse.clone());
    }
    let (states, actions, reverse) =
        (ways.states.select(&order), ways.actions.select(&order), ways.reverse.select(&order));
    let renamed = env.to_insertion_order(&states, &actions, &reverse, &offsets)?;
    Ok((renamed.map_or(actions, |renamed| renamed.actions), offsets))
}

/// The states that these actions lead to from these instances. Every action is checked.
pub(super) fn states_at<E: ReplayEnv>(
    env: &E,
    instances: &[u32],
    actions: &E::Actions,
    offsets: &[usize],
) -> Result<E::States> {
    let n = instances.len();
    let mut live: Vec<usize> = (0..n).collect();
    let mut states = env.initial(instances);
    let (mut reached, mut order) = (states.select(&[]), Vec::with_capacity(n));
    for step in 0.. {
        let (going, ended): (Vec<usize>, Vec<usize>) =
            (0..live.len()).partition(|&k| offsets[live[k]] + step < offsets[live[k] + 1]);
        if !ended.is_empty() {
            order.extend(ended.iter().map(|&k| live[k]));
            reached.append(states.select(&ended));
            states = states.select(&going);
            live = going.iter().map(|&k| live[k]).collect();
        }
        if live.is_empty() {
            break;
        }
        let places: Vec<usize> = live.iter().map(|&i| offsets[i] + step).collect();
        let taken = checked_step(env, &mut states, &actions.select(&places))?;
        if let Some(k) = taken.exit.iter().position(|exit| *exit) {
            return Err(Error::contract(
                "no exit lies on the way to a state",
                format!("path {} has one after {step} steps", live[k]),
            ));
        }
    }
    let mut places = vec![0; n];
    order.iter().enumerate().for_each(|(place, &i)| places[i] = place);
    Ok(reached.permute(&places))
}

/// One forward step, with every action checked.
pub(super) fn checked_step<E: ReplayEnv>(
    env: &E,
    states: &mut E::States,
    actions: &E::Actions,
) -> Result<crate::env::Step<E::Actions>> {
    env.check_actions(states, actions)?;
    env.step(Direction::Forward, states, actions)
}

impl<E: ReplayEnv> Trajectories<E> {
    /// An empty batch.
    pub(super) fn none(env: &E) -> Self {
        Self {
            states: env.initial(&[]),
            actions: env.no_actions(),
            reverse: env.no_actions(),
            exit: Vec::new(),
            offsets: vec![0],
            terminal: env.initial(&[]),
            conditions: None,
            log_rewards: None,
        }
    }
}
