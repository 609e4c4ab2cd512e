use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gfn::Rng;
use gfn::distribution::Exploration;
use gfn::objective::TrajectoryBalance;
use gfn::optim::Schedule;
use gfn::replay::DataSource;
use gfn::train::{Fit, Record, Trainer, TrainerConfig};
use gfn_dist::actors::{Actor, ActorConfig, LearnerConfig};

use super::{Limit, Process, counted, env, learner, policy, reward, step_until, total_variation, trainer, trainer_of};
use gfn::env::EnumerableEnv;

#[test]
fn actors_train_a_learner_to_the_target() {
    let _limit = Limit::seconds(120);
    let learner = learner(LearnerConfig::default());
    let (address, mut monitor) = (learner.address(), learner.monitor());
    let actors = [Process::actor(address, 0), Process::actor(address, 0)];
    let mut trainer = trainer(learner, 32);
    let mut seen = Vec::new();
    let mut look = |_: &Trainer<_, _>, record: &mut Record| {
        seen.push(record.figure("actors").unwrap());
        Ok(ControlFlow::Continue(()))
    };
    Fit::new(1_000).observe(&mut monitor).observe(&mut look).run(&mut trainer).unwrap();
    let (tv, counts) = (total_variation(&trainer), monitor.counts());
    println!("TV {tv:.4}, {counts:?}");
    assert!(tv < 0.05, "{tv}");
    assert!((counts.actors, counts.joined, counts.refused, counts.stale) == (2, 2, 0, 0), "{counts:?}");
    assert_eq!((trainer.reward_calls(), trainer.replay().unwrap().len() as u64), (counts.used, counts.used));
    assert!(counts.used >= 32 * 1_000 / 8 && counts.received >= counts.used, "{counts:?}");
    assert_eq!(seen.iter().copied().fold(0.0, f64::max), 2.0, "the observer's figure");
    drop(trainer);
    let taken: u64 = actors.iter().map(|actor| actor.says("DONE ").parse::<u64>().unwrap()).sum();
    assert_eq!(taken, monitor.counts().received, "what actors know of is what the learner took");
}

#[test]
fn walks_of_parameters_that_are_too_old_are_dropped_and_counted() {
    let _limit = Limit::seconds(60);
    let config = LearnerConfig { queue: 512, max_staleness: 2, ..LearnerConfig::default() };
    let learner = learner(config);
    let (address, monitor) = (learner.address(), learner.monitor());
    let _actor = Process::actor(address, 0);
    // Eight a step, of 512 that wait; without a buffer there is no place for more.
    let config = TrainerConfig { batch: 8, source: DataSource::default(), ..TrainerConfig::default() };
    let mut trainer = Trainer::new(env(), reward, policy(), TrajectoryBalance, config, Rng::seeded(0)).unwrap();
    trainer = trainer.with_fresh(learner).unwrap();
    step_until(&mut trainer, |_| {
        std::thread::sleep(Duration::from_millis(10));
        monitor.counts().queued > 100
    });
    let before = monitor.counts();
    step_until(&mut trainer, |_| monitor.counts().stale > before.stale + 100);
    let counts = monitor.counts();
    assert!(counts.mean_staleness <= 2.0, "{counts:?}");
    assert_eq!(counts.used, 8 * trainer.steps_done() as u64, "nothing stale is trained on");
}

#[test]
fn actors_wait_while_the_learner_has_enough_and_the_learner_while_it_has_too_little() {
    let _limit = Limit::seconds(60);
    let config = LearnerConfig { queue: 32, patience: Duration::from_secs(3), ..LearnerConfig::default() };
    let learner = learner(config);
    let (address, monitor, enough) = (learner.address(), learner.monitor(), Arc::new(AtomicBool::new(false)));
    let stop = Arc::clone(&enough);
    let actor = std::thread::spawn(move || {
        let config = ActorConfig { batch: 8, ..ActorConfig::default() };
        let mut actor = Actor::connect(address, env(), reward, policy(), config)?;
        while !stop.load(Ordering::Relaxed) && actor.submit()?.is_continue() {}
        Ok::<_, gfn::Error>(actor.acknowledged())
    });
    let mut trainer = trainer(learner, 16);
    trainer.step().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let counts = monitor.counts();
    // What has no room yet is with the actor's thread, and the actor waits.
    assert!(counts.queued == 32 && counts.used <= 32 && counts.received <= counts.used + 48, "{counts:?}");
    // From then on replayed ones take the place of fresh ones.
    step_until(&mut trainer, |trainer| trainer.steps_done() > 12);
    enough.store(true, Ordering::Relaxed);
    let error = loop {
        match trainer.step() {
            Ok(_) => {}
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("no walk that could be used has come in 3s: 0 actors are there now"), "{error}");
    let (counts, trained) = (monitor.counts(), 16 * trainer.steps_done() as u64);
    assert!(trained <= 8 * counts.used && trained + 16 > 8 * counts.used, "{trained} trained, {counts:?}");
    assert_eq!(actor.join().unwrap().unwrap(), counts.received);
}

/// Of each batch five are fresh, so that the bound needs more of them than go into batches.
#[test]
fn nothing_is_trained_on_more_often_than_it_may_be_where_few_of_a_batch_are_fresh() {
    let _limit = Limit::seconds(60);
    let learner = learner(LearnerConfig::default());
    let (address, monitor) = (learner.address(), learner.monitor());
    let _actor = Process::actor(address, 1);
    let config = TrainerConfig { batch: 100, source: DataSource::new(0.05, 0.95, 0.0).unwrap(), ..Default::default() };
    let mut trainer = trainer_of(learner, config);
    for step in 1..=400 {
        trainer.step().unwrap();
        let used = monitor.counts().used;
        assert!(100 * step <= 8 * used, "{used} walks for {step} steps");
    }
    println!("{:?}", monitor.counts());
    assert_eq!(trainer.n_fresh(), 5);
    assert_eq!(trainer.replay().unwrap().len() as u64, monitor.counts().used, "what goes into no batch is kept");
}

#[test]
fn twenty_kills_lose_nothing_that_was_acknowledged() {
    let _limit = Limit::seconds(180);
    let config = LearnerConfig { max_staleness: usize::MAX, max_reuse: f64::INFINITY, ..LearnerConfig::default() };
    let learner = learner(config);
    let (address, monitor) = (learner.address(), learner.monitor());
    let mut trainer = trainer(learner, 32);
    let killer = std::thread::spawn(move || {
        let mut rng = gfn::Rng::seeded(5);
        let mut actors: Vec<Process> = (0..3).map(|_| Process::actor(address, 1)).collect();
        let mut gone = Vec::new();
        for kill in 0..20 {
            // Some before they have begun, most amid what they do.
            let at = rng.below(3);
            if kill % 4 > 0 {
                actors[at].says("TOOK ");
            }
            std::thread::sleep(Duration::from_millis(rng.below(100) as u64));
            let mut killed = std::mem::replace(&mut actors[at], Process::actor(address, 1));
            killed.kill();
            gone.push(killed);
        }
        actors.iter().for_each(|actor| drop(actor.says("TOOK ")));
        actors.iter_mut().for_each(Process::kill);
        gone.extend(actors);
        // What was said just before the end is read by then.
        std::thread::sleep(Duration::from_millis(200));
        gone.iter().flat_map(Process::acknowledged).collect::<Vec<_>>()
    });
    step_until(&mut trainer, |trainer| killer.is_finished() && trainer.steps_done() >= 1_200);
    let acknowledged = killer.join().unwrap();
    step_until(&mut trainer, |_| monitor.counts().used == monitor.counts().received);
    let held = counted(env().keys(&trainer.replay().unwrap().walks().unwrap().terminal));
    assert!(acknowledged.len() > 500, "{} objects", acknowledged.len());
    for (key, n) in counted(acknowledged) {
        assert!(
            held.get(&key).is_some_and(|&held| held >= n),
            "{n} of {key} were acknowledged, {:?} are there",
            held.get(&key)
        );
    }
    let (tv, counts) = (total_variation(&trainer), monitor.counts());
    println!("TV {tv:.4} after {} steps, {counts:?}", trainer.steps_done());
    assert!(counts.joined >= 15 && counts.refused == 0 && counts.stale == 0, "{counts:?}");
    assert!(tv < 0.05, "{tv}");
}

#[test]
fn actors_of_one_seed_draw_by_different_streams() {
    let _limit = Limit::seconds(60);
    let learner = learner(LearnerConfig { queue: 1, ..LearnerConfig::default() });
    let address = learner.address();
    let first = std::thread::spawn(move || {
        let connect = || Actor::connect(address, env(), reward, policy(), ActorConfig::default());
        let (mut one, mut other) = (connect()?, connect()?);
        assert!(one.submit()?.is_continue() && other.submit()?.is_continue());
        Ok::<_, gfn::Error>((one.version(), other.version()))
    });
    let mut trainer = trainer(learner, 16);
    trainer.step().unwrap();
    let mine = env().keys(trainer.latest().unwrap().terminal_states());
    trainer.step().unwrap();
    assert_ne!(mine, env().keys(trainer.latest().unwrap().terminal_states()));
    first.join().unwrap().unwrap();
}

#[test]
fn a_run_goes_on_from_its_checkpoint_with_new_actors() {
    let _limit = Limit::seconds(60);
    let folder = std::env::temp_dir().join(format!("gfn-dist-actors-{}", std::process::id()));
    let begin = || {
        let learner = learner(LearnerConfig::default());
        let address = learner.address();
        let actor = std::thread::spawn(move || {
            let config = ActorConfig { ahead: false, ..ActorConfig::default() };
            let actor = Actor::connect(address, env(), reward, policy(), config)?;
            let version = actor.version();
            actor.run().map(|taken| (version, taken))
        });
        (trainer(learner, 16), actor)
    };
    let (mut first, actor) = begin();
    Fit::new(15).checkpoint(&folder, None).unwrap().run(&mut first).unwrap();
    let held = first.replay().unwrap().len();
    drop(first);
    assert!(actor.join().unwrap().unwrap().1 >= held as u64, "what was sent is in the buffer");
    let (mut second, actor) = begin();
    second.resume(&folder).unwrap();
    assert_eq!((second.steps_done(), second.replay().unwrap().len()), (15, held));
    Fit::new(30).run(&mut second).unwrap();
    assert!(second.replay().unwrap().len() > held);
    drop(second);
    let (version, taken) = actor.join().unwrap().unwrap();
    assert!(version >= 15 && taken > 0, "it has the parameters that the run goes on from: {version}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_actor_explores_as_the_learner_says_or_as_it_is_told_itself() {
    let _limit = Limit::seconds(60);
    let learner = learner(LearnerConfig::default());
    let address = learner.address();
    let run = |exploration: Option<Exploration>| {
        std::thread::spawn(move || {
            let config = ActorConfig { exploration, ..ActorConfig::default() };
            Actor::connect(address, env(), reward, policy(), config)?.run()
        })
    };
    // The learner's never exit before they must, those of its own mind exit at once.
    let (like_learner, own) = (run(None), run(Some(Exploration::none().with_exit_bias(1e3).unwrap())));
    let (never, none) = (Schedule::Constant(-1e3), Some(Schedule::Constant(0.0)));
    let config = TrainerConfig { batch: 16, exit_bias: never, epsilon: none, ..TrainerConfig::default() };
    let mut trainer = Trainer::new(env(), reward, policy(), TrajectoryBalance, config, Rng::seeded(0)).unwrap();
    trainer = trainer.with_fresh(learner).unwrap();
    let mut lengths = BTreeSet::new();
    step_until(&mut trainer, |trainer| {
        let words = trainer.latest().map(|latest| latest.terminal_states().clone());
        let length = |row: &[u16]| row.iter().filter(|&&letter| letter > 0).count();
        lengths.extend(words.iter().flat_map(|words| words.rows().map(length).collect::<Vec<_>>()));
        trainer.steps_done() >= 20 && lengths.len() >= 2
    });
    assert_eq!(lengths, BTreeSet::from([0, 4]));
    drop(trainer);
    assert!(like_learner.join().unwrap().unwrap() > 0 && own.join().unwrap().unwrap() > 0);
}
