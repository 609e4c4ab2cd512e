//! A store of the results of rules in Python. Rules depend on graphs and moves alone, so a result can be
//! reused.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gfn::graph::{ActionKind, GraphState, GraphStates, Move};

/// The number of words of memory that stored graphs and answers may take (64 MiB). Beyond it the store is
/// cleared.
const MAX_WORDS: usize = 1 << 23;
/// The number of words of memory that a question and its answer take.
const WORDS_PER_ANSWER: usize = 5;

/// A question that rules in Python answer about a graph.
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

/// The stored answers of rules in Python, by graph.
#[derive(Default)]
pub(super) struct Answers(Mutex<Store>);

impl Answers {
    /// Returns the answer to each question about a graph, from the store or from `ask`. Each new question is
    /// passed to `ask` once, with the index of its graph among the graphs that have new questions. If `ask`
    /// returns `None`, all questions are answered by `false`, and new questions aren't stored.
    ///
    /// No lock is held while Python runs, because rules may use the environment.
    pub(super) fn to(
        &self,
        questions: &[(&GraphState, Question)],
        ask: impl FnOnce(&GraphStates, &[(usize, Question)]) -> Option<Vec<bool>>,
    ) -> Vec<bool> {
        let (mut graphs, mut new) = (Vec::new(), Vec::new());
        let mut answers: Vec<Result<bool, usize>> = Vec::with_capacity(questions.len());
        {
            let known = self.lock();
            let (mut places, mut numbers) = (HashMap::new(), HashMap::new());
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
