//! Compiles the C++ code that calls c10d, with libtorch's headers. Also sets the run path, so that programs
//! find libtorch.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-env-changed=DEP_TCH_LIBTORCH_LIB");
    if std::env::var_os("CARGO_FEATURE_DOC_ONLY").is_some() {
        return;
    }
    // The build script of torch-sys (`links = "tch"`) sets this variable. Cargo passes it only to packages
    // that depend on torch-sys directly.
    let Ok(lib) = std::env::var("DEP_TCH_LIBTORCH_LIB") else {
        println!(
            "cargo::error=torch-sys did not set DEP_TCH_LIBTORCH_LIB, so that libtorch's headers can't be \
             found"
        );
        return;
    };
    let Some(root) = Path::new(&lib).parent() else { return };
    cc::Build::new()
        .cpp(true)
        .std("c++20")
        .warnings(false)
        // The C++ code only passes arguments on, so more optimization gains nothing.
        .opt_level(1)
        .debug(false)
        .flag("-fvisibility=hidden")
        .define("USE_C10D_GLOO", None)
        .include("shim")
        .include(root.join("include"))
        .include(root.join("include/torch/csrc/api/include"))
        .file("shim/c10d.cpp")
        .compile("gfn_dist_c10d");
    println!("cargo:rustc-link-search=native={lib}");
    println!("cargo:rustc-link-lib=torch_cpu");
    println!("cargo:rustc-link-lib=c10");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{lib}");
}
