//! Tests of the step records of the program `reproduce`. Their module is private there, so this test program
//! compiles the module's file itself.

use std::collections::BTreeMap;

use crate::run_folders::steps::{StepRecord, Steps};

/// The largest number of step records that are kept in memory. If there are more steps, a record stands for
/// several consecutive steps.
const MAX_KEPT: usize = 1 << 16;

#[test]
fn many_steps_stand_together() {
    let line = r#"{"step":0,"reward_calls":0,"loss":1.0,"log_z":null,"mean_len":3.0,"states":4,
        "distinct":2,"grad_norm":1.0,"seconds":{"sample":0.5,"score":0,"backward":0,"update":0.25}}"#;
    let one: StepRecord = serde_json::from_str(line).unwrap();
    let mut steps = Steps::default();
    let n = 5 * MAX_KEPT / 2 + 3;
    for step in 1..=n {
        let metrics = if step == 7 { [("jsd".to_owned(), Some(0.5))].into() } else { BTreeMap::new() };
        steps.push(StepRecord { step, loss: Some(step as f64), metrics, ..one.clone() });
    }
    let of = |value: fn(&StepRecord) -> f64| steps.records.iter().map(value).sum::<f64>();
    assert!(steps.records.len() <= MAX_KEPT && steps.records[0].n == 4 && steps.records[0].step == 4);
    assert!(steps.records[1].metrics["jsd"] == Some(0.5) && steps.records[0].loss == Some(2.5));
    assert_eq!(of(|made| made.n as f64), n as f64);
    assert_eq!((of(|made| made.seconds[0]), of(|made| made.states as f64)), (0.5 * n as f64, 4.0 * n as f64));
    assert_eq!(steps.records.last().unwrap().step, n);
}
