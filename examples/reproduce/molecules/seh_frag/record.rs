//! The molecules that were found, by the number of molecules that were scored.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gfn::graph::CanonicalKey;
use gfn_molecules::{Fingerprint, Molecule, MoleculeScore, SehProxy};
use serde::Serialize;

use super::scored::ScoredTable;
use crate::prelude::*;

/// A score of at least 7/8 and a Tanimoto similarity below 0.7 to all found before make a mode (Bengio et al.
/// 2021).
const MODE_SCORE: f64 = 7.0 / 8.0;
const MODE_SIMILARITY: f64 = 0.7;
/// Last molecules whose mean score is reported, and best ones.
const LAST: usize = 1_000;
const BEST: usize = 100;

/// A point of the curve.
#[derive(Clone, Serialize)]
pub(super) struct Point {
    pub(super) reward_calls: usize,
    /// Mean score, the proxy's output over 8, of the last 1,000.
    pub(super) mean: f64,
    /// Mean score of the best 100 different ones.
    pub(super) top_100: f64,
    pub(super) modes: usize,
    pub(super) distinct: usize,
}

#[derive(Default)]
pub(super) struct SearchRecord {
    calls: usize,
    last: VecDeque<f64>,
    keys: BTreeSet<CanonicalKey>,
    /// The best molecules, the best first; scores of different molecules can be the same.
    best: BTreeMap<(u64, CanonicalKey), f64>,
    modes: Vec<Fingerprint>,
    pub(super) curve: Vec<Point>,
    every: usize,
    table: Option<ScoredTable>,
}

impl SearchRecord {
    fn note(&mut self, molecule: &Molecule, score: f64) {
        self.calls += 1;
        if let Some(table) = &mut self.table {
            table.push(molecule.smiles(), score);
        }
        self.last.push_back(score);
        if self.last.len() > LAST {
            self.last.pop_front();
        }
        let key = molecule.key();
        if self.keys.insert(key.clone()) {
            // Bits of numbers above 0 are in their order.
            self.best.insert((u64::MAX - score.to_bits(), key), score);
            if self.best.len() > BEST {
                self.best.pop_last();
            }
            if score >= MODE_SCORE {
                let print = Fingerprint::of(molecule);
                if self.modes.iter().all(|mode| mode.tanimoto(&print) < MODE_SIMILARITY) {
                    self.modes.push(print);
                }
            }
        }
        if self.calls.is_multiple_of(self.every.max(1)) {
            let point = self.point();
            self.curve.push(point);
        }
    }

    pub(super) fn point(&self) -> Point {
        let mean = |sum: f64, n: usize| sum / n.max(1) as f64;
        Point {
            reward_calls: self.calls,
            mean: mean(self.last.iter().sum(), self.last.len()),
            top_100: mean(self.best.values().sum(), self.best.len()),
            modes: self.modes.len(),
            distinct: self.keys.len(),
        }
    }
}

/// The proxy, and a record of the molecules that it scored.
pub(super) struct RecordedProxy {
    pub(super) proxy: SehProxy,
    record: Mutex<SearchRecord>,
}

impl RecordedProxy {
    /// Points of the curve are `every` molecules apart; `table` gets a row for each molecule.
    pub(super) fn new(proxy: SehProxy, every: usize, table: Option<ScoredTable>) -> Self {
        Self { proxy, record: Mutex::new(SearchRecord { every, table, ..SearchRecord::default() }) }
    }

    /// Writes the molecules of this step into the table; by default it is the step after the last.
    pub(super) fn finish_step(&self, step: Option<usize>) -> Result<()> {
        self.record().table.as_mut().map_or(Ok(()), |table| table.finish_step(step))
    }

    pub(super) fn record(&self) -> MutexGuard<'_, SearchRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MoleculeScore for RecordedProxy {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        let logs = self.proxy.log_scores(molecules)?;
        let mut record = self.record();
        molecules.iter().zip(&logs).for_each(|(molecule, log)| record.note(molecule, log.exp()));
        Ok(logs)
    }
}
