//! Lets the tests, examples and benches of this package find libtorch without `LD_LIBRARY_PATH`: link arguments don't
//! propagate from a dependency to a final binary, so the run path is set here.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=DEP_TCH_LIBTORCH_LIB");
    if let Ok(lib) = std::env::var("DEP_TCH_LIBTORCH_LIB") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{lib}");
        println!("cargo:rustc-env=GFN_LIBTORCH_LIB={lib}");
    }
}
