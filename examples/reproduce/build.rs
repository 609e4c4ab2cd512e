//! Sets the program's run path, so that the program finds libtorch when it is started without cargo. Also
//! stores the commit from which the program is built in the variable `GFN_COMMIT` of the build.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=DEP_TCH_LIBTORCH_LIB");
    if let Ok(lib) = std::env::var("DEP_TCH_LIBTORCH_LIB") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{lib}");
    }
    // The commit is stored in the settings of runs. The commit isn't known if git is missing or if the source
    // isn't a git checkout.
    if let (Some(commit), Some(log)) =
        (git(&["rev-parse", "HEAD"]), git(&["rev-parse", "--git-path", "logs/HEAD"]))
    {
        println!("cargo:rustc-env=GFN_COMMIT={commit}");
        // Git's log file grows with each commit and checkout, so a change of it triggers a new build.
        if Path::new(&log).exists() {
            println!("cargo:rerun-if-changed={log}");
        }
    }
}

/// Returns the output of a git command if it is one line; `None` if the command fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|line| !line.is_empty())
}
