//! Figures that processes work out in shares: those of one, to the bit.

use gfn::collective::Collective;
use gfn::env::{EnumerableEnv, Rows, StateGraph, VectorStates};
use gfn::metrics::Evaluator;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig};
use gfn::testing::Words;
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

/// 9,841 words: several chunks.
fn env() -> Words {
    Words::new(3, 8)
}

fn policy(seed: u64) -> MlpPolicy<KHot> {
    let (config, rng) = (MlpPolicyConfig::default(), &mut Rng::seeded(seed));
    MlpPolicy::new(&env(), KHot::new(8, 4), config, Device::Cpu, Kind::Float, rng).unwrap()
}

/// Hashes of all figures.
fn figures(group: Option<&dyn Collective>) -> Result<Vec<u64>> {
    tch::set_num_threads(1);
    let (env, policy, mut rng) = (env(), policy(0), Rng::seeded(1));
    let reward = |words: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(words.rows().map(|word| word.iter().filter(|&&letter| letter == 1).count() as f64 / 3.0).collect())
    };
    let space = StateGraph::build(&env, 10_000)?;
    let evaluator = Evaluator::of(&env).shared_by(group);
    let learned = evaluator.terminating_distribution(&space, &policy, None)?;
    let flows = evaluator.exact_flows(&space, (&policy, &reward), None)?;
    let log_z = evaluator.estimate_log_z(&policy, &reward, 2_100, &mut rng)?;
    let samples = evaluator.sample(&policy, 2_100, &mut rng)?;
    let rewards = evaluator.figures(2_100, |range| reward(&samples.select(&range.collect::<Vec<_>>()), None))?;
    let hash = |bits: &mut dyn Iterator<Item = u64>| bits.fold(1, |hash, bits| Rng::mix64(hash ^ bits));
    let of = |values: &[f64]| hash(&mut values.iter().map(|value| value.to_bits()));
    let keys = hash(&mut env.keys(&samples).into_iter());
    Ok(vec![of(&learned.probs), of(&flows.log_flow), of(&[log_z.log_z, log_z.elbo.mean]), keys, of(&rewards)])
}

#[test]
#[ignore = "a part of another test"]
fn part_figures() {
    let Some(group) = crate::group(crate::TIMEOUT) else { return };
    println!("SAYS {:?}", figures(Some(&group)).unwrap());
    // One with another policy: nobody gets figures of both.
    let (env, space) = (env(), StateGraph::build(&env(), 10_000).unwrap());
    let evaluator = Evaluator::of(&env).shared_by(Some(&group));
    let other = evaluator.terminating_distribution(&space, &policy(group.rank() as u64), None);
    assert!(matches!(&other, Err(Error::Contract { .. })), "{other:?}");
    println!("SAYS {}", other.unwrap_err());
}

#[test]
fn what_processes_work_out_together_has_the_bits_of_one() {
    let alone = format!("{:?}", figures(None).unwrap());
    for size in [2, 3] {
        let said = crate::run("evaluation::part_figures", size);
        assert_eq!(said.len(), size);
        for said in said {
            assert!(said.len() == 2 && said[0] == alone && said[1].contains("another policy"), "{said:?}, not {alone}");
        }
    }
}
