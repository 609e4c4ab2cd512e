//! Lets what cargo builds here find libtorch when it runs, without `LD_LIBRARY_PATH`: link arguments don't
//! propagate from a dependency to a final binary, so the run path of our own tests, examples and benches is
//! set here.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // From torch-sys (`links = "tch"`): cargo hands it to direct dependents only.
    println!("cargo:rerun-if-env-changed=DEP_TCH_LIBTORCH_LIB");
    let Ok(lib) = std::env::var("DEP_TCH_LIBTORCH_LIB") else {
        println!(
            "cargo:warning=torch-sys did not say where libtorch is: binaries may not find it when they run"
        );
        return;
    };
    println!("cargo:rustc-link-arg=-Wl,-rpath,{lib}");
    println!("cargo:rustc-env=GFN_LIBTORCH_LIB={lib}");
    if let Some(link) = link_to(Path::new(&lib)) {
        println!("cargo:rustc-link-search=native={}", link.display());
    }
}

/// A link to the libraries inside of the build folder: `cargo run` and `cargo test` put search paths in there
/// (and no others) on the loader's path. Documentation tests, which link arguments don't reach, find libtorch
/// so, and so do the packages that depend on this one.
#[cfg(unix)]
fn link_to(lib: &Path) -> Option<PathBuf> {
    let link = PathBuf::from(std::env::var_os("OUT_DIR")?).join("libtorch");
    if link.symlink_metadata().is_ok() {
        std::fs::remove_file(&link).ok()?;
    }
    std::os::unix::fs::symlink(lib, &link).ok()?;
    Some(link)
}

#[cfg(not(unix))]
fn link_to(_lib: &Path) -> Option<PathBuf> {
    None
}
