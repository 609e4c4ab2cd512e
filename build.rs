//! Sets the run path of this package's own tests, examples and benches, so that they find libtorch when they
//! run, without `LD_LIBRARY_PATH`. Cargo doesn't pass link arguments from a dependency to a final binary.
//! Each package with binaries therefore sets the run path itself.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The build script of torch-sys (`links = "tch"`) sets this variable. Cargo passes it only to packages
    // that depend on torch-sys directly.
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

/// Creates a link to the folder of libtorch's libraries inside of this package's build folder. `cargo run`
/// and `cargo test` add only search paths inside of the build folder to the loader's path. The link helps
/// documentation tests, because link arguments don't reach them, and packages that depend on this one.
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
