//! What this machine offers, and whether it fits: the libtorch found, its version, CUDA, threads, and a small computation with a
//! backward pass. Exits with 1 and a remedy when something is off.
//!
//! `cargo run --example doctor -- [cpu|cuda|cuda:N]`

use std::process::ExitCode;

use gfn::runtime::{Cuda, DeviceKind, Libtorch, Runtime, cuda};
use gfn::tch::{Device, Kind, Tensor};
use gfn::{Error, Result, tch};

fn main() -> ExitCode {
    let mut ok = true;
    let mut say = |name: &str, found: Result<String>| {
        let (mark, text) = match found {
            Ok(text) => ("ok ", text),
            Err(error) => ("BAD", error.to_string()),
        };
        ok &= mark != "BAD";
        println!("{mark}  {name:<9} {text}");
    };
    say("libtorch", Libtorch::loaded().map(|libtorch| libtorch.folder.display().to_string()));
    say("version", version());
    // Not having CUDA is no fault, unless it is asked for.
    say(
        "cuda",
        Ok(match cuda() {
            Cuda::Visible { devices } => format!("{devices} visible"),
            Cuda::Absent { reason, remedy } => format!("not visible: {reason}\n               to have it: {remedy}"),
        }),
    );
    match runtime() {
        Ok(runtime) => {
            let (rayon, libtorch) = (rayon::current_num_threads(), tch::get_num_threads());
            say("threads", Ok(format!("rayon {rayon}, libtorch {libtorch}")));
            say(
                "tensors",
                compute(runtime.device())
                    .map(|()| format!("a product and its gradient are right on {}", runtime.kind())),
            );
        }
        Err(error) => say("runtime", Err(error)),
    }
    println!("{}", if ok { "All is well." } else { "Something is off: see the lines marked BAD." });
    ExitCode::from(u8::from(!ok))
}

fn version() -> Result<String> {
    let libtorch = Libtorch::loaded()?;
    libtorch.check()?;
    Ok(format!("{}: fits tch 0.26, and is what this binary was built with", libtorch.version.unwrap_or_default()))
}

/// A thread per core, on the device that the first argument names.
fn runtime() -> Result<Runtime> {
    let device = std::env::args().nth(1).map_or(Ok(DeviceKind::Cpu), |name| name.parse())?;
    Runtime::new(std::thread::available_parallelism().map_or(1, usize::from), device)
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
    let remedy = "this libtorch does not fit the binary; run `make setup` and build again";
    Err(Error::contract("a small computation", format!("the gradient is {gradient:?}, not [2, 4]: {remedy}")))
}
