//! A step of a record: a transaction with as many samples as a batch has.

use criterion::{BenchmarkId, Criterion};
use gfn_record::{RecordWriter, Sample};

use super::{elements, group};

pub(crate) fn bench(criterion: &mut Criterion) {
    let folder = std::env::temp_dir().join(format!("gfn-bench-record-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut group = group(criterion, "record");
    for n in [64, 128, 1024] {
        let path = folder.join(format!("{n}.sqlite"));
        let mut writer = RecordWriter::new_run(path, &["weight", "rings", "polar_surface"]).expect("a record");
        let sample = |k: usize| {
            let text = format!("CC(=O)Oc1ccccc1C(=O)O{k}");
            Sample { key: text.clone().into(), text, log_reward: k as f64, scores: vec![180.16, 1.0, 63.6] }
        };
        let samples: Vec<Sample> = (0..n).map(sample).collect();
        elements(&mut group, n);
        let mut step = 0;
        group.bench_function(BenchmarkId::new("append", n), |bencher| {
            bencher.iter(|| {
                step += 1;
                writer.append(step, &samples).expect("a step");
            });
        });
    }
    group.finish();
    std::fs::remove_dir_all(&folder).expect("a folder that goes");
}
