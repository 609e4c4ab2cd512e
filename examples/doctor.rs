//! What this machine offers, and whether it fits: the libtorch found, its version, CUDA, threads, and a small
//! computation with a backward pass. Exits with 1 and a remedy when something is off.
//!
//! `cargo run --example doctor -- [--json] [--threads N] [--device cpu|cuda|cuda:N]`

use std::process::ExitCode;

use clap::Parser;
use gfn::runtime::{Cuda, DeviceKind, Libtorch, Runtime, cuda};
use gfn::{Error, Result};
use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

/// Checks that this checkout can run here.
#[derive(Parser)]
struct Args {
    /// Print one line of JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Threads of rayon and of libtorch [default: one per core].
    #[arg(long)]
    threads: Option<usize>,
    /// Where the check computes: cpu, cuda or cuda:N.
    #[arg(long, default_value_t)]
    device: DeviceKind,
}

/// One line of the report.
struct Finding {
    name: &'static str,
    ok: bool,
    text: String,
    value: Value,
}

impl Finding {
    fn good(name: &'static str, text: impl Into<String>, value: Value) -> Self {
        Self { name, ok: true, text: text.into(), value }
    }

    fn bad(name: &'static str, error: &Error) -> Self {
        Self { name, ok: false, text: error.to_string(), value: json!({ "error": error.to_string() }) }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let findings = examine(&args);
    let ok = findings.iter().all(|finding| finding.ok);
    if args.json {
        let mut line: serde_json::Map<String, Value> =
            findings.into_iter().map(|finding| (finding.name.to_owned(), finding.value)).collect();
        line.insert("ok".into(), ok.into());
        println!("{}", Value::Object(line));
    } else {
        for Finding { name, ok, text, .. } in &findings {
            println!("{}  {name:<9} {text}", if *ok { "ok " } else { "BAD" });
        }
        println!("{}", if ok { "All is well." } else { "Something is off: see the lines marked BAD." });
    }
    ExitCode::from(u8::from(!ok))
}

fn examine(args: &Args) -> Vec<Finding> {
    let mut findings = Vec::new();
    match Libtorch::loaded() {
        Ok(libtorch) => {
            let folder = libtorch.folder.display().to_string();
            findings.push(Finding::good("libtorch", folder.clone(), json!(folder)));
            let version = libtorch.version.clone().unwrap_or_default();
            findings.push(match libtorch.check() {
                Ok(()) => Finding::good(
                    "version",
                    format!("{version}: fits tch 0.24, and is what this binary was built with"),
                    json!(version),
                ),
                Err(error) => Finding::bad("version", &error),
            });
        }
        Err(error) => findings.push(Finding::bad("libtorch", &error)),
    }
    // Not having CUDA is no fault, unless it is asked for.
    findings.push(match cuda() {
        Cuda::Visible { devices } => Finding::good("cuda", format!("{devices} visible"), json!({ "devices": devices })),
        Cuda::Absent { reason, remedy } => Finding::good(
            "cuda",
            format!("not visible: {reason}\n               to have it: {remedy}"),
            json!({ "devices": 0, "reason": reason, "remedy": remedy }),
        ),
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = Runtime::new(args.threads.unwrap_or(cores), args.device);
    match runtime {
        Ok(runtime) => {
            let (rayon, libtorch) = (rayon::current_num_threads(), tch::get_num_threads());
            findings.push(Finding::good(
                "threads",
                format!("rayon {rayon}, libtorch {libtorch} (cores: {cores})"),
                json!({ "rayon": rayon, "libtorch": libtorch, "cores": cores }),
            ));
            findings.push(match compute(runtime.device()) {
                Ok(()) => Finding::good(
                    "tensors",
                    format!("a product and its gradient are right on {}", runtime.kind()),
                    json!(runtime.kind()),
                ),
                Err(error) => Finding::bad("tensors", &error),
            });
        }
        Err(error) => findings.push(Finding::bad("runtime", &error)),
    }
    findings
}

/// The gradient of sum((x W)^2) at x = [1, 2], W = I is [2, 4]: checks a product, a reduction and a backward pass.
fn compute(device: Device) -> Result<()> {
    let x = Tensor::f_from_slice(&[1.0_f64, 2.0])?.f_to_device(device)?.f_set_requires_grad(true)?;
    let identity = Tensor::f_eye(2, (Kind::Double, device))?;
    let loss = x.f_unsqueeze(0)?.f_matmul(&identity)?.f_square()?.f_sum(Kind::Double)?;
    loss.f_backward()?;
    let gradient = Vec::<f64>::try_from(x.f_grad()?.f_to_device(Device::Cpu)?)?;
    if loss.f_double_value(&[])? == 5.0 && gradient == [2.0, 4.0] {
        return Ok(());
    }
    Err(Error::Contract {
        check: "a small computation",
        detail: format!(
            "the gradient came out as {gradient:?}, not [2, 4]: this libtorch does not fit the binary; \
             run `make setup` and build again"
        ),
    })
}
