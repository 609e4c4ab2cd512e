//! Steps of an environment whose moves can be listed, state by state as Python asks for them.

use std::sync::Arc;

use gfn::env::{Direction, EnumerableEnv, Env, Masks, Rows, Slots, VectorEnv};
use gfn::graph::{GraphEnv, GraphStates};
use gfn::rollout::ReplayEnv;
use gfn::{Error, Result};
use pyo3::prelude::*;

use crate::env::EnvKind;
use crate::errors::passed_on;
use crate::evaluation::Shown;
use crate::objects::{Border, read_graphs, read_structures, read_vectors};
use crate::session::later;
use crate::states::{show_graphs, show_structures, show_vectors};

/// Moves of a batch of states, as columns of one length.
#[derive(Default)]
pub(crate) struct Named {
    pub(crate) state: Vec<i64>,
    pub(crate) slot: Vec<i64>,
    pub(crate) kind: Vec<i64>,
    pub(crate) a: Vec<i64>,
    pub(crate) b: Vec<i64>,
    pub(crate) column: Vec<i64>,
}

/// The place of a move's type, its nodes, and its number among the type's moves there.
struct Name {
    kind: usize,
    a: u32,
    b: u32,
    column: u32,
}

/// What one step led to.
pub(crate) struct Stepped {
    pub(crate) states: Shown,
    pub(crate) reverse: Vec<i64>,
    pub(crate) exit: Vec<bool>,
    pub(crate) done: Vec<bool>,
}

/// An environment of states of one type, how they go to and fro, and what their moves are called.
struct ByHand<E: Env> {
    env: E,
    border: Border<E::States>,
    types: Vec<String>,
    name: fn(&E, Direction, &E::States, usize, u32) -> Result<Name>,
    key: fn(&E, &E::States) -> Vec<Vec<u8>>,
    log_automorphisms: fn(&E, &E::States) -> Result<Vec<f64>>,
}

/// An environment, whatever its states.
pub(crate) trait Steps: Send + Sync {
    /// The names of the types of moves, the exit last where there is one.
    fn types(&self) -> &[String];
    fn n_instances(&self) -> u32;
    fn initial(&self, instances: &[u32]) -> Result<Shown>;
    fn masks(&self, states: &Py<PyAny>, direction: Direction) -> Result<Masks>;
    /// These moves by name; all legal ones without a choice.
    fn named(&self, states: &Py<PyAny>, direction: Direction, moves: Option<(Vec<usize>, Vec<u32>)>) -> Result<Named>;
    fn step(&self, states: &Py<PyAny>, direction: Direction, slots: Vec<u32>) -> Result<Stepped>;
    fn is_initial(&self, states: &Py<PyAny>) -> Result<Vec<bool>>;
    fn keys(&self, states: &Py<PyAny>) -> Result<Vec<Vec<u8>>>;
    fn log_automorphisms(&self, states: &Py<PyAny>) -> Result<Vec<f64>>;
}

fn name_of_graph(env: &GraphEnv, direction: Direction, states: &GraphStates, row: usize, slot: u32) -> Result<Name> {
    let (kind, _, action) = env.actions().decode(direction, &states.graphs()[row], slot)?;
    Ok(Name { kind: kind.0, a: action.a, b: action.b, column: action.class })
}

fn graphs(env: GraphEnv, border: Border<GraphStates>) -> ByHand<GraphEnv> {
    let types = env.actions().types().map(|(_, action_type)| action_type.name().to_owned()).collect();
    ByHand {
        env,
        border,
        types,
        name: name_of_graph,
        key: |env, states| {
            let keys = env.keys(states);
            keys.iter().map(|key| key.words().iter().flat_map(|word| word.to_le_bytes()).collect()).collect()
        },
        log_automorphisms: |env, states| {
            if !env.merges_isomorphic() {
                return Ok(vec![0.0; states.len()]);
            }
            states.graphs().iter().map(|graph| env.log_automorphisms(graph)).collect()
        },
    }
}

fn vectors(env: VectorEnv, border: Border<gfn::env::VectorStates>) -> ByHand<VectorEnv> {
    ByHand {
        env,
        border,
        types: vec!["move".to_owned(), "exit".to_owned()],
        name: |env, direction, states, row, slot| {
            let exits = direction == Direction::Forward
                && env.exit_actions(&states.select(&[row])).is_some_and(|exit| exit.0 == [slot]);
            Ok(Name { kind: usize::from(exits), a: 0, b: 0, column: slot })
        },
        key: |env, states| {
            env.keys(states).iter().map(|key| key.iter().flat_map(|entry| entry.to_le_bytes()).collect()).collect()
        },
        log_automorphisms: |_, states| Ok(vec![0.0; states.len()]),
    }
}

/// An environment by hand.
///
/// # Errors
/// [`Error::Config`] for one of points, whose moves can't be listed.
pub(crate) fn by_hand(kind: &EnvKind) -> Result<Arc<dyn Steps>> {
    Ok(match kind {
        EnvKind::Graphs { env, reading } => {
            let border = Border {
                show: show_graphs(reading.clone()),
                read: read_graphs(reading.clone(), env.schema().clone()),
                features: None,
            };
            Arc::new(graphs(env.clone(), border))
        }
        EnvKind::Vectors(of) => {
            let width = of.env.width();
            let border = Border { show: show_vectors(), read: read_vectors(width, of.values), features: None };
            Arc::new(vectors(of.env.clone(), border))
        }
        EnvKind::Structures(of) => {
            let n = of.n_nodes();
            Arc::new(graphs(
                of.env().clone(),
                Border { show: show_structures(n), read: read_structures(n), features: None },
            ))
        }
        EnvKind::Box(_) | EnvKind::Line(_) | EnvKind::Diffusion(_) => {
            let expected =
                "one whose moves can be listed (graphs, vectors, acyclic graphs); of points, walk by a `Sampler`";
            return Err(Error::config("an environment to be walked by hand", "one of points", expected));
        }
    })
}

impl<E: ReplayEnv> ByHand<E> {
    fn read(&self, states: &Py<PyAny>) -> Result<E::States> {
        let read = |py: Python<'_>| (self.border.read)(states.bind(py), "states");
        Python::attach(read).map_err(passed_on("the states"))
    }
}

impl<E: EnumerableEnv> ByHand<E> {
    /// The names of these slots of states.
    fn names(&self, direction: Direction, states: &E::States, rows: &[usize], slots: &[u32]) -> Result<Named> {
        let mut out = Named::default();
        for (&row, &slot) in rows.iter().zip(slots) {
            let Name { kind, a, b, column } = (self.name)(&self.env, direction, states, row, slot)?;
            out.state.push(row as i64);
            out.slot.push(slot.into());
            out.kind.push(kind as i64);
            out.a.push(a.into());
            out.b.push(b.into());
            out.column.push(column.into());
        }
        Ok(out)
    }
}

impl<E: EnumerableEnv + 'static> Steps for ByHand<E>
where
    E::States: 'static,
{
    fn types(&self) -> &[String] {
        &self.types
    }

    fn n_instances(&self) -> u32 {
        self.env.n_instances()
    }

    fn initial(&self, instances: &[u32]) -> Result<Shown> {
        let n = self.env.n_instances();
        match instances.iter().find(|&&instance| instance >= n) {
            Some(&instance) => Err(Error::out_of_range(instance as usize, n as usize)),
            None => Ok(later(&self.border.show, self.env.initial(instances))),
        }
    }

    fn masks(&self, states: &Py<PyAny>, direction: Direction) -> Result<Masks> {
        Ok(self.env.masks(direction, &self.read(states)?))
    }

    fn named(&self, states: &Py<PyAny>, direction: Direction, moves: Option<(Vec<usize>, Vec<u32>)>) -> Result<Named> {
        let states = self.read(states)?;
        let (rows, slots) = moves.unwrap_or_else(|| {
            let masks = self.env.masks(direction, &states);
            (0..masks.len())
                .flat_map(|row| masks.legal_slots(row).map(move |slot| (row, slot)).collect::<Vec<_>>())
                .unzip()
        });
        match rows.iter().find(|&&row| row >= states.len()) {
            Some(&row) => Err(Error::out_of_range(row, states.len())),
            None => self.names(direction, &states, &rows, &slots),
        }
    }

    fn step(&self, states: &Py<PyAny>, direction: Direction, slots: Vec<u32>) -> Result<Stepped> {
        let mut states = self.read(states)?;
        if slots.len() != states.len() {
            return Err(Error::shape(
                "moves",
                [states.len() as i64],
                [slots.len() as i64],
                "give one move for each state",
            ));
        }
        let masks = self.env.masks(direction, &states);
        for (row, &slot) in slots.iter().enumerate() {
            masks.check(row, slot, || self.env.describe(direction, &states, row, slot))?;
        }
        let step = self.env.step(direction, &mut states, &Slots(slots))?;
        Ok(Stepped {
            states: later(&self.border.show, states),
            reverse: step.reverse.0.into_iter().map(i64::from).collect(),
            exit: step.exit,
            done: step.done,
        })
    }

    fn is_initial(&self, states: &Py<PyAny>) -> Result<Vec<bool>> {
        Ok(self.env.is_initial(&self.read(states)?))
    }

    fn keys(&self, states: &Py<PyAny>) -> Result<Vec<Vec<u8>>> {
        Ok((self.key)(&self.env, &self.read(states)?))
    }

    fn log_automorphisms(&self, states: &Py<PyAny>) -> Result<Vec<f64>> {
        (self.log_automorphisms)(&self.env, &self.read(states)?)
    }
}
