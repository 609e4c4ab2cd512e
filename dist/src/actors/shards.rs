//! Several learners that train as one: each keeps the objects whose keys fall to it, whoever's actor found them.

use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use gfn::env::{EnumerableEnv, Env};
use gfn::group::Group;
use gfn::rollout::{Container, ReplayEnv, Trajectories};
use gfn::train::Context;
use gfn::{Error, Result, Rng};
use tch::Tensor;

use super::frame::Fields;
use super::learner::{Learner, replay};
use super::message::Submission;

/// How long a learner waits for walks of its own actors before it looks whether others have some for it.
const LOOK: Duration = Duration::from_millis(5);

/// A number for each state, equal in all processes for states of equal keys.
pub(super) type Hashes<E> = fn(&E, &<E as Env>::States) -> Vec<u64>;

/// The standard library's hashers may differ between versions and processes; this one is FNV-1a of what is hashed.
struct Stable(u64);

impl Hasher for Stable {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    }

    fn finish(&self) -> u64 {
        Rng::mix64(self.0)
    }
}

pub(super) fn hashes<E: EnumerableEnv>(env: &E, states: &E::States) -> Vec<u64> {
    let hash = |key: E::Key| {
        let mut hasher = Stable(0xcbf2_9ce4_8422_2325);
        key.hash(&mut hasher);
        hasher.finish()
    };
    env.keys(states).into_iter().map(hash).collect()
}

/// What one learner says to all in a round.
struct Said {
    /// Trajectories that it must have and hasn't.
    missing: u64,
    /// Walks that came to it in this round.
    came: u64,
    /// Walks by the rank that keeps them.
    walks: Vec<(u64, Submission)>,
}

impl<E: ReplayEnv> Learner<E> {
    /// Takes in what has come and sends each walk to the learner that keeps it, until all learners have what they must have.
    pub(super) fn take_in_shares<P>(
        &mut self,
        group: &dyn Group,
        hashes: Hashes<E>,
        wanted: RangeInclusive<usize>,
        context: &Context<E, P>,
    ) -> Result<()> {
        let (step, env) = (context.step as u64, &context.env);
        let mut until = Instant::now() + self.shared.config.patience;
        let mut starving = false;
        loop {
            self.drop_stale(step);
            // Where another learner has too little, this one may have walks for it behind more of its own than it needs.
            let (mut message, mut left) =
                (Vec::new(), if starving { *wanted.end() } else { wanted.end().saturating_sub(self.n_ready()) });
            let mut came = 0;
            while left > 0 {
                let Some((version, trajectories)) = self.next(context) else { break };
                left = left.saturating_sub(trajectories.len());
                came += trajectories.len() as u64;
                self.share_out(
                    group,
                    &hashes(env, trajectories.terminal_states()),
                    version,
                    trajectories,
                    env,
                    &mut message,
                )?;
            }
            let missing = wanted.start().saturating_sub(self.n_ready()) as u64;
            let message = [&missing.to_le_bytes()[..], &came.to_le_bytes()[..], &message].concat();
            let all = group.join(&Tensor::from_slice(&message))?;
            let all = all.iter().map(|said| heard(said, group.size())).collect::<Result<Vec<_>>>()?;
            let sent_to = |rank: usize| {
                let walks = all.iter().flat_map(|said| &said.walks).filter(|(to, _)| *to == rank as u64);
                walks.map(|(_, submission)| submission.len() as u64).sum::<u64>()
            };
            let some_came = all.iter().any(|said| said.came > 0);
            // All compute the same.
            starving = (0..).zip(&all).any(|(rank, said)| sent_to(rank) < said.missing);
            for (_, submission) in
                all.into_iter().flat_map(|said| said.walks).filter(|(to, _)| *to == group.rank() as u64)
            {
                self.keep(submission.version, replay(env, submission)?);
            }
            if !starving {
                return Ok(());
            }
            // Whoever's actors they are: while walks come, one learner's share is a matter of time.
            if some_came {
                until = Instant::now() + self.shared.config.patience;
            }
            if Instant::now() >= until {
                return Err(self.deserted());
            }
            self.shared.wait_for_walks(Instant::now() + LOOK);
        }
    }

    /// Keeps what is this learner's own, and writes the rest into a message.
    fn share_out(
        &mut self,
        group: &dyn Group,
        hashes: &[u64],
        version: u64,
        trajectories: Trajectories<E>,
        env: &E,
        message: &mut Vec<u8>,
    ) -> Result<()> {
        let size = group.size() as u64;
        for rank in 0..size {
            let rows: Vec<usize> = (0..hashes.len()).filter(|&row| hashes[row] % size == rank).collect();
            if rows.is_empty() {
                continue;
            }
            let own = trajectories.select(rows)?;
            if rank == group.rank() as u64 {
                self.keep(version, own);
                continue;
            }
            let body = of_trajectories(env, version, &own)?.encode()?;
            message.extend(rank.to_le_bytes().into_iter().chain((body.len() as u64).to_le_bytes()));
            message.extend(body);
        }
        Ok(())
    }
}

fn of_trajectories<E: ReplayEnv>(env: &E, version: u64, trajectories: &Trajectories<E>) -> Result<Submission> {
    let walks = trajectories.walks(env)?;
    let (instances, actions) = (env.instances(&walks.terminal), env.write_actions(&walks.actions));
    let log_rewards = trajectories.recorded_log_rewards().unwrap_or_default().to_vec();
    let conditions = walks.conditions().map(Tensor::shallow_clone);
    Ok(Submission { version, offsets: walks.offsets, instances, log_rewards, conditions, actions })
}

fn heard(message: &Tensor, size: usize) -> Result<Said> {
    let bytes = Vec::<u8>::try_from(message)?;
    let read = || {
        let mut fields = Fields(&bytes);
        let (missing, came, mut walks) = (fields.u64()?, fields.u64()?, Vec::new());
        while !fields.0.is_empty() {
            let (rank, length) = (fields.u64()?, fields.u64()?);
            walks.push((rank, Submission::decode(fields.take(usize::try_from(length).unwrap_or(usize::MAX))?)?));
        }
        Ok(Said { missing, came, walks })
    };
    let refuse =
        || Error::contract("learners that train as one tell each other walks", "one of them told something else");
    let said = read().map_err(|broken: super::frame::Broken| broken.of_peer("another learner"))?;
    if said.walks.iter().all(|(rank, _)| *rank < size as u64) { Ok(said) } else { Err(refuse()) }
}
