//! The proposals of chains.

use gfn::env::{Direction, DiscreteEnv, Rows};
use gfn::rollout::Sampler;
use gfn::{Error, Result, Rng};

use super::moves::{LegalMoves, make_moves};
use super::{Chains, Proposal};

/// The number of objects whose moves are tried to choose the default proposals.
const N_TRIED: usize = 8;
/// The number of backward moves of those default proposals back and forth that keep most of an object.
const FEW_MOVES: usize = 4;

/// Proposed objects, for some of the chains.
pub(super) struct ProposalBatch<S> {
    /// The chain of each proposed object.
    pub(super) rows: Vec<usize>,
    pub(super) objects: S,
    /// The log-probability of the reverse proposal minus that of the proposal.
    pub(super) log_ratios: Vec<f64>,
    /// The direction of the single move that leads to each object, and the legal moves of the object; empty
    /// for proposals of several moves.
    pub(super) moves: Vec<(Direction, LegalMoves)>,
}

impl<E: DiscreteEnv> Chains<E> {
    /// Draws the kind of proposal of a round.
    pub(super) fn draw_proposal(&self, rng: &mut Rng) -> Proposal {
        let proposals = &self.config.proposals;
        let total: f64 = proposals.iter().map(|(weight, _)| weight).sum();
        let mut rest = rng.uniform() * total;
        let mut last = Proposal::OneMove;
        for &(weight, proposal) in proposals.iter().filter(|(weight, _)| *weight > 0.0) {
            last = proposal;
            rest -= weight;
            if rest < 0.0 {
                break;
            }
        }
        last
    }

    /// Draws a move of each chain. Chains whose move doesn't lead to a finished object propose nothing.
    pub(super) fn propose_move(&mut self, env: &E, rng: &mut Rng) -> Result<ProposalBatch<E::States>> {
        let unlisted: Vec<usize> = (0..self.len()).filter(|&row| self.moves[row].is_none()).collect();
        if !unlisted.is_empty() {
            let listed = LegalMoves::list(env, &self.objects.select(&unlisted));
            for (row, moves) in unlisted.into_iter().zip(listed) {
                self.moves[row] = Some(moves);
            }
        }
        let mut rows = Vec::new();
        let mut choices = Vec::new();
        for (row, moves) in self.moves.iter().enumerate() {
            // An environment with a single object has no move.
            let Some(moves) = moves.as_ref().filter(|moves| moves.len() > 0) else { continue };
            rows.push(row);
            choices.push(moves.get(rng.below(moves.len())));
        }
        let (order, objects) = make_moves(env, &self.objects, &rows, &choices)?;
        let mut out = ProposalBatch {
            rows: Vec::new(),
            objects: self.objects.select(&[]),
            log_ratios: Vec::new(),
            moves: Vec::new(),
        };
        let mut finished = Vec::new();
        for (k, (i, after)) in order.into_iter().zip(LegalMoves::list(env, &objects)).enumerate() {
            if after.is_finished {
                finished.push(k);
                out.rows.push(rows[i]);
                out.log_ratios.extend(self.moves[rows[i]].iter().map(|before| before.log_ratio(&after)));
                out.moves.push((choices[i].0, after));
            }
        }
        out.objects = objects.select(&finished);
        Ok(out)
    }

    /// Proposes objects by backward and forward moves of a sampler's policy. A proposal of the chain's own
    /// object is left out: it changes nothing, and needs no reward.
    pub(super) fn propose_paths(
        &self,
        sampler: &Sampler<'_, E>,
        max_back: usize,
        rng: &mut Rng,
    ) -> Result<ProposalBatch<E::States>> {
        let n = self.len();
        let (objects, log_ratios) = sampler.propose_by_local_search(max_back, &self.objects, rng)?;
        let mut both = self.objects.clone();
        both.append(objects.clone());
        let groups = both.group().group_of;
        let rows: Vec<usize> = (0..n).filter(|&row| groups[row] != groups[n + row]).collect();
        Ok(ProposalBatch {
            objects: objects.select(&rows),
            log_ratios: rows.iter().map(|&row| log_ratios[row]).collect(),
            moves: Vec::new(),
            rows,
        })
    }
}

/// Backward moves from a few objects to an initial state.
struct BackwardPaths {
    /// The largest number of moves.
    depth: usize,
    /// `true` if each state has one parent, and no state before the objects is finished. Chains then can't
    /// change the first entries of objects otherwise than by going back to them.
    is_single_order: bool,
}

impl BackwardPaths {
    /// Goes back by the first legal move of each state.
    fn follow<E: DiscreteEnv>(env: &E, start: &E::States) -> Result<Self> {
        let tried: Vec<usize> = (0..start.len().min(N_TRIED)).collect();
        let mut states = start.select(&tried);
        let mut out = Self { depth: 0, is_single_order: true };
        loop {
            let moves = LegalMoves::list(env, &states);
            let rows: Vec<usize> = (0..moves.len()).filter(|&row| moves[row].n_backward() > 0).collect();
            let is_single =
                |moves: &LegalMoves| moves.n_backward() <= 1 && (out.depth == 0 || !moves.is_finished);
            out.is_single_order &= moves.iter().all(is_single);
            if rows.is_empty() {
                return Ok(out);
            }
            let choices: Vec<(Direction, u32)> = rows.iter().map(|&row| moves[row].get(0)).collect();
            (_, states) = make_moves(env, &states, &rows, &choices)?;
            out.depth += 1;
        }
    }
}

/// Checks that proposals can change the whole of an object, if all of them go back and forth.
pub(super) fn check_proposals<E: DiscreteEnv>(
    env: &E,
    start: &E::States,
    proposals: &[(f64, Proposal)],
) -> Result<()> {
    let mut largest = 0;
    for (_, proposal) in proposals.iter().filter(|(weight, _)| *weight > 0.0) {
        match *proposal {
            // Single moves backward can follow each other as far as all states between are finished.
            Proposal::OneMove => {}
            Proposal::BackAndForth { max_back } | Proposal::Policy { max_back } => {
                largest = largest.max(max_back);
            }
        }
    }
    let paths = BackwardPaths::follow(env, start)?;
    if paths.is_single_order && largest < paths.depth {
        let got = format!("{largest}, with objects of {} moves", paths.depth);
        let expected = "at least the number of moves of an object, because otherwise the first entries never \
            change in this environment";
        return Err(Error::config("the largest max_back of the proposals", got, expected));
    }
    Ok(())
}

/// Chooses proposals by trying all moves of a few objects: one move if each leads to an object, back and
/// forth if none does, both if some do.
pub(super) fn default_proposals<E: DiscreteEnv>(env: &E, start: &E::States) -> Result<Vec<(f64, Proposal)>> {
    let tried: Vec<usize> = (0..start.len().min(N_TRIED)).collect();
    let start = start.select(&tried);
    let mut rows = Vec::new();
    let mut choices = Vec::new();
    for (row, moves) in LegalMoves::list(env, &start).into_iter().enumerate() {
        for k in 0..moves.len() {
            rows.push(row);
            choices.push(moves.get(k));
        }
    }
    let (_, results) = make_moves(env, &start, &rows, &choices)?;
    let finished = LegalMoves::list(env, &results).iter().filter(|moves| moves.is_finished).count();
    let mut out = Vec::new();
    if finished > 0 {
        out.push((1.0, Proposal::OneMove));
    }
    if finished < rows.len() || rows.is_empty() {
        // Proposals back to the initial state lead to every object; those of few moves are accepted more
        // often.
        let depth = BackwardPaths::follow(env, &start)?.depth.max(1);
        if depth > FEW_MOVES {
            out.push((1.0, Proposal::BackAndForth { max_back: FEW_MOVES }));
        }
        out.push((1.0, Proposal::BackAndForth { max_back: depth }));
    }
    Ok(out)
}
