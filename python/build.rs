//! Compiles the C++ shim that passes tensors to and from Python, and links the libraries of the Python
//! package torch.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=shim");
    for variable in ["DEP_TCH_LIBTORCH_LIB", "PYO3_PYTHON"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    // torch-sys (`links = "tch"`) sets this variable. Cargo passes it to direct dependents only, so torch-sys
    // is a direct dependency.
    let Some(lib) = std::env::var_os("DEP_TCH_LIBTORCH_LIB").map(PathBuf::from) else {
        println!("cargo::error=torch-sys did not say where libtorch is, whose headers are needed");
        return;
    };
    let Some(root) = lib.parent() else { return };
    let Some(minor) = torch_minor(root) else {
        println!(
            "cargo::error=no header of libtorch in {} says its version: a PyTorch of 2.13 or newer is needed",
            root.display()
        );
        return;
    };
    println!("cargo:rustc-env=GFN_TORCH={minor}");
    let Some(include) = python_include() else {
        println!(
            "cargo::error=the headers of Python were not found: install them (python3-dev), or name an \
             interpreter that has them (PYO3_PYTHON)"
        );
        return;
    };
    cc::Build::new()
        .cpp(true)
        .std("c++20")
        .warnings(false)
        // The shim only passes arguments to libtorch, so more optimisation would gain nothing.
        .opt_level(1)
        .debug(false)
        .flag("-fvisibility=hidden")
        .include(include)
        .include(root.join("include"))
        .include(root.join("include/torch/csrc/api/include"))
        .file("shim/tensors.cpp")
        .compile("gfn_python_tensors");
    println!("cargo:rustc-link-search=native={}", lib.display());
    println!("cargo:rustc-link-lib=torch_python");
    println!("cargo:rustc-link-lib=torch_cpu");
    println!("cargo:rustc-link-lib=c10");
    // In Python, `import torch` has already loaded these libraries. The path is for tools that inspect or
    // load the extension alone.
    println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/../torch/lib");
}

/// Returns the folder of `Python.h`.
fn python_include() -> Option<PathBuf> {
    let python = std::env::var("PYO3_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let ask = "import sysconfig; print(sysconfig.get_path('include'))";
    let out = Command::new(python).args(["-c", ask]).output().ok()?;
    let include = PathBuf::from(String::from_utf8(out.stdout).ok()?.trim());
    include.join("Python.h").is_file().then_some(include)
}

/// Returns the version of a libtorch without its patch number, such as `2.13`.
fn torch_minor(root: &Path) -> Option<String> {
    let header = std::fs::read_to_string(root.join("include/torch/headeronly/version.h")).ok()?;
    let number = |name: &str| {
        let line = header
            .lines()
            .find_map(|line| line.strip_prefix("#define TORCH_VERSION_")?.strip_prefix(name))?;
        line.trim().parse::<u32>().ok()
    };
    Some(format!("{}.{}", number("MAJOR")?, number("MINOR")?))
}
