//! Tests that equal seeds give equal bits for any number of rayon threads, and that a resumed run equals an
//! uninterrupted run.

use crate::trainers::{
    Folder, Setting, bits, bytes, colored_ends, colored_graphs, hypergrid, ring, state, steps,
};
use gfn::replay::Eviction;
use gfn::train::TrainEnv;
use gfn::train::{ReplayPath, Trainer};

const PATHS: [ReplayPath; 3] = [ReplayPath::Stored, ReplayPath::UniformBackward, ReplayPath::PolicyBackward];

/// Makes 9 steps, and saves after step 4. Then resumes from this checkpoint in a trainer with another seed,
/// and compares both runs.
fn check_resume<E>(name: &str, paths: &[ReplayPath], make: fn(Setting) -> Trainer<E>)
where
    E: TrainEnv,
{
    for (k, &path) in paths.iter().enumerate() {
        for eviction in [Eviction::Fifo, Eviction::BestReward] {
            let folder = Folder::new(&format!("resume-{name}-{k}-{eviction:?}"));
            let setting = Setting { eviction, ..Setting::new(1, path) };
            let mut whole = make(setting);
            whole.prefill(30).unwrap();
            steps(&mut whole, 4);
            let middle = folder.join("middle");
            whole.save(&middle).unwrap();
            let expected = steps(&mut whole, 5);

            let mut resumed = make(Setting { seed: 2, ..setting });
            // The trainer that resumes has already made steps and filled its buffer. The checkpoint must
            // replace all of this.
            resumed.prefill(7).unwrap();
            steps(&mut resumed, 2);
            resumed.resume(&middle).unwrap();
            assert_eq!(resumed.steps_done(), 4);
            assert_eq!(
                state(&resumed, &folder),
                bytes(&middle),
                "{name} {path:?} {eviction:?}: loaded as saved"
            );
            assert_eq!(steps(&mut resumed, 5), expected, "{name} {path:?} {eviction:?}");
            assert_eq!(state(&resumed, &folder), state(&whole, &folder), "{name} {path:?} {eviction:?}");
            let left: Vec<f64> = resumed.replay().unwrap().log_rewards().collect();
            assert_eq!(left.len(), 40, "{name}: the buffer overflowed");
            assert!(
                eviction == Eviction::BestReward || left.iter().any(|r| *r != left[0]),
                "{name}: draws differ"
            );
            assert!(left.iter().eq(whole.replay().unwrap().log_rewards().collect::<Vec<_>>().iter()));
        }
    }
}

#[test]
fn labelled_graphs_resume_bit_for_bit() {
    check_resume("ring", &PATHS, ring);
}

#[test]
fn graphs_up_to_isomorphism_resume_bit_for_bit() {
    check_resume("colored", &PATHS, colored_graphs);
}

/// Checks that a run whose buffer stores no paths resumes bit for bit. For this the nodes of stored graphs
/// must keep their numbers.
#[test]
fn objects_alone_up_to_isomorphism_resume_bit_for_bit() {
    check_resume("colored-ends", &PATHS[1..], colored_ends);
}

#[test]
fn grids_resume_bit_for_bit() {
    check_resume("grid", &PATHS, hypergrid);
}

/// Makes a few steps with large batches on this number of rayon threads. Returns the bits of each step's
/// statistics, and the bits of everything that a checkpoint saves.
fn on_threads<E>(
    threads: usize,
    (name, least): (&str, usize),
    make: fn(Setting) -> Trainer<E>,
) -> (Vec<[u64; 6]>, Vec<Vec<u8>>)
where
    E: TrainEnv,
{
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        assert_eq!(rayon::current_num_threads(), threads);
        // The number of libtorch's threads is fixed here, because it changes sums. The tests in `threads.rs`
        // vary the number of rayon's threads and the number of libtorch's threads.
        tch::set_num_threads(1);
        let folder = Folder::new(&format!("threads-{name}-{threads}"));
        // The batch is large enough for parallel work on graphs, which begins at 64 graphs per thread, and on
        // distinct states, which begins at 256 states. The first step has only fresh trajectories.
        let mut trainer = make(Setting { batch: 2400, ..Setting::new(3, ReplayPath::PolicyBackward) });
        trainer.prefill(500).unwrap();
        let stats: Vec<_> = (0..2).map(|_| trainer.step().unwrap()).collect();
        assert!(stats.iter().all(|stats| stats.distinct > least), "{name}: {stats:?}");
        (stats.iter().map(bits).collect(), state(&trainer, &folder))
    })
}

#[test]
fn the_number_of_rayons_threads_changes_no_bit() {
    fn check<E>(name: &str, least: usize, make: fn(Setting) -> Trainer<E>)
    where
        E: TrainEnv,
    {
        let one = on_threads(1, (name, least), make);
        for threads in 1..=3 {
            assert!(one == on_threads(threads, (name, least), make), "{name}: {threads} threads");
        }
    }
    check("ring", 600, ring);
    check("colored", 600, colored_graphs);
    // An untrained policy makes short trajectories on the grid, so there are fewer distinct states.
    check("grid", 150, hypergrid);
}

#[test]
fn another_seed_is_another_run() {
    for path in PATHS {
        let mut runs = [1, 2].map(|seed| ring(Setting::new(seed, path)));
        let [first, second] = runs.each_mut().map(|trainer| steps(trainer, 3));
        assert!(first.iter().zip(&second).all(|(a, b)| a[0] != b[0]), "{path:?}");
    }
}
