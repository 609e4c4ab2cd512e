//! A cache of the answers of rules in Python. Answers can be reused, because they depend only on graphs and
//! moves.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gfn::graph::{ActionKind, GraphState, GraphStates, Move};

/// The largest number of 64-bit words that stored graphs and answers may take, which is 64 MiB. If it is
/// exceeded, the cache is cleared.
const MAX_WORDS: usize = 1 << 23;
/// The approximate number of 64-bit words that a question and its answer take.
const WORDS_PER_ANSWER: usize = 5;

/// A yes-or-no question about a graph, which rules in Python answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Question {
    Move(ActionKind, Move),
    Exit,
    Reachable,
}

#[derive(Default)]
struct Store {
    by_graph: HashMap<GraphState, HashMap<Question, bool>>,
    words: usize,
}

/// The cache of the answers of rules in Python, by graph.
#[derive(Default)]
pub(super) struct Answers(Mutex<Store>);

impl Answers {
    /// Returns the answer to each question about a graph, from the cache or from `ask`. The arguments of
    /// `ask` are a list of graphs, and the questions about them that aren't in the cache, each once. Each
    /// question is paired with the index of its graph in this list. If `ask` returns `None`, all answers are
    /// `false`, and nothing is added to the cache.
    ///
    /// No lock is held while Python runs, because rules may use the environment.
    pub(super) fn to(
        &self,
        questions: &[(&GraphState, Question)],
        ask: impl FnOnce(&GraphStates, &[(usize, Question)]) -> Option<Vec<bool>>,
    ) -> Vec<bool> {
        let mut graphs = Vec::new();
        let mut new = Vec::new();
        let mut answers: Vec<Result<bool, usize>> = Vec::with_capacity(questions.len());
        {
            let known = self.lock();
            let mut places = HashMap::new();
            let mut numbers = HashMap::new();
            for of_graph in questions.chunk_by(|one, other| std::ptr::eq(one.0, other.0)) {
                let before = known.by_graph.get(of_graph[0].0);
                for &(graph, question) in of_graph {
                    answers.push(before.and_then(|before| before.get(&question)).copied().ok_or_else(|| {
                        *numbers.entry((graph, question)).or_insert_with(|| {
                            let place = *places.entry(graph).or_insert_with(|| {
                                graphs.push(graph.clone());
                                graphs.len() - 1
                            });
                            new.push((place, question));
                            new.len() - 1
                        })
                    }));
                }
            }
        }
        let new_answers = if new.is_empty() {
            Vec::new()
        } else {
            let graphs = GraphStates::from(graphs);
            let Some(answers) = ask(&graphs, &new) else { return vec![false; questions.len()] };
            self.keep(&graphs, &new, &answers);
            answers
        };
        answers.into_iter().map(|answer| answer.unwrap_or_else(|number| new_answers[number])).collect()
    }

    fn keep(&self, graphs: &GraphStates, questions: &[(usize, Question)], answers: &[bool]) {
        let mut known = self.lock();
        if known.words > MAX_WORDS {
            *known = Store::default();
        }
        let mut by_graph = vec![HashMap::new(); graphs.graphs().len()];
        for (&(place, question), &answer) in questions.iter().zip(answers) {
            by_graph[place].insert(question, answer);
        }
        for (graph, answers) in graphs.graphs().iter().zip(by_graph) {
            let n = graph.n_nodes();
            known.words += 64 + 4 * (n + graph.n_edges()) + n * n / 64 + WORDS_PER_ANSWER * answers.len();
            known.by_graph.entry(graph.clone()).or_default().extend(answers);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
